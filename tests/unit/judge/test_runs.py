"""A repeated trial: measures take its runs like a record, and a claim is held only where each run holds it."""

import math

import pytest

from lab.errors import NoData
from lab.judge.aggregate import largest, median
from lab.judge.claim import BREACHED, HELD, NO_DATA, Repeats, judge
from lab.judge.measure import Measure, Runs, detail, measure, number, quantity
from lab.judge.origin import MESSAGES, TIME, Origin
from lab.judge.quantity import Quantity, in_blocks, repeated


class Hold(Measure):
    """Two numbers and a detail."""

    growth = number("messages/s", "growth of lag")
    peak = number("messages", "peak lag")
    pods = detail(list, "the pods")

    @property
    def share(self):
        """Of the peak."""
        return self.growth / self.peak


@measure
def hold(record: float) -> Hold:
    """Of a "record" that is a number; below 0 it holds nothing."""
    if record < 0:
        raise NoData("no sample")
    return Hold(growth=record, peak=10 * record, pods=[record])


@quantity("s", "age")
def age(record: float, objective: float) -> float:
    """A function of one number."""
    return record / objective


def test_a_measure_of_runs_is_measured_in_each():
    """Numbers, details and what is computed of them; the value of several is their median."""
    found = hold(Runs([3, 1, 5]))
    assert str(found.growth) == "growth of lag: 3 messages/s"
    assert [one.value for one in found.growth.runs] == [3, 1, 5]
    assert found.pods == Runs([[3], [1], [5]])
    assert [one.value for one in found.share.runs] == [0.1, 0.1, 0.1]
    assert [one.value for one in age(Runs([4, 8]), 2).runs] == [2, 4]
    assert hold(3).growth.runs == ()


def test_arithmetic_goes_block_by_block():
    """The ratio of two sides is that of each block, not that of the medians."""
    one, other = hold(Runs([4, 9, 8])), hold(Runs([2, 3, 1]))
    assert [each.value for each in (one.peak / other.peak).runs] == [2, 3, 8]
    assert [each.value for each in (one.peak - 10).runs] == [30, 80, 70]
    assert [each.value for each in (hold(6).peak - one.peak).runs] == [20, -30, -20]
    assert [each.value for each in abs((one.growth - 8) * 2).runs] == [8, 2, 0]
    assert [each.name for each in (one.peak / other.peak).named("ratio").runs] == ["ratio"] * 3
    assert [each.value for each in largest([one.growth, other.growth, hold(5).growth]).runs] == [5, 9, 8]
    assert [each.value for each in median([one.growth]).runs] == [4, 9, 8]


def test_runs_of_different_numbers_have_no_blocks():
    """Nor measures of two of them. Of no run there is nothing to repeat, and a measure has none to show."""
    with pytest.raises(ValueError, match="no run"):
        repeated([])
    with pytest.raises(ValueError, match="2 and 3 runs have no blocks"):
        _ = hold(Runs([1, 2])).peak - hold(Runs([1, 2, 3])).peak
    with pytest.raises(ValueError, match="1 and 2 in number: they must be as many"):
        age(Runs([1, 2]), Runs([1]))
    assert Hold.of_runs([]).runs == ()
    with pytest.raises(ValueError, match="the runs to measure are 0 in number"):
        age(Runs([]), 2)


@pytest.mark.parametrize(
    ("values", "verdict", "held"),
    [
        ([1, 2, 3], HELD, 3),
        ([1, 2, 9], BREACHED, 2),
        ([9, 9, 9], BREACHED, 0),
        ([1, -1, 2], NO_DATA, 2),
        ([9, -1], BREACHED, 0),
    ],
)
def test_a_breach_in_one_run_is_a_breach_with_its_rate(values, verdict, held):
    """It is no pass because the median holds; a run without a number is no pass either."""
    found = judge(hold(Runs(values)).growth < 5, "it ends")
    assert (found.verdict, found.repeats.n, found.repeats.held) == (verdict, len(values), held)


def test_a_verdict_of_runs_says_how_often_the_worst_and_the_interval():
    """In its line."""
    found = judge(hold(Runs([1, 2, 3, 2, 6, 4])).growth <= 5, "it ends")
    assert (found.measured, found.repeats.worst, found.repeats.low, found.repeats.high) == (2.5, 6, 1, 6)
    said = "held in 5 of 6, worst 6, median within 1 to 6 (97 %)"
    assert f"wanted ≤ 5 messages/s ({said}): breached" in str(found)
    assert judge(hold(Runs([3, 1])).growth >= 1, "x").repeats.worst == 1
    assert judge(hold(Runs([3, 1])).growth == 2.5, "x").repeats.worst == 1
    assert judge(hold(Runs([3, 1, 6])).growth == 2.5, "x").repeats.worst == 6
    unknown = judge(hold(Runs([1, -1])).growth < 5, "it ends")  # the summary of the others would hide the one without
    assert (unknown.measured, unknown.note, str(unknown.repeats)) == (None, "run 2 of 2: no sample", "held in 1 of 2")
    no_number = judge(hold(Runs([1, math.nan])).growth < 5, "it ends")
    assert (no_number.verdict, no_number.repeats.low) == (BREACHED, None)


def test_a_single_run_is_judged_like_a_record():
    """It repeats nothing, and has no details by run."""
    assert (hold(Runs([1])), age(Runs([8]), 2).runs) == (hold(1), ())
    found = judge(hold(Runs([1])).growth < 5, "it ends")
    assert (found.verdict, found.measured, found.repeats) == (HELD, 1, None)
    alone = Quantity("growth of lag", "messages/s", 1, runs=(hold(1).growth,))
    assert judge(alone < 5, "it ends").repeats is None


@pytest.mark.parametrize("missing", ["worst", "low", "high", "confidence"])
def test_repeats_without_one_of_their_numbers_are_counted_alone(missing):
    """Whichever of them a file has not."""
    known = {"worst": 6.0, "low": 1.0, "high": 6.0, "confidence": 0.97, missing: None}
    assert str(Repeats(6, 5, **known)) == "held in 5 of 6"


def test_several_have_the_name_the_unit_and_the_origin_of_the_first():
    """And what was not repeated is one block of itself."""
    first = Quantity("lag", "messages", 4, origin=Origin(("a",), MESSAGES))
    found = repeated([first, Quantity("lag of b", "pods", 2, origin=Origin(("b",), TIME))])
    assert (found.name, found.unit, found.value, found.origin) == ("lag", "messages", 3, first.origin)
    assert [len(blocks) for blocks in in_blocks([first, first])] == [1, 1]
