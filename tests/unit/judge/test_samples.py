"""Offsets of two samples against every outcome there is, and samples that are off by a known amount."""

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.samples import differences, mann_whitney, relative_errors

VALUES = st.lists(st.floats(0.1, 1e6), min_size=1, max_size=7)


@pytest.mark.parametrize(("m", "n"), [(1, 1), (2, 1), (2, 2), (3, 2), (4, 3), (6, 2), (5, 5)])
def test_the_counts_are_of_every_order(m, n):
    """Against all places that m values can have among m + n."""
    found = [0] * (m * n + 1)
    for places in combinations(range(m + n), m):
        found[sum(place - rank for rank, place in enumerate(places))] += 1
    assert mann_whitney(m, n) == tuple(found)


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
    with pytest.raises(ValueError, match="can't be compared"):
        differences(sample, reference)
    with pytest.raises(ValueError, match="above 0"):
        relative_errors([1.0], [0.0])
