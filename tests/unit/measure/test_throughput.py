"""The rolling rate beside an oracle that adds up the receipts of each window by itself."""

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.throughput import GRID_S, Throughput

from .built import receipt

T = 1_700_000_000.0  # an epoch time as they are: a double keeps 0.2 µs of it


def table(rows):
    """Receipts of (start ms, length ms, count), a little after the whole millisecond, so that no window ends on one."""
    return pd.DataFrame([receipt("a", T + (at + 0.4) / 1000, T + (at + 0.4 + takes) / 1000, n) for at, takes, n in rows])


def share(one, start, end):
    """Messages of a receipt that were done from ``start`` to ``end``: the oracle."""
    if one.end == one.start:
        return one.count if start < one.start <= end else 0
    return one.count * max(0.0, min(one.end, end) - max(one.start, start)) / (one.end - one.start)


RECEIPTS = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1500), st.integers(1, 1000)), min_size=1, max_size=12)


@given(RECEIPTS.map(table), st.integers(-500, 3000), st.integers(0, 3000), st.sampled_from([200, 1000]))
def test_the_rolling_rate_is_that_of_each_window_alone(receipts, start, length, window):
    """The cumulative line gives every window what the shares of all receipts in it add up to."""
    begin, wide = T + start / 1000, window / 1000
    starts, rates = Throughput(receipts).rolling(begin, begin + length / 1000, wide)
    assert len(starts) == max(0, (length - window) // 50 + 1)
    assert starts == pytest.approx([begin + GRID_S * k for k in range(len(starts))])
    alone = [sum(share(one, at, at + wide) for one in receipts.itertuples()) / wide for at in starts]
    assert rates == pytest.approx(alone, rel=1e-6, abs=0.1)  # 0.2 µs of an epoch time, in a receipt of 1 ms
