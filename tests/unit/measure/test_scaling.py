"""Flips and monotony on plain sequences."""

from itertools import pairwise

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.aggregate import count_flips
from lab.measure.drain import largest_rise


@given(st.lists(st.integers(1, 24), max_size=30))
def test_flips_are_valleys(levels):
    """As many flips as there are valleys in the curve."""
    curve = [level for level, before in zip(levels, [None, *levels], strict=False) if level != before]
    valleys = sum(1 for a, b, c in zip(curve, curve[1:], curve[2:], strict=False) if a > b < c)
    assert count_flips(later > earlier for earlier, later in pairwise(levels) if earlier != later) == valleys


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=50))
def test_the_largest_rise_is_the_worst_step_back(values):
    """The most any later value exceeds an earlier one; 0 for a fall."""
    worst = max(later - earlier for i, earlier in enumerate(values) for later in values[i:])
    assert largest_rise(pd.Series(values)) == worst
