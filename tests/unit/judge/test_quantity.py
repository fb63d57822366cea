"""Quantities, measures and claims: a missing number is carried on and never passes."""

import copy
import json
import math
import pickle
from dataclasses import replace

import pytest

from lab.errors import NoData
from lab.judge.claim import BREACHED, HELD, NO_DATA, absent, judge
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.judge.quantity import NO_REASON, Bound, Quantity, absence

SEVEN, NONE, NAN = (Quantity("flips", "flips", value, why) for value, why in ((7, ""), (None, "no sample"), (math.nan, "")))


class Pair(Measure):
    """Two numbers and a name."""

    first = number("s", "the first")
    second = number("pods", "the second")
    who = detail(str, "the pod")


@measure
def pair(first: float | None) -> Pair:
    """A pair; none for a negative number."""
    if first is not None and first < 0:
        raise NoData("nothing below 0")
    return Pair(first=first, second=2, who="a")


@pytest.mark.parametrize(
    ("comparison", "verdict"),
    [
        (SEVEN == 7, HELD),
        (SEVEN == 0, BREACHED),
        (SEVEN < 7, BREACHED),
        (SEVEN <= 7, HELD),
        (SEVEN > 7, BREACHED),
        (SEVEN >= 7, HELD),
        (NAN < 20, BREACHED),  # whatever the bound
        (NAN == 20, BREACHED),
        (NAN >= 20, BREACHED),
        (SEVEN / SEVEN == 1, HELD),
        (SEVEN - 3 == 4, HELD),
        (SEVEN * 2 > 13, HELD),
        (NONE == 0, NO_DATA),
        (NONE <= 10, NO_DATA),
        (NONE / SEVEN <= 10, NO_DATA),
        (SEVEN / NONE <= 10, NO_DATA),
        (SEVEN / 0 <= 10, NO_DATA),
    ],
)
def test_a_comparison_becomes_a_verdict(comparison, verdict):
    """Held, breached, or no data where any part of it is missing."""
    assert judge(comparison, "as it should be").verdict == verdict


def test_a_bound_can_be_copied_with_its_source():
    """Also into another process, as the tuner does with what it is given."""
    bound = Bound(5, "text 1")
    for again in (pickle.loads(pickle.dumps(bound)), copy.deepcopy(bound)):
        assert (again, again.source) == (5, "text 1")


def test_a_verdict_carries_number_bound_unit_sentence_and_source():
    """All of it is in the row and in the line."""
    found = judge(Bound(5, "text 1, section 5") >= SEVEN, "calm is cheap", kind="control")
    assert (found.objective, found.measured, found.operator, found.bound, found.unit) == ("flips", 7, "<=", 5, "flips")
    assert (found.kind, found.source) == ("control", "text 1, section 5")
    assert str(found) == "flips: 7 flips, wanted ≤ 5 flips: breached: calm is cheap"
    assert str(judge(NONE == 0, "calm")) == "flips: no data (no sample); wanted = 0 flips: calm"
    assert judge(sentence="calm", comparison=SEVEN == 7) == judge(SEVEN == 7, "calm")


def test_a_verdict_says_beside_its_number_what_it_leaves_out():
    """And what it is worth at real time. A figure that is missing is a control without data; another kind is refused."""
    found = judge(Quantity("flips", "flips", 7, "of half the trial") == 7, "calm")
    assert str(replace(found, real_time="quick only")) == (
        "flips: 7 flips, wanted = 7 flips: held (of half the trial) (quick only): calm"
    )
    assert str(judge(SEVEN <= 8, "")) == "flips: 7 flips, wanted ≤ 8 flips: held"
    lacking = absent("no sample")
    assert (lacking.verdict, lacking.kind, lacking.note, lacking.operator, lacking.bound) == (
        NO_DATA,
        "control",
        "no sample",
        "==",
        0,
    )
    with pytest.raises(ValueError, match="kind 'guess'; allowed: invariant, control, claim"):
        judge(SEVEN == 7, "calm", kind="guess")


