"""Aggregates of quantities, the interval of a median, and offsets of two samples, against every outcome there is."""

import math
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.aggregate import confidence, count_flips, enclosing, largest, median, smallest, spread, total
from lab.judge.quantity import Quantity
from lab.judge.samples import differences, mann_whitney, relative_errors

THREE = [Quantity("lag", "messages", value) for value in (4, 1, 10)]
NONE = Quantity("lag of c", "messages", None, "no sample of c")


@pytest.mark.parametrize(("aggregate", "value"), [(total, 15), (largest, 10), (smallest, 1), (median, 4)])
def test_several_are_one_of_their_unit_and_name(aggregate, value):
    """Its verdict reads as that of one of them."""
    found = aggregate(THREE)
    assert (found.value, found.unit, found.name) == (value, "messages", "lag")


@pytest.mark.parametrize("aggregate", [total, largest, smallest, median])
def test_one_that_is_missing_is_no_data(aggregate):
    """Also where the others alone would decide, and where there is none at all."""
    assert (aggregate([*THREE, NONE]).value, aggregate([*THREE, NONE]).why) == (None, "no sample of c")
    assert (aggregate([]).value, aggregate([]).why) == (None, "there is no quantity to aggregate")


@pytest.mark.parametrize("aggregate", [total, largest, smallest, median])
@pytest.mark.parametrize("values", [(1, math.nan), (math.nan, 1), (1, math.nan, 3)])
def test_one_that_is_not_a_number_is_no_data(aggregate, values):
    """Wherever it stands among the others."""
    found = aggregate(Quantity("lag", "messages", value) for value in values)
    assert (found.value, found.why, found.unit) == (None, "lag is not a number", "messages")


def test_the_first_gives_name_and_unit():
    """Whatever the others are called."""
    found = total([Quantity("lag", "messages", 4), Quantity("lag of b", "pods", 1)])
    assert (found.name, found.unit, found.value) == ("lag", "messages", 5)


@pytest.mark.parametrize("n", [1, 2, 5, 8, 9, 12, 15])
def test_the_confidence_is_the_share_of_all_outcomes(n):
    """Of the 2^n ways n values can lie about the median, the interval's ranks hold it in just that share; 95 % from n = 9."""
    found = spread(list(range(n)))
    low, high = int(found.low), int(found.high)  # the values are their own ranks
    held = sum(low < sum(above) <= high for above in product((0, 1), repeat=n))  # sum(above): values below the median
    assert found.confidence == pytest.approx(held / 2**n)
    if n >= 9:
        assert found.confidence >= 0.95
        narrower = sum(low + 1 < sum(above) <= high - 1 for above in product((0, 1), repeat=n))
        assert narrower / 2**n < 0.95
    else:
        assert (low, high) == (0, n - 1)
        assert found.confidence == pytest.approx(1 - 2 ** (1 - n))


def test_an_interval_of_just_95_percent_is_taken():
    """As the narrowest. Fewer outcomes than two leave no confidence, and no number below 0."""
    assert enclosing(range(80), [1] * 80) == (1, 78, 0.95)
    assert confidence([1], 1) == 0


@pytest.mark.parametrize(("ups", "flips"), [("", 0), ("uu", 0), ("du", 1), ("udduudu", 2), ("ud", 0)])
def test_a_flip_is_a_step_up_after_one_down(ups, flips):
    """However many went down before it."""
    assert count_flips(one == "u" for one in ups) == flips


@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_the_interval_holds_the_median_and_forgets_the_order(values):
    """Both ends are values, the median lies between, and the order of repetitions is nothing."""
    found = spread(values)
    assert {found.low.value, found.high.value} <= set(values)
    assert found.low.number <= found.median.number <= found.high.number
    assert str(spread(sorted(values, reverse=True))) == str(found)


