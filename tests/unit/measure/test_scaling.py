"""Flips and monotony on plain sequences."""

from itertools import pairwise

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.aggregate import count_flips
from lab.measure.drain import largest_rise


def flips(levels):
    """The flips of a sequence of replica counts."""
    return count_flips(b > a for a, b in pairwise(levels) if a != b)


def test_up_then_down_is_no_flip():
    """One spike, absorbed and given back, is what autoscaling is for."""
    assert flips([4, 12, 24, 20, 4]) == 0


def test_down_then_up_is_a_flip():
    """Each scale-down that is followed by a scale-up counts once."""
    assert flips([4, 24, 10, 24, 4, 6]) == 2


@given(st.lists(st.integers(1, 24), max_size=30))
def test_flips_are_valleys(levels):
    """As many flips as there are valleys in the curve."""
    curve = [level for level, before in zip(levels, [None, *levels], strict=False) if level != before]
    valleys = sum(1 for a, b, c in zip(curve, curve[1:], curve[2:], strict=False) if a > b < c)
    assert flips(levels) == valleys


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_the_largest_rise_is_the_worst_step_back(values):
    """The most any later value exceeds an earlier one; 0 for a fall."""
    worst = max(later - earlier for i, earlier in enumerate(values) for later in values[i:])
    assert largest_rise(pd.Series(values)) == worst
