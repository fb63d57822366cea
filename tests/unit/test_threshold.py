"""``elastic-lab threshold``: the formula, and one line for what is wrong."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.__main__ import main
from lab.foresee.variants import computed_threshold


def test_the_authors_threshold_is_the_formulas(capsys):
    """Pods of 166.67/s and the SLO of 30 s that the author gives as an example: what the payment processor deploys.

    The text's first line is the field as a ScaledObject has it; where a single message is too many, that is said.
    """
    assert main(["threshold", "--rate=166.67", "--slo=30", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    deployed = yamlfile.read(paths.MANIFESTS / "payments" / "scaledobject.yaml")["spec"]["triggers"][0]["metadata"]
    assert str(found["lagThreshold"]) == deployed["lagThreshold"] == "3750"
    assert found["behind_at_rest_s"] == pytest.approx(22.5, abs=0.01)
    assert main(["threshold", "--rate=0.1", "--slo=2"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == 'lagThreshold: "1"'
    assert "the least there is" in lines[-1]


@given(st.floats(1, 1e5), st.floats(0.1, 3600))
def test_a_group_at_rest_has_a_quarter_to_spare(rate, slo):
    """To within the rounding to a whole message."""
    assert abs(computed_threshold(rate, slo) - rate * slo * 0.75) <= max(0.5, 1 - rate * slo * 0.75)


@pytest.mark.parametrize(("flag", "value"), [("rate", "0"), ("rate", "fast"), ("slo", "-1"), ("slo", "1e9"), ("rate", "nan")])
def test_what_can_not_be_computed_is_one_line(capsys, flag, value):
    """Flag, value and range; exit code 2."""
    with pytest.raises(SystemExit) as end:
        main(["threshold", *[f"--{name}={value if name == flag else 1}" for name in ("rate", "slo")]])
    assert end.value.code == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert f"--{flag}: {value!r} is not allowed; allowed: 0.001 to" in line
