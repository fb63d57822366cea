"""Where a quantity comes from: through arithmetic, runs, pairs and totals."""

import pytest

from lab.judge.aggregate import largest, median, total
from lab.judge.measure import Measure, Runs, measure, number, quantity
from lab.judge.origin import MESSAGES, RATE, TIME, UNKNOWN, UNSCALED, Dimension, Origin
from lab.judge.pairs import discern, paired
from lab.judge.quantity import Quantity


class Walk(Measure):
    """Two numbers and one that is at real time already."""

    seconds = number("s", "time")
    sent = number("messages", "messages sent")
    real_s = number("s", "time at real time", UNSCALED)


@measure
def walk(record) -> Walk:
    """The walk of a record, which is its seconds."""
    return Walk(seconds=record, sent=10 * record, real_s=30 * record)


@quantity("messages/s", "growth")
def growth(record):
    """The growth of a record."""
    return float(record)


HERE = "tests.unit.judge.test_origin"


def test_a_measure_names_its_numbers_and_their_dimension():
    """By class and attribute, or by function; by the unit, or as declared."""
    found = walk(2.0)
    assert found.seconds.origin == Origin((f"{HERE}.Walk.seconds",), TIME)
    assert found.sent.origin == Origin((f"{HERE}.Walk.sent",), MESSAGES)
    assert found.real_s.origin == Origin((f"{HERE}.Walk.real_s",), UNSCALED)
    assert growth(1).origin == Origin((f"{HERE}.growth",), RATE)
    assert Quantity("by hand", "s", 1.0).origin == UNKNOWN


def test_a_name_and_a_factor_change_no_origin():
    """Nor do the runs, their median, and a total of equals."""
    one = walk(2.0).seconds
    several = walk(Runs([2.0, 3.0])).seconds
    changed = [one.named("other", "min"), one * 2, abs(one), one - 1, several, several * 2, Walk.missing("nothing").seconds]
    for other in (*changed, total([one, one]), largest([one]), median([several, several])):
        assert other.origin == one.origin


def test_two_sides_are_compared():
    """The same measure of two trials, as a ratio without a dimension or as a difference with one."""
    a, b = walk(2.0), walk(3.0)
    measures = (f"{HERE}.Walk.seconds",)
    assert (a.seconds / b.seconds).origin == Origin(measures, UNSCALED, compared=True)
    assert (a.seconds - b.seconds).origin == Origin(measures, TIME, compared=True)
    assert (walk(Runs([2.0, 3.0])).seconds / walk(Runs([1.0, 1.0])).seconds).origin.compared
    assert not total([a.seconds / b.seconds, a.seconds]).origin.compared


def test_different_measures_are_no_comparison():
    """Their ratio has the dimension that is left, and both measures."""
    found = walk(2.0)
    rate = found.sent / found.seconds
    assert rate.origin == Origin((f"{HERE}.Walk.sent", f"{HERE}.Walk.seconds"), RATE)
    assert not (found.sent - found.seconds).origin.compared
    assert not (Quantity("by hand", "s", 1.0) / Quantity("by hand", "s", 1.0)).origin.compared


def test_pairs_keep_what_they_compare():
    """The estimate, and what can be told of it or not."""
    a, b = walk(Runs([5.0] * 6)).seconds, walk(Runs([2.0, 2.5, 2.1, 2.2, 2.3, 2.4])).seconds
    difference, same = paired(a, b), paired(b, b)
    wanted = Origin((f"{HERE}.Walk.seconds",), TIME, compared=True)
    assert discern(difference, same).origin == wanted
    assert discern(same, difference).origin == wanted
    assert discern(paired(a.runs[:2], b.runs[:2]), same).origin == wanted
    assert difference.estimate.origin == wanted


@pytest.mark.parametrize(
    ("dimension", "value"), [(UNSCALED, 7), (TIME, 210), (RATE, 7 / 0.3), (MESSAGES, 700), (Dimension(-1, 2), 7 / 30 / 0.09)]
)
def test_a_number_is_stretched_by_its_dimension(dimension, value):
    """A scale of a thirtieth of the time and three tenths of the rate."""
    assert dimension.at_real_time(7, time=30, rate=0.3) == pytest.approx(value)


def test_a_ratio_has_the_dimension_that_is_left():
    """Of either exponent, in either direction. Only the same measures of both sides are a comparison, or two comparisons."""
    found, other = walk(2.0), walk(3.0)
    pairs = ((growth(1), found.sent), (found.seconds, found.sent), (found.seconds, growth(1)), (found.sent, growth(1)))
    wanted = [Dimension(-1, 0), Dimension(0, -1), Dimension(1, -1), TIME]
    assert [(one / another).origin.dimension for one, another in pairs] == wanted
    both, ratio = other.seconds + other.sent, found.seconds / other.seconds
    for less in (found.seconds - both, both - found.seconds, ratio - found.sent, found.sent - ratio):
        assert not less.origin.compared
    assert (ratio - found.sent / other.sent).origin.compared
