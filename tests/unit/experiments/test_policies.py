"""The requirements of a policy, by the model: those that are known to fail one do, each alone where it can."""

import pytest

from lab import paths
from lab.inputs import policy, variant
from tests import policies
from tests.policies import BOUNDS, DISTANCE, FLIPS, FLOOR, RATE, REACTION, REST

FOLDER = paths.MANIFESTS / "scaledobjects"


def found(base, **changes):
    """What a committed policy with changes does at few lulls and rates."""
    file = FOLDER / f"{base}.yaml"
    made = policy.parse(variant.policy(base, **changes).applied(policies.read(file).content, file), file)
    return policies.figures(made, lulls_s=(180, 240, 900), rates=(1450, 1800))


@pytest.mark.parametrize(
    ("base", "changes", "beyond"),
    [
        ("lag-4500", {}, [FLIPS, DISTANCE, RATE, REST]),  # pods that keep up have no lag
        ("lag-4500", {"scale_up_window": 60}, [FLIPS, REACTION, DISTANCE, RATE, REST]),
        ("lag-4500-arrivals", {}, [RATE, REST]),  # 18 to 23 pods on 24 partitions do no more than 12
        ("lag-4500-arrivals", {"scale_down": "1 pod/1800s"}, [FLOOR, RATE, REST]),
    ],
    ids=["lag alone", "a window up", "arrivals", "no way back"],
)
def test_a_requirement_refutes_a_policy(base, changes, beyond):
    """By name; what is within its bound is not named."""
    assert policies.refuted(found(base, **changes)) == beyond


def test_a_flip_after_a_lull_that_outlasts_the_window_is_right():
    """Three lulls of 15 minutes on a window of 5 flip, and none of the flips is early."""
    run = policies.Run(policies.read(FOLDER / "lag-4500-arrivals.yaml"), policies.bursts(900))
    assert (run.curve.flips, run.early_flips) == (9, 0)


def test_the_table_marks_what_is_beyond_its_bound():
    """A column for each policy."""
    held = {**BOUNDS, policies.OLDEST: 50.0, policies.PRICE: 1300.0}
    shown = policies.rows({"good": held, "bad": held | {FLIPS: 2.0}})
    assert shown[0] == ["", "good", "bad"]
    assert shown[1] == [f"{FLIPS} <= 0", "0", "✘ 2"]
    assert shown[-1] == [policies.PRICE, "1,300", "1,300"]
