"""The outcome of the runs at several scales: its file, and what it says of a claim."""

from dataclasses import replace
from typing import get_type_hints

import pytest

from lab.errors import InputError
from lab.inputs import scale as scales
from lab.judge.measure import Measure
from lab.judge.origin import MESSAGES, UNKNOWN, UNSCALED, Origin
from lab.judge.samples import Offset
from lab.measure.outcome import NOTHING, Outcome, Runs, committed, read, remark
from lab.measure.overview import COMPARED
from lab.measure.similarity import FAITHFUL, NO_DATA, UNDECIDED, UNFAITHFUL, Row, judge

QUICK, REAL = scales.load("quick"), scales.load("real")
ROW = Row("plateau", "quick", "peak", "peak lag", "messages", 6, 2, 9e4, True, 0.02, -0.01, 0.05, 0.93, 0.1, FAITHFUL)
RUNS = Runs("plateau", "quick", 6, 2, "2026-11-22", "2 cores, AMD EPYC", "0123", "lag-4500", 1.0)
PEAK, PODS = Origin(("peak",), MESSAGES), Origin(("pods",))
OUTCOME = Outcome(
    "real",
    (RUNS,),
    (
        ROW,
        replace(ROW, profile="bursty"),
        replace(ROW, measure="half"),
        replace(ROW, measure="half", profile="bursty", verdict=NO_DATA),
        replace(ROW, measure="pods"),
        replace(ROW, measure="drain"),
        replace(ROW, measure="drain", profile="bursty", verdict=UNDECIDED),
        replace(ROW, measure="never", verdict=NO_DATA),
    ),
)


def test_it_is_read_as_it_was_written(tmp_path):
    """Numbers in six digits."""
    file = tmp_path / "similarity.yaml"
    OUTCOME.write(file)
    assert read(file) == OUTCOME
    assert len(file.read_text().splitlines()) < 15


def test_each_row_is_of_a_measure_that_is_compared():
    """The committed ones; a measure that is renamed alone would count as not validated at every scale."""
    found = set()
    for compute in COMPARED:
        module = compute.__module__
        kind = get_type_hints(compute)["return"]
        names = [f"{kind.__qualname__}.{name}" for name in kind.declared()] if issubclass(kind, Measure) else [compute.__name__]
        found |= {f"{module}.{name}" for name in names}
    assert {row.measure for row in committed().rows} <= found
    assert committed().reference == scales.REAL


def test_a_profile_takes_the_place_of_its_earlier_runs():
    """All of them, at other scales too; the other profiles stay as they are. Runs without a reference take no place."""
    new = Outcome("real", (RUNS,), (ROW,))
    other = Outcome("real", (replace(RUNS, profile="bursty"),), (replace(ROW, profile="bursty"),))
    same = Outcome("real", (replace(RUNS, scale="medium"),), (replace(ROW, scale="medium"),))
    assert new.beside(other) == Outcome("real", (*other.runs, RUNS), (*other.rows, ROW))
    assert new.beside(same) == new
    alone = Outcome("real", same.runs, ())
    assert alone.beside(OUTCOME) == replace(OUTCOME, rows=tuple(sorted(OUTCOME.rows, key=lambda one: one.profile)))


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ("rows: []\nruns: []", "reference: missing; allowed: a value"),
        ("reference: real\nruns: []\nrows: 3", "rows: 3"),
        ("reference: real\nruns: [{a: 1}]\nrows: []", "runs[0]"),
        ("reference: real\nruns: []\nrows: [{profile: plateau}]", "rows[0]"),
    ],
)
def test_another_content_is_refused(tmp_path, change, line):
    """In one line that names the place; a new word must get a meaning before a claim rests on it."""
    file = tmp_path / "similarity.yaml"
    file.write_text(change)
    with pytest.raises(InputError) as error:
        read(file)
    assert line in str(error.value)
    replace(OUTCOME, rows=(replace(ROW, verdict="fine"),)).write(file)
    with pytest.raises(InputError, match=r"rows\[0\].verdict: 'fine'"):
        read(file)


def test_a_committed_verdict_is_that_of_its_interval():
    """Within 10 % whatever the noise: a row that says otherwise was judged by another rule, or by hand."""
    rows = [row for row in committed().rows if row.estimate is not None]
    for row in rows:
        tolerance = 0.1 if row.relative else 0.1 * abs(row.reference)
        found = judge(Offset(row.estimate, row.low, row.high, row.confidence), tolerance)
        assert (row.verdict, row.tolerance) == (found, pytest.approx(tolerance, rel=1e-5)), row
    assert {row.verdict for row in rows} == {FAITHFUL, UNFAITHFUL, UNDECIDED}


def test_faithful_is_what_all_profiles_show():
    """One that is undecided, or has no data, shows nothing; another scale is another question.

    Nor does a scale until every profile of real time ran at it: the other one may be less faithful there.
    """
    assert OUTCOME.faithful("peak", "quick")
    assert not OUTCOME.faithful("drain", "quick")
    assert not OUTCOME.faithful("never", "quick")
    assert not OUTCOME.faithful("half", "quick")
    assert not OUTCOME.faithful("peak", "medium")
    assert not Outcome("real", (), (replace(ROW, verdict=UNFAITHFUL),)).faithful("peak", "quick")
    at_real = (replace(RUNS, scale="real"), replace(RUNS, profile="bursty", scale="real"))
    both = Outcome("real", (*at_real, RUNS, replace(RUNS, profile="bursty")), (ROW,))
    assert both.faithful("peak", "quick")
    assert not replace(both, runs=(*at_real, RUNS)).faithful("peak", "quick")


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        (PODS, ""),
        (PEAK, "quick; stands for 30 times as much at real time"),
        (Origin(("drain",)), "quick only; not validated at real time"),
        (UNKNOWN, "quick only; not validated at real time"),
        (Origin(("pods", "drain")), "quick only; not validated at real time"),
        (Origin(("pods",), UNSCALED, compared=True), ""),
        (Origin(("peak",), MESSAGES, compared=True), "quick; stands for 30 times as much at real time"),
        (Origin(("drain",), UNSCALED, compared=True), "quick only; size not validated at real time"),
    ],
)
def test_a_claim_says_what_it_is_worth(origin, words):
    """Of a measure that is faithful, of one that is not shown to be, and of a comparison.

    An invariant is of its run and a control of the method; at real time nothing was compressed.
    """
    assert remark("claim", origin, QUICK, OUTCOME) == words
    assert remark("claim", origin, QUICK, OUTCOME, "4 flips (a)") == "quick only; refuted at real time: 4 flips (a)"
    assert {remark("claim", origin, REAL, OUTCOME, "4 flips"), remark("control", origin, QUICK, OUTCOME, "4 flips")} == {""}
    assert remark("claim", PODS, QUICK, NOTHING) == "quick only; not validated at real time"
    assert {remark("invariant", origin, QUICK, OUTCOME), remark("control", origin, QUICK, OUTCOME)} == {""}
    assert remark("claim", origin, REAL, OUTCOME) == ""
