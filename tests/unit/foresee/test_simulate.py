"""The simulator: what a group must do by arithmetic alone, whatever a policy decides.

Points of the HPA's sync and of commits: what is read there decides, and a policy is chosen by the worst of them.
"""

import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.foresee.choice import FIGURES, at_worst, outcome, outcomes, recommend, worst_outcome
from lab.foresee.curve import Curve, ages, late, worst_age
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation, points
from lab.foresee.variants import DOWN_TOLERANCE, DOWN_WINDOW, THRESHOLD, with_changes
from lab.inputs import profile, scaledobject
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


STEP = Situation(step(180, 1800), EVEN, PODS)


def test_the_first_point_is_the_situation_and_the_others_begin_later():
    """Fifths of a sync; where a swing is known lag is read close to its ends in turn, which a mean that is given has not."""
    here = replace(STEP, swing=(0.05, 5.05), sync_s=5.0)
    first, *others = points(here)
    assert first is here
    assert [(one.phase_s, round(one.read_s, 9)) for one in others] == [(1, 4.55), (2, 0.55), (3, 4.55), (4, 0.55)]
    assert [one.read_s for one in points(STEP)] == [None] * 5


@given(st.integers(10, 400), st.floats(0, 20))
@settings(max_examples=examples(20), deadline=None)
def test_what_is_read_decides_and_the_mean_is_shown(rate, read_s):
    """A group of 4 pods that keeps up: as many are asked for as what is read needs, and the curve's lag is the mean."""
    curve = simulate(replace(STEP, profile=step(rate, rate), read_s=read_s), lag_150(lagThreshold="100"))
    assert np.interp(10.0, curve.t, curve.lag) == pytest.approx(rate * PODS.in_flight_s, abs=1)
    asked = int(rate * read_s + 1e-6) / 100
    assert curve.replicas.max() == (4 if asked <= 4.4 else min(24, np.ceil(asked)))


@given(st.integers(500, 5000), st.sampled_from([0, 30, 120]), st.sampled_from([None, (0.0, 5.0)]))
@settings(max_examples=examples(10), deadline=None)
def test_the_worst_is_that_of_each_figure_at_any_point(threshold, window, swing):
    """Simulated alone, and in a pass for each point."""
    here = replace(STEP, swing=swing)
    variant = with_changes(lag_150(), {THRESHOLD: threshold, DOWN_WINDOW: window})
    each = [outcome(point, variant, 2.0) for point in points(here)]
    found = worst_outcome(here, variant, 2.0)
    assert all(getattr(found, name) == max(getattr(one, name) for one in each) for name in FIGURES)
    (rough,) = at_worst(here, outcomes(here, [variant], 2.0), 2.0)
    assert rough == found


BURSTS = profile.load(paths.PROFILES / "ten-bursts.yaml")


def test_a_tolerance_that_holds_on_average_flips_where_syncs_read_just_after_commits():
    """As at real time: 0.94 at 3,000 ended the flapping in a simulation of the mean alone, and flipped in the trial."""
    here = Situation(BURSTS, EVEN, Consumers(100.0, 30.0, in_flight_s=2.55), tail_s=600)
    tolerant = with_changes(lag_150(), {THRESHOLD: 3000, DOWN_TOLERANCE: 0.94})
    assert worst_outcome(here, tolerant, 60.0).flips == 0
    assert worst_outcome(replace(here, swing=(0.05, 5.05)), tolerant, 60.0).flips >= 2


def test_what_is_recommended_flips_at_no_point():
    """A lagThreshold of 9,000 ends the flapping at the first point alone, and is the cheapest there: the window is taken."""
    examples_of = paths.PROJECT / "docs" / "examples"
    evening, content = profile.load(examples_of / "evening-peak.yaml"), yamlfile.read(examples_of / "orders.yaml")
    pods = Consumers(100.0, 45.0, in_flight_s=2.55)
    here = Situation(evening, np.full(12, 1 / 12), pods, tail_s=1800, swing=(0.05, 5.05))
    flapping = with_changes(scaledobject.parse(content, "orders.yaml"), {DOWN_WINDOW: 0}).scaled
    tried = [with_changes(flapping, changes) for changes in ({}, {THRESHOLD: 9000}, {DOWN_WINDOW: 600})]
    found = outcomes(here, tried, 300.0)
    assert [one.flips for one in found] == [2, 0, 0]
    assert found[1].pod_minutes < found[2].pod_minutes / 1.1
    advice = recommend(here, flapping, found, 300.0)
    assert (advice.chosen.variant.changes, advice.chosen.flips) == ({DOWN_WINDOW: 600}, 0)
