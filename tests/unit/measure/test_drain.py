"""The drain is judged from the spike's end until lag is at one lagThreshold, and a rise is held to what commits move."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.drain import drain, largest_rise

from .conftest import LAG, REPORTS, TRANSITIONS, build

# 2,420 messages/s arrive after the spike. At quick a commit comes every 5 / 30 s, and a poll's work takes 0.05 s.
BETWEEN_COMMITS = 2_420 * (5 / 30 + 0.05)


@pytest.mark.parametrize(
    ("lag", "rise"),
    [
        (LAG, 900),
        (LAG | {1031: 89_000}, 0),
        (LAG | {1060: 39_000, 1063: 38_000, 1065: 42_000}, 4_000),  # when the HPA had taken the pods away
        (LAG | {1062: 9_000}, 900),  # lag was at one lagThreshold before: the drain was over
    ],
)
def test_all_of_the_drain_is_judged(tmp_path, lag, rise):
    """However many pods there are; lag below the lowest so far is no rise."""
    found = drain(build(tmp_path, TRANSITIONS, REPORTS, dict(sorted(lag.items()))))
    assert found.largest_rise.value == rise
    assert found.between_commits.value == pytest.approx(BETWEEN_COMMITS)
    assert found.rise_over_commits.value == pytest.approx(rise / BETWEEN_COMMITS)


def test_a_group_that_never_had_all_its_pods_has_a_drain(tmp_path):
    """It wanted 4 pods throughout."""
    found = drain(build(tmp_path, TRANSITIONS[:1], REPORTS))
    assert (found.seconds.value, found.largest_rise.value) == (40, 900)


def group(rates, phases, rate, pause=0):
    """The lag of a group of a partition for each of ``rates``, at each step; ``rate`` arrives at each partition in a step.

    Each partition processes its rate and commits every 10 steps, from its phase on. For ``pause`` steps none processes.
    """
    steps = np.arange(60)
    speed = np.outer(rates, (steps < 20) | (steps >= 20 + pause))
    processed = np.cumsum(speed, axis=1)
    committed = np.zeros_like(processed)
    for partition, phase in enumerate(phases):
        last = steps - (steps - phase) % 10
        committed[partition] = np.where(last >= 0, processed[partition][np.maximum(last, 0)], 0)
    produced = 10_000 + rate * (steps + 1)
    return pd.Series((produced - committed).sum(axis=0)[10:])  # from when each partition has committed


@given(
    st.lists(st.tuples(st.integers(7, 40), st.integers(0, 9)), min_size=1, max_size=6),
    st.integers(0, 7),
)
def test_a_backlog_that_falls_has_no_rise_beyond_a_commits(partitions, rate):
    """At whatever points the partitions' commits come, and however much faster than the arrivals each is processed."""
    rates, phases = zip(*partitions, strict=True)
    assert largest_rise(group(rates, phases, rate)) <= rate * len(rates) * 10


def test_a_group_that_pauses_is_seen():
    """Nothing is processed for two commit intervals: a backlog that rises, whenever commits come."""
    bound = 7 * 2 * 10
    assert largest_rise(group([9, 9], [0, 5], 7, pause=20)) > bound
    assert largest_rise(group([9, 9], [0, 5], 7)) <= bound
