"""The persistent-lag scaler in the simulator: what has to last, what stabilizes, and what can't be read."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab.foresee.curve import Arrivals, ages
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs import scaledobject
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples
from tests.unit.foresee.groups import EVEN, PODS, P, lag_150, lasting, step

FAST = Consumers(1000.0, 3.0, in_flight_s=0.1)


@st.composite
def traffic(draw):
    """Any steps of up to 40 pods' rate, some minutes each."""
    lengths = draw(st.lists(st.integers(20, 400), min_size=1, max_size=6))
    rates = draw(st.lists(st.integers(0, 4000), min_size=len(lengths), max_size=len(lengths)))
    edges = np.cumsum([0, *lengths]).astype(float)
    return Profile(tuple(Step(at, rate, "step") for at, rate in zip(edges, rates, strict=False)), float(edges[-1]))


@settings(max_examples=examples(30), deadline=None)
@given(
    traffic(), st.integers(1, 2000), st.sampled_from([1, 2.5, 3, 5, 7.5, 15]), st.sampled_from([P, 2 * P]), st.integers(0, 1)
)
def test_what_lasts_for_no_time_is_the_lag_there_is(profile, threshold, interval, most, least):
    """sustainSeconds 0 without stabilizations, sampled at every sync: every decision is the kafka trigger's."""
    # Without idle consumers the caps are two: the scaler's leaves no metric between P and P + 1 thresholds.
    chosen = {"lagThreshold": str(threshold), "allowIdleConsumers": "true"}
    chosen |= {"minReplicaCount": least, "maxReplicaCount": most}
    windowed = lasting(**chosen, sustainSeconds="0", samplingInterval=f"{interval:g}")
    # In one pass, so that both groups go through the same steps of time.
    plain, sampled = simulate_many(Situation(profile, EVEN, PODS), [lag_150(**chosen), windowed])
    assert sampled.changes == plain.changes
    assert (sampled.lag == plain.lag).all()


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(400, 20_000), st.integers(1, 60), st.integers(0, 59), st.sampled_from([60, 120, 300]))
def test_a_spike_shorter_than_sustain_scales_nothing(spike, hold, offset, sustain):
    """However high: what the floor of pods works off within sustainSeconds is never seen by the HPA."""
    floor = 4 * FAST.rate
    drain = max(0.0, spike - floor) * hold / (floor - 300)
    assume(hold + drain + 1 < sustain)
    here = Situation(step(300, spike, 200.0 + offset, hold, 900.0), EVEN, FAST)
    assert simulate(here, lasting(sustainSeconds=str(sustain))).changes == []


def test_a_spike_that_scales_the_built_in_trigger_scales_nothing():
    """The test above has something to see: the kafka trigger of the same threshold scales out on such a spike."""
    here = Situation(step(300, 5000, 200.0, 40.0, 900.0), EVEN, FAST)
    assert simulate(here, lag_150()).replicas.max() == 12
    assert simulate(here, lasting(sustainSeconds="60")).changes == []


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(1200, 4000), st.sampled_from([30, 60, 120, 240]), st.sampled_from([2, 5, 10]), st.integers(0, 14))
def test_a_step_is_answered_later_by_what_it_has_to_last(spike, sustain, interval, offset):
    """By sustainSeconds, to an interval and a sync: the metric is what the lag was so long before, as long as it grows."""
    here = Situation(step(100, spike, 300.0 + offset, 900, 2400), EVEN, PODS)
    built_in = simulate(here, lag_150()).changes[0]
    given = {"sustainSeconds": str(sustain), "samplingInterval": str(interval), "windowSize": "120"}
    ours = simulate(here, lasting(**given)).changes[0]
    assert built_in[0] > 300
    assert sustain - here.sync_s <= ours[0] - built_in[0] <= sustain + interval + here.sync_s


def test_what_stabilizes_up_and_down():
    """Up it adds to sustainSeconds; down it keeps the pods for its time beyond what the HPA's own window does."""
    here = Situation(step(100, 2000, 300.0, 600, 4000), EVEN, PODS)
    plain, up, down = (
        simulate(here, lasting(**{"sustainSeconds": "60"} | more))
        for more in ({}, {"scaleUpStabilization": "60"}, {"scaleDownStabilization": "300"})
    )
    assert up.changes[0][0] - plain.changes[0][0] == pytest.approx(60, abs=here.sync_s)
    gives_back = [next(at for at, before, after in one.changes if after < before) for one in (plain, down)]
    assert gives_back[1] - gives_back[0] == pytest.approx(300, abs=3 * here.sync_s)


def test_in_seconds_the_oldest_record_decides():
    """lagSeconds: the same record is as old whatever the rate; half of the traffic on one partition is old there first."""
    content = {"lagThreshold": None, "lagSeconds": "30", "sustainSeconds": "30"}
    here = Situation(step(1000, 10_000, 300.0, 600, 4000), EVEN, Consumers(1000.0, 3.0))
    curve = simulate(here, lasting(**content))
    assert curve.changes[0][0] > 330
    assert curve.replicas.max() >= 22  # 24 to the HPA's tolerance
    assert curve.replicas[-1] == 4
    points = ages(curve, Arrivals(here.profile))
    age = float(np.interp(curve.changes[0][0] - 30, *points))  # P x age / lagSeconds against the pods there are
    assert 24 * age / 30 > 4.4


def test_what_can_t_be_read_holds_the_replicas_and_falls_back():
    """partitionLimitation that leaves no partition: the HPA keeps what there is, and with a fallback goes to that."""
    content = lasting(partitionLimitation="99").content
    here = Situation(step(100, 4000), EVEN, PODS)
    assert simulate(here, scaledobject.parse(content, "test")).changes == []
    content["spec"]["fallback"] = {"failureThreshold": 3, "replicas": 9}
    assert simulate(here, scaledobject.parse(content, "test")).replicas[-1] == 9
