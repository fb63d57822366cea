"""The simulator: what a group must do by arithmetic alone, whatever a policy decides."""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab.foresee.curve import Curve, ages, late, worst_age
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples
from tests.unit.foresee.groups import EVEN, PODS, P, lag_150, lasting, step


def test_a_step_scales_out_drains_and_gives_back():
    """lagThreshold 150 on the plateau: up to what 1,800/s need, lag back at a threshold, and the floor again."""
    curve, slow = (
        simulate(Situation(step(180, 1800, duration=2400), EVEN, Consumers(100.0, s)), lag_150()) for s in (3.0, 30.0)
    )
    assert slow.peak_lag > curve.peak_lag + 10_000  # later by the cold start
    assert curve.changes[0] == (165.0, 4, 12)
    assert (curve.replicas.max(), curve.replicas[-1]) == (24, 4)
    assert curve.back_at(150, 750) is not None
    assert curve.log[0].reasons
    straight = Curve(np.array([0.0, 2.0, 4.0]), np.array([100.0, 200.0, 0.0]), np.ones(3, int), np.ones(3, int))
    assert (straight.back_at(100, 2.0), straight.back_at(60, 3.5), straight.back_at(-1)) == (3.0, 3.5, None)


@pytest.mark.parametrize(
    "policies",
    [
        [lag_150(), lag_150(lagThreshold="500"), lag_150(maxReplicaCount=12)],
        [lasting(), lag_150(), lasting(sustainSeconds="30", samplingInterval="5")],
    ],
    ids=["built-in", "lasting"],
)
def test_many_policies_at_once_are_each_as_alone(policies):
    """The same, but for the rounding of what happens between syncs; each scaler samples its own group."""
    situation = Situation(step(180, 1800), EVEN, PODS)
    for one, curve in zip(policies, simulate_many(situation, policies), strict=True):
        alone = simulate(situation, one)
        assert curve.changes[:2] == alone.changes[:2]
        assert curve.peak_lag == pytest.approx(alone.peak_lag, rel=0.02)
        assert curve.pod_minutes == pytest.approx(alone.pod_minutes, rel=0.02)


@pytest.mark.parametrize("policy", [lag_150(minReplicaCount=0), lasting(minReplicaCount=0)], ids=["built-in", "lasting"])
def test_a_group_without_traffic_goes_to_zero_and_comes_back(policy):
    """KEDA takes the last pod away after cooldownPeriod, and brings the first at a poll, whether lag has lasted or not."""
    traffic = Profile((Step(0, 100, "baseline"), Step(300, 0, "drain"), Step(1800, 100, "spike")), 2400.0)
    curve = simulate(Situation(traffic, EVEN, PODS), policy)
    gone = next(at for at, _, after in curve.changes if after == 0 and at > 300)
    back = next(at for at, before, _ in curve.changes if before == 0 and at > gone)
    assert 600 < gone < 1000
    assert 1800 <= back <= 1860


def test_what_is_in_flight_falls_with_the_rate():
    """Shortly after the spike the curve shows the baseline's messages in flight, not the spike's until the next sync."""
    consumers = Consumers(1000.0, 3.0, in_flight_s=0.3)
    curve = simulate(Situation(step(100, 1000, hold=610.0), EVEN, consumers), lag_150())
    assert np.interp(759.9, curve.t, curve.lag) == pytest.approx(300, abs=P)
    assert np.interp(760.4, curve.t, curve.lag) == pytest.approx(30, abs=P)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 200_000), st.floats(0, 0.5), st.sampled_from([1, 2, 4, 8]), st.floats(1, 400))
@example(1900, sys.float_info.min, 1, 1.0)  # what is as good as nothing is no overflow
def test_a_backlog_that_waits_at_the_start_is_worked_off_like_any_other(backlog, part, pods, objective):
    """A floor of pods that is the ceiling: all messages are there, and the oldest is as old as it takes to reach it."""
    capacity = pods * 100.0
    rate = part * capacity
    here = Situation(Profile((Step(0, rate, "drain"),), 600.0), EVEN, replace(PODS, in_flight_s=0.0), backlog=backlog)
    curve = simulate(here, lag_150(minReplicaCount=pods, maxReplicaCount=pods))
    assert curve.lag == pytest.approx(np.maximum(0.0, backlog + (rate - capacity) * curve.t), abs=1.1)
    # The end of the backlog is no point of the curve: what comes within a sync before it is straightened.
    first, end = backlog / capacity, backlog / (capacity - rate)
    behind = (backlog - capacity * objective) / (capacity - rate)
    oldest, over = worst_age(curve, here.arrivals), late(curve, here.arrivals, objective)
    assert oldest == pytest.approx(min(600.0, first), abs=0.1 if end - first > here.sync_s else here.sync_s)
    exact = end - behind - objective > here.sync_s
    assert over == pytest.approx(np.clip(behind, 0, 600.0 - objective), abs=0.1 if exact else here.sync_s)
    times, found = ages(curve, here.arrivals)
    early = times < min(first - 0.1, end - here.sync_s)
    assert found[early] == pytest.approx(times[early])