@pytest.mark.parametrize("values", [[], [1.0, math.nan]])
def test_no_value_is_refused(values):
    """Neither an empty list nor a NaN has a median."""
    with pytest.raises(ValueError, match="spread"):
        spread(values)


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ([3.1, 4.0, 4.4, 4.6, 5.0], "4.4 (3.1-5.0, n = 5, 94 %)"),
        ([0.161, 0.1, 0.2], "0.16 (0.10-0.20, n = 3, 75 %)"),
        ([23_512.4, 21_000], "22,256 (21,000-23,512, n = 2, 50 %)"),
        ([0, 0, 0], "0 (0-0, n = 3, 75 %)"),
        ([0.5, 1, 30], "1.0 (0.5-30.0, n = 3, 75 %)"),
        ([-0.2, 0, 0.001], "0.00 (-0.20-0.00, n = 3, 75 %)"),  # of the ends where the median is 0
        ([math.inf], "inf (inf-inf, n = 1, 0 %)"),  # a recovery that never came is a value
    ],
)
def test_it_reads_like_a_result(values, text):
    """Two significant digits of the median, thousands grouped."""
    assert str(spread(values)) == text


def test_quantities_keep_their_name_and_unit():
    """One that is missing leaves no median and no interval: the others might all lie on one side of it."""
    seconds = [Quantity("reaction", "s", value) for value in (5, 4, 6)]
    found = spread(seconds)
    assert [str(one) for one in (found.low, found.median, found.high)] == ["reaction: 4 s", "reaction: 5 s", "reaction: 6 s"]
    missing = spread([*seconds, Quantity("reaction", "s", None, "no pod")])
    assert [one.why for one in (missing.low, missing.median, missing.high)] == ["no pod"] * 3
    assert (missing.n, missing.confidence, str(missing)) == (4, 0, "no data (no pod)")


VALUES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=7)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 2), (5, 5)])
def test_the_counts_are_of_every_order(m, n):
    """Against all places that m values can have among m + n."""
    found = [0] * (m * n + 1)
    for places in combinations(range(m + n), m):
        found[sum(place - rank for rank, place in enumerate(places))] += 1
    assert mann_whitney(m, n) == tuple(found)


def test_many_values_are_counted_too():
    """Twenty of each have 138 thousand million orders, which nobody goes through one by one."""
    assert sum(mann_whitney(20, 20)) == math.comb(40, 20)


@pytest.mark.parametrize(("m", "n", "worth"), [(1, 1, 0), (2, 2, 2 / 3), (6, 1, 5 / 7), (6, 2, 13 / 14), (3, 3, 0.9)])
def test_few_values_give_the_widest_interval_with_what_it_is_worth(m, n, worth):
    """Six at one scale and two at real time have 93 %."""
    found = differences([float(one) for one in range(m)], [float(one) for one in range(n)])
    assert (found.low, found.high) == (1 - n, m - 1)
    assert found.confidence == pytest.approx(worth)


@given(values=VALUES, other=VALUES, shift=st.floats(-1e6, 1e6))
def test_a_shift_shifts_the_offset(values, other, shift):
    """Estimate and interval move with the sample; the estimate lies within."""
    here, there = differences(values, other), differences([one + shift for one in values], other)
    assert here.low <= here.estimate <= here.high
    for name in ("estimate", "low", "high"):
        assert getattr(there, name) == pytest.approx(getattr(here, name) + shift, abs=1e-6)


@given(values=VALUES, factor=st.floats(0.01, 100))
def test_the_relative_error_of_a_factor_is_the_factor(values, factor):
    """Of a sample against itself times a factor; 1/factor turns it round."""
    found = relative_errors([one * factor for one in values], values)
    assert found.low <= factor - 1 + 1e-9 * factor
    assert found.high >= factor - 1 - 1e-9 * factor
    alone = relative_errors([values[0] * factor], [values[0]])
    assert alone.estimate == pytest.approx(factor - 1, abs=1e-9)


@pytest.mark.parametrize(("sample", "reference"), [([1.0], []), ([], [1.0]), ([float("nan")], [1.0])])
def test_nothing_to_compare_is_refused(sample, reference):
    """No value, or one that is no number; and 0 has no relative error."""
    for compare in (differences, relative_errors):
        with pytest.raises(ValueError, match="can't be compared"):
            compare(sample, reference)
    with pytest.raises(ValueError, match="above 0"):
        relative_errors([1.0], [0.0])
    with pytest.raises(ValueError, match="above 0"):
        relative_errors([-1.0], [1.0])
