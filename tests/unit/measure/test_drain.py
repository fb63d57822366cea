"""What a policy is held to, on records in which every number is known: the drain and its rises, bounds and flips."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.drain import LEAST_DRAIN_S, best_drain, drain, ideal_time, largest_rise
from lab.measure.scaling import policy_excess

from . import built, whole
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


BOUNDS = whole.scaled(minReplicaCount=2, maxReplicaCount=4)
POD = {"process_ms": "10", "concurrency": 1}  # 100 messages/s
PHASES = ((0, "baseline"), (10, "spike"), (20, "drain"))


def record(folder, *, replicas=(), backlog=(0, 0), lag=None, partitions=4, after=0.0, phases=PHASES):
    """A trial of pods of 100/s from 2 to 4: ``backlog`` by partition when the spike ends at 120 s, ``lag`` in all over time."""
    content, told = built.profile(100, 60, *phases)
    content["profile"]["steps"][-1]["rate"] = after
    inputs = content | {"policy": BOUNDS, "partitions": partitions, "workload": POD, "scale": {"time": 1, "rate": 1}}
    curve = {115: 1.0, 120: float(sum(backlog)), 130: 0.0} if lag is None else lag
    samples = built.lags(curve)
    samples += [
        built.sample(120, "kafka_consumergroup_lag", value, partition=str(number)) for number, value in enumerate(backlog)
    ]
    receipts = [built.receipt("a", 101, 102, 50, partition=number) for number in range(len(backlog))]
    transitions = built.replicas(*replicas)
    rows = {"samples": samples, "receipts": receipts, "group_events": told, "transitions": transitions}
    return built.record(folder, inputs=inputs, times={"settling": 90, "ended": 160}, **rows)


@pytest.mark.parametrize(
    ("wanted", "name", "number"),
    [
        ([2, 4, 4, 2], None, 0),
        ([2, 7, 2], "outside_bounds", 3),
        ([2, 1, 2], "outside_bounds", 1),
        ([2, 4, 2], "beyond_partitions", 1),
        ([2, 4, 3, 4, 2], "flips", 1),
        ([2, 4, 3], "above_floor_at_end", 1),
    ],
)
def test_what_is_not_kept_is_counted(tmp_path, wanted, name, number):
    """Pods above the ceiling or below the floor, beyond 3 partitions, flips, and pods that were never given back."""
    rows = [(100 + 10 * step, replicas, replicas) for step, replicas in enumerate(wanted)]
    found = policy_excess(record(tmp_path, replicas=rows, partitions=3 if name else 4)).to_dict()
    assert list(found.values()) == [0, 0, 0, 0] if name is None else found[name] == number


def test_bounds_need_no_spike(tmp_path):
    """On a steady profile flips and bounds are known; without a Deployment nothing is."""
    steady = record(tmp_path, replicas=[(100, 2, 2)], phases=PHASES[:1])
    assert policy_excess(steady).flips.value == 0
    assert "Deployment" in policy_excess(record(tmp_path)).flips.why


SHARED = {"backlog": (400,) * 8, "partitions": 8}  # 3,200 messages for 4 pods of 100/s


@pytest.mark.parametrize(
    ("trial", "best_s"),
    [
        ({"backlog": (900, 100)}, 8),  # the hottest partition holds 900 messages, and one pod takes 100/s
        ({"backlog": (900, 100), "after": 100.0}, 16),  # of which 50/s arrive
        ({"backlog": (650, 640)}, 5.95),  # two partitions share the 100 that may be left
        (SHARED, 3100 / 400),
        ({"backlog": (600, 1000), "partitions": 2}, 9),
        ({"backlog": (900, 900), "partitions": 2}, 1700 / 200),  # fewer partitions than pods: 2 of 100/s
        (SHARED | {"after": 100.0}, 3100 / 300),  # 100/s arrive, which leaves 300/s of the 400
        ({"lag": {110: 50.0, 120: 50.0, 130: 0.0}}, LEAST_DRAIN_S),  # a policy that held the spike without a backlog
    ],
)
def test_skew_and_ceiling_bound_the_best_drain(tmp_path, trial, best_s):
    """It took 10 s, or none where nothing was to drain. The best ends at one lagThreshold too, which is 100."""
    found = best_drain(record(tmp_path, **trial))
    assert (found.seconds.value, found.best_s.value) == (0 if "lag" in trial else 10, pytest.approx(best_s))
    assert found.over_best.value == pytest.approx(found.seconds.value / best_s)
    assert found.over_best.name.endswith("allow, 5 s at least")


@pytest.mark.parametrize(
    ("trial", "why"), [(SHARED | {"after": 400.0}, "as much arrives"), ({"phases": PHASES[:2]}, "ended in phase 'spike'")]
)
def test_a_drain_that_can_not_be_is_no_data(tmp_path, trial, why):
    """As much arrives as the pods take, or the load has no end: there is no best to compare with, so it does not pass."""
    found = best_drain(record(tmp_path, **trial)).over_best
    assert found.value is None
    assert why in found.why


PARTITIONS = st.lists(st.tuples(st.integers(0, 9_000), st.integers(1, 200)), min_size=1, max_size=24)


@given(PARTITIONS, st.integers(0, 20_000))
def test_the_ideal_time_is_that_of_a_bisection(partitions, most):
    """For any backlogs and spares, and any number that may be left: none, or more than there is."""
    low, high = 0.0, max(backlog / spare for backlog, spare in partitions)
    for _ in range(60):
        middle = (low + high) / 2
        left = sum(max(0.0, backlog - spare * middle) for backlog, spare in partitions)
        low, high = (low, middle) if left <= most else (middle, high)
    backlogs, spares = zip(*partitions, strict=True)
    assert ideal_time(backlogs, spares, most) == pytest.approx(high, abs=1e-6)


@pytest.mark.parametrize("spare", [0.0, -1.0])
def test_a_backlog_that_never_falls_has_no_ideal_time(spare):
    """Also where it is small, or nothing waits there yet: as much arrives as the pod takes, or more."""
    assert [ideal_time([900, one], [100, spare], 100) for one in (0, 10, 500)] == [math.inf] * 3
