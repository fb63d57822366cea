"""The errors of scales against real time: the table of ``python -m tests.scale``, and which runs count."""

import json

import pytest

from lab.errors import BAD_INPUT
from lab.judge.gates import judge_gates
from lab.judge.quantity import Quantity
from lab.measure.outcome import committed
from lab.measure.similarity import FAITHFUL, UNFAITHFUL
from lab.record import seal
from tests.scale import __main__ as program
from tests.unit.measure import similar
from tests.unit.measure.test_outcome import OUTCOME, RUNS

SCALES = {"quick": 30, "real": 1}


def sessions(results, blocks, **how):
    """A/A duets of a plateau at these scales under ``results``; ``how`` is that of the compressed ones."""
    for scale, factor in SCALES.items():
        for block in range(1, blocks + 1):
            for side in "ab":
                folder = results / "records" / f"plateau-{scale}-{block}-{side}"
                similar.write(folder, factor, scale=scale, block=block, side=side, **(how if factor > 1 else {}))
    return results


@pytest.fixture
def outcome(monkeypatch, tmp_path):
    """A function that runs the program on a folder: the outcome that it found. It publishes into a file of the test's."""
    found = []

    def keep(one):
        found.append(one)
        return ""

    monkeypatch.setattr(program, "tables", keep)
    monkeypatch.setattr(program.outcomes, "FILE", tmp_path / "similarity.yaml")
    program.outcomes.NOTHING.write(program.outcomes.FILE)

    def run(results, *options):
        assert program.main([str(results), *options]) == 0
        return found[-1]

    return run


def test_each_number_has_its_interval_and_what_it_is_worth(capsys):
    """In the column of its scale, whose head has n and the confidence; a number without data at any scale has no row.

    Without results the committed errors are shown.
    """
    text = program.tables(OUTCOME)
    assert "| measure | unit | real (n = 0) | quick (n = 6, 93%) |" in text
    assert "| peak lag | messages | 90,000 | ✔ +2 % (-1 to +5) |" in text
    assert RUNS.machine in text
    assert "never" not in text
    assert program.main([]) == 0
    assert capsys.readouterr().out == program.tables(committed()) + "\n"


def test_the_error_of_each_scale_is_found_and_published(tmp_path, outcome):
    """Of three blocks, with a peak that is half as high again where time is compressed."""
    found = outcome(sessions(tmp_path, 3, peak=1.5), "--publish")
    assert [(one.scale, one.blocks, one.left_out) for one in found.runs] == [("quick", 3, 0), ("real", 3, 0)]
    assert {one.commit for one in found.runs} == {"0123456789ab"}
    peak, pods = ({row.name: row for row in found.rows}[name] for name in ("peak lag", "most replicas"))
    assert (peak.verdict, pods.verdict) == (UNFAITHFUL, FAITHFUL)
    assert peak.estimate == pytest.approx(0.5, abs=0.01)
    assert (peak.n, peak.reference_n, peak.confidence) == (3, 3, pytest.approx(0.9))
    published = program.outcomes.read(program.outcomes.FILE)
    assert not published.faithful("lab.measure.lag.peak_lag", "quick")
    assert published.faithful("lab.measure.scaling.ScaleEvents.most_replicas", "quick")


def test_a_measure_that_is_defined_anew_has_no_row(outcome, capsys):
    """Its errors are of another number, so each claim on it is marked again; the others stay."""
    OUTCOME.write(program.outcomes.FILE)
    assert program.main(["--forget", "peak"]) == 0
    left = program.outcomes.read(program.outcomes.FILE)
    assert not left.faithful("peak", "quick")
    assert list(left.rows) == [row for row in OUTCOME.rows if row.measure != "peak"]
    assert program.main(["--forget", "peaks"]) == BAD_INPUT
    assert "'peaks' is not allowed" in capsys.readouterr().err


def test_what_can_not_be_compared_is_refused(tmp_path, capsys):
    """A folder without records, and runs without real time, in one line each."""
    assert program.main([str(tmp_path)]) == BAD_INPUT
    for side in "ab":
        similar.write(tmp_path / "records" / f"plateau-quick-1-{side}", 30, scale="quick", block=1, side=side)
    assert program.main([str(tmp_path)]) == BAD_INPUT
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert "there are: plateau at quick" in lines[1]


def test_a_machine_that_was_slower_at_one_scale_is_named(tmp_path, outcome, caplog):
    """Its part of the error can't be told. A difference of less than a tenth gets no warning."""
    results = sessions(tmp_path, 1)
    for speed, warned in ((290_000, False), (200_000, True)):
        for file in results.glob("records/*/trial.json"):
            content = json.loads(file.read_text())
            content["machine"]["speed"] = speed if "quick" in file.parent.name else 310_000
            file.write_text(json.dumps(seal.complete(content)))
        caplog.clear()
        (quick,) = (one for one in outcome(results).runs if one.scale == "quick")
        assert ("plateau: the machine's speed differed: quick 200, real 310 thousand" in caplog.text) == warned
        assert quick.machine.endswith(f"speed {speed // 1000} thousand events/s")


def test_a_block_counts_with_all_its_sides(tmp_path, monkeypatch, outcome):
    """One whose other side was interrupted is left out; so is one with an invalid trial, which is counted."""
    results = sessions(tmp_path, 2)
    bad = judge_gates(lambda name: Quantity(name, "x", 99.0))
    monkeypatch.setattr(program, "judge_validity", lambda record: bad if record.name == "plateau-quick-2-b" else ())
    found = {one.scale: (one.blocks, one.left_out) for one in outcome(results).runs}
    assert found == {"quick": (1, 2), "real": (2, 0)}
    file = results / "records" / "plateau-quick-2-b" / "trial.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"ended": "interrupted"}))
    assert {one.scale: (one.blocks, one.left_out) for one in outcome(results).runs} == {"quick": (1, 0), "real": (2, 0)}
    assert not program.outcomes.read(program.outcomes.FILE).rows
