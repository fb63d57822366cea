"""Several triggers and topics of one group in the simulator, and what it refuses."""

from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.foresee.group import Consumers, Seen
from lab.foresee.scaler import Scaler, lag_triggers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs import policy, scaledobject
from lab.inputs.adopt import adopt
from tests.thoroughness import examples
from tests.unit.foresee.groups import BUSY, CPU, ONE, PODS, TWO, P, asking, lag_150, lag_150_with, of_topics, step, timed
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
