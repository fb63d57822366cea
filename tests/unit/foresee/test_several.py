"""Several triggers and topics of one group in the simulator, and what it refuses; and its persistent-lag scaler: what has to
last, what stabilizes, and what can't be read."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.foresee.curve import Arrivals, ages
from lab.foresee.group import Consumers, Seen
from lab.foresee.scaler import Scaler, lag_triggers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs import policy, scaledobject
from lab.inputs.adopt import adopt
from lab.inputs.profile import Profile, Step
from tests.thoroughness import examples
from tests.unit.foresee.groups import (
    BUSY,
    CPU,
    EVEN,
    ONE,
    PODS,
    TWO,
    P,
    asking,
    lag_150,
    lag_150_with,
    lasting,
    of_topics,
    step,
    timed,
)
from tests.unit.inputs.written import refused


def halves(threshold, **second):
    """The committed policy of two triggers, each on half of the partitions, at this lagThreshold."""
    content = policy.load(paths.MANIFESTS / "scaledobjects" / "halves-4500.yaml").content
    for trigger in content["spec"]["triggers"]:
        trigger["metadata"]["lagThreshold"] = str(threshold)
    content["spec"]["triggers"][1]["metadata"] |= second
    return scaledobject.parse(content, "test")


QUEUE = {"type": "external", "metadata": {"scalerAddress": "queue:6000"}}


def test_two_topics_are_two_halves():
    """Each trigger counts the partitions of its topic, of either kind; one without a topic counts those of all."""
    windowed = of_topics(3000, "orders", "refunds", kind="external", sustainSeconds="0", samplingInterval="15")
    found = [one.changes for one in simulate_many(TWO, [of_topics(3000, "orders", "refunds"), windowed, of_topics(3000, "")])]
    two, one = (one.changes for one in simulate_many(ONE, [halves(3000), lag_150(lagThreshold="3000")]))
    assert found == [two, two, one]
    assert [] != two != one


@given(st.lists(st.integers(1, 30), min_size=1, max_size=4), st.integers(100, 3000), st.sampled_from(["kafka", "external"]))
@settings(max_examples=examples(20), deadline=None)
def test_topics_of_unlike_sizes_are_ranges_of_partitions(sizes, threshold, kind):
    """Each trigger counts its topic's partitions, as it counts those numbers of one topic that has them all."""
    edges, names = np.cumsum([0, *sizes]).tolist(), [f"t{number}" for number in range(len(sizes))]
    topics = of_topics(threshold, *names, kind=kind)
    ranges = of_topics(threshold, *["t"] * len(sizes), kind=kind).content
    for trigger, first, end in zip(ranges["spec"]["triggers"], edges, edges[1:], strict=False):
        trigger["metadata"]["partitionLimitation"] = f"{first}-{end - 1}"
    shares = np.arange(1, sum(sizes) + 1) / sum(range(1, sum(sizes) + 1))
    here = Situation(step(180, 1800), shares, PODS, topics=len(sizes), sizes=tuple(sizes))
    there = replace(here, topics=1, sizes=())
    assert simulate(here, topics).changes == simulate(there, scaledobject.parse(ranges, "my.yaml")).changes


def test_each_trigger_samples_at_its_own_pace():
    """Two persistent-lag triggers, every 10 and every 15 s, beside a cpu trigger whose metrics come every 7 s."""
    content = of_topics(150, "orders", "refunds", kind="external").content
    content["spec"]["triggers"][1]["metadata"]["samplingInterval"] = "15"
    content["spec"]["triggers"].append(CPU)
    here = replace(TWO, consumers=replace(TWO.consumers, footprint=BUSY), metrics_s=7.0)
    scaled, due = Scaler(scaledobject.parse(content, "my.yaml"), here), []
    while len(due) < 9:
        due.append(scaled.due)
        scaled.sample(Seen(scaled.due, np.zeros(P), np.zeros(P), np.zeros(P), [0.0]))
    assert due == [0, 7, 10, 14, 15, 20, 21, 28, 30]


@given(st.lists(st.tuples(st.sampled_from(["a:1", "a:1,b:1", "b:1", "c:1"]), st.sampled_from("gh")), min_size=1, max_size=3))
@settings(max_examples=examples(200))
def test_a_second_group_or_cluster_is_refused_as_a_trial_refuses_it(named):
    """By the same line, and by none where each trigger names a part of the first one's servers."""
    content = of_topics(100, *map(str, range(len(named)))).content
    for trigger, (servers, group) in zip(content["spec"]["triggers"], named, strict=True):
        own = {"bootstrapServers": servers, "consumerGroup": group}
        trigger["metadata"] = {name: one for name, one in trigger["metadata"].items() if not name.endswith("FromEnv")} | own
    scaled = scaledobject.parse(content, "my.yaml")
    lines = []
    for one in (lag_triggers, adopt):
        try:
            one(scaled, len(named))
            lines.append("")
        except InputError as error:
            lines.append(str(error))
    assert lines[0] == lines[1]


def test_what_is_not_simulated_is_refused():
    """A second trigger on lag, an external scaler that is not the lab's, a time of day without a day, unknown use, a query."""
    for here, scaled, line in (
        (ONE, lag_150_with(QUEUE, alone=True), "spec.triggers: ['external'] | triggers of type kafka and apache-kafka"),
        (
            ONE,
            lag_150_with(*lag_150().content["spec"]["triggers"]),
            "triggers[1].metadata.topicFromEnv: 'TOPIC' | a topic, or a",
        ),
        (ONE, lag_150_with(CPU), "command line: --workload: missing | a workload with process_ms"),
        (ONE, lag_150_with(asking("up", 1)), "spec.triggers[1].metadata.query: 'up' | a query as docs/simulate.md lists them"),
        (ONE, timed(), "begins_at of the profile: missing | the time of day at which"),
        (TWO, of_topics(150, "orders", "refunds", "returns"), ".topic: 'returns' | orders, refunds, or topics: 3 in the"),
        (ONE, halves(150, topic="refunds"), "spec.triggers[1].metadata.topic: 'refunds' | TOPIC, or topics: 2 in the"),
        (TWO, of_topics(150, "orders", ""), "spec.triggers[1].metadata.topic: missing | a topic, or a partition"),
        (TWO, of_topics(150, "orders", "orders"), "spec.triggers[1].metadata.topic: 'orders' | a topic, or a part"),
        (
            replace(TWO, consumers=Consumers(100.0, 3.0, "range")),
            of_topics(150, "orders", "refunds"),
            "simulated group: balancer: 'range' | any other with topics 2",
        ),
    ):
        assert line in refused(simulate, here, scaled)


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