def test_a_comparison_is_no_truth_value():
    """``assert flips == 0`` would hold whatever was measured. A bare number or truth value has no bound to show."""
    with pytest.raises(TypeError, match="hand it to claim"):
        assert SEVEN == 0
    for other in (True, 7, SEVEN):
        with pytest.raises(TypeError, match="compared with a bound"):
            judge(other, "anything")
    for missing in (NONE, SEVEN):  # a bound that has no number would be held
        with pytest.raises(TypeError, match="compare their difference with 0"):
            judge(missing >= SEVEN, "anything")


def test_a_ratio_names_both_and_loses_its_unit():
    """Equal units give a ratio, others a rate."""
    assert str(SEVEN / Quantity("peaks", json.loads('"flips"'), 2)) == "flips over peaks: 3.5 x"
    assert str(SEVEN / Quantity("time", "s", 2)) == "flips over time: 3.5 flips / s"
    assert str(SEVEN + Quantity("peaks", "flips", 2)) == "flips and peaks: 9 flips"
    assert (str(SEVEN - 3), f"{SEVEN:.1f}", f"{NONE:.1f}") == ("flips less 3: 4 flips", "7.0", "no data")
    assert str(NONE / SEVEN) == "flips over flips: no data (no sample)"


def test_a_measure_gives_each_quantity_its_unit_and_reason():
    """A number that is None has no data by itself; a measure that raised has none at all."""
    assert (pair(3).first.value, pair(3).first.unit, pair(3).who) == (3, "s", "a")
    assert pair(None).first.value is None
    assert pair(None).second.value == 2
    assert (pair(-1).second.value, pair(-1).second.why) == (None, "nothing below 0")
    assert pair(-1).to_dict() == {"no data": "nothing below 0"}
    with pytest.raises(NoData, match="nothing below 0"):
        _ = pair(-1).who
    with pytest.raises(NoData, match="no the first"):
        _ = pair(None).first.number


def test_a_measure_is_made_of_exactly_what_it_declares():
    """A forgotten or misspelt number is an error of the measure, not a missing number."""
    with pytest.raises(TypeError, match="first, second, who; not as declared: frist"):
        Pair(frist=1, first=1, second=2, who="a")
    assert Pair(first=1, second=2, who="a") == pair(1) != pair(2)
    with pytest.raises(TypeError, match="first, second, who; not as declared: second, who"):
        Pair(first=1)


@quantity("s", "gap")
def gap(seconds):
    """The seconds, of which there may be none."""
    if seconds is None:
        raise NoData("no gap")
    return seconds


def test_a_function_of_one_number_has_its_reason_where_there_is_none():
    """With its unit, as a number has."""
    assert (gap(3.0).value, gap(3.0).unit) == (3, "s")
    assert (gap(None).value, gap(None).unit, gap(None).why) == (None, "s", "no gap")


@pytest.mark.parametrize(
    ("figure", "why"),
    [(7, ""), (SEVEN, ""), (None, NO_REASON), (math.nan, NO_REASON), (NONE, "no sample"), (NAN, NO_REASON)],
)
def test_a_figure_without_a_number_says_why(figure, why):
    """A quantity's own reason, where it has one."""
    assert absence(figure) == why


def test_a_number_has_every_unit_and_divisor_but_0():
    """Names and units are as they are told, and stay where they are not. A quantity is no key: equality is a comparison."""
    renamed = SEVEN.named("peaks"), SEVEN.named("peaks", "x")
    assert [(one.name, one.unit, one.value) for one in renamed] == [("peaks", "flips", 7), ("peaks", "x", 7)]
    assert [(SEVEN / one).value for one in (1, -2)] == [7, -3.5]
    assert (SEVEN / 0.0).why == "the divisor is 0"
    assert str(Quantity("time", "s", 14) / SEVEN) == "time over flips: 2 s / flips"
    with pytest.raises(TypeError, match="unhashable"):
        hash(SEVEN)


@pytest.mark.parametrize(("word", "passes"), [("held", True), *((word, False) for word in ("breached", "no data", "invalid"))])
def test_a_verdict_passes_by_its_word(word, passes):
    """As it is read from a file, too."""
    found = replace(judge(SEVEN == 7, "calm"), verdict=json.loads(f'"{word}"'))
    assert found.passes is passes
    assert replace(found, as_expected=not passes).passes is not passes
