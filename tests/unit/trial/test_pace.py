"""The live line's rates: what arrives, what is committed, and when the lag will be gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka.lag import PartitionLag
from lab.trial.pace import WINDOW_S, Pace


def test_a_drain_says_when_it_ends() -> None:
    """1,000/s arrive and 3,000/s are committed: 600,000 messages take 5 minutes, which the line says."""
    pace = Pace()
    pace.read(0, [PartitionLag(700_000, 90_000)])
    rates = pace.read(5, [PartitionLag(705_000, 105_000)])
    assert (rates.lag, rates.arriving, rates.committed, rates.left_s) == (600_000, 1000, 3000, 300)
    assert str(rates) == "lag 600,000, in 1,000/s, out 3,000/s, drained in 5 min 00 s"


def test_a_lag_that_grows_has_no_end() -> None:
    """No time is said, neither then nor of the first reading, which has no rate."""
    pace = Pace()
    assert pace.read(0, [PartitionLag(100, None)]).left_s is None
    assert str(pace.read(10, [PartitionLag(300, 100)])) == "lag 200, in 20/s, out 10/s"


@given(st.lists(st.floats(0.1, 20), min_size=3, max_size=100))
def test_only_the_last_half_minute_counts(steps: list[float]) -> None:
    """A rate that changed long ago is forgotten, and no more readings are kept than the window has."""
    pace, now, end = Pace(), 0.0, 0.0
    pace.read(0, [PartitionLag(0, 0)])
    for step in steps:
        now, end = now + step, end + 10_000 * step
        rates = pace.read(now, [PartitionLag(round(end), round(end))])
    assert rates.arriving == pytest.approx(10_000, rel=0.01)
    assert len(pace._readings) <= WINDOW_S / min(steps) + 2
