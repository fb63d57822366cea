"""The simulator: what a group must do by arithmetic alone, whatever a policy decides."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from lab import paths
from lab.errors import InputError
from lab.foresee import sources
from lab.foresee.curve import Arrivals, Curve, ages, late, worst_age
from lab.foresee.group import NOBODY, Consumers, Group, Rebalance, Seen, assigned
from lab.foresee.scaler import Scaler, lag_triggers
from lab.foresee.simulate import simulate, simulate_many
from lab.foresee.situation import Situation
from lab.inputs import anchor, policy, scaledobject
from lab.inputs import scale as scales
from lab.inputs.adopt import adopt
from lab.inputs.profile import Profile, Step
from lab.inputs.triggers import cron
from tests.thoroughness import examples
from tests.unit.foresee.groups import BUSY, CPU, EVEN, P, asking, lag_150, lag_150_with, lasting, step
from tests.unit.inputs.written import refused

PODS = Consumers(100.0, 3.0)
FAST = Consumers(1000.0, 3.0, in_flight_s=0.1)


@given(st.integers(1, 60), st.lists(st.integers(0, 70), min_size=1, max_size=8))
def test_an_assignment_is_even_and_sticky(partitions, sizes):
    """No two members differ by more than one partition, and no more partitions move than the new quotas ask for."""
    owners = np.full(partitions, NOBODY)
    for members in sizes:
        before, owners = owners, assigned(owners, members)
        if not members:
            assert (owners == NOBODY).all()
            continue
        counts = np.bincount(owners, minlength=members)
        assert counts.max() - counts.min() <= 1
        had = np.bincount(before[(before >= 0) & (before < members)], minlength=members)
        kept = int((owners == before).sum())
        floor, more = divmod(partitions, members)
        quota = [floor + 1] * more + [floor] * (members - more)
        assert kept == sum(min(have, most) for have, most in zip(sorted(had, reverse=True), quota, strict=True))


@pytest.mark.parametrize(
    ("balancer", "stands_still"), [("range", P), ("roundrobin", P), ("cooperative-sticky", 0), ("consumer", P // 2)]
)
def test_what_a_rebalance_stops(balancer, stands_still):
    """From 2 to 4 members: eager stops everything at once, cooperative nothing at first, KIP-848 what moves."""
    owner = np.full(P, NOBODY)
    group = Rebalance(Consumers(100, 3.0, balancer), owner, 2)
    group.resize(10.0, 4)
    assert (owner == NOBODY).sum() == stands_still
    rounds = 0
    while group.ends is not None:
        group.round(group.ends)
        rounds += 1
    assert rounds == (2 if balancer == "cooperative-sticky" else 1)
    assert group.working == 4
    assert np.bincount(owner).tolist() == [6] * 4


def test_who_comes_during_a_round_is_in_it():
    """The classic protocol: a round that is on takes late joiners in, and revokes for all of them."""
    group = Rebalance(Consumers(100, 3.0, notice_s=0.5, round_s=1.0), np.full(P, NOBODY), 2)
    group.resize(10.0, 3)
    group.resize(10.3, 4)
    assert group.ends == 10.5
    group.round(10.5)
    assert group.ends == 11.5
    group.round(11.5)
    assert (group.ends, group.working) == (None, 4)


@given(
    st.lists(st.tuples(st.floats(0.01, 20), st.floats(0, 5_000)), min_size=1, max_size=12),
    st.integers(1, 24),
    st.floats(1, 500),
)
def test_messages_are_conserved(steps, members, rate):
    """What arrived is either processed or in the backlog, and no pod processes faster than it can."""
    group = Group(Consumers(rate, 3.0), EVEN, 1)
    group.owner[0] = assigned(group.owner[0], members)
    arrived = 0.0
    for seconds, arriving in steps:
        before = group.processed.sum()
        group.step(seconds, arriving)
        arrived += seconds * arriving
        assert group.processed.sum() + group.backlog.sum() == pytest.approx(arrived)
        assert group.processed.sum() - before <= members * rate * seconds * (1 + 1e-9)
    assert (group.backlog >= -1e-9).all()


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


def halves(threshold, **second):
    """The committed policy of two triggers, each on half of the partitions, at this lagThreshold."""
    content = policy.load(paths.MANIFESTS / "scaledobjects" / "halves-4500.yaml").content
    for trigger in content["spec"]["triggers"]:
        trigger["metadata"]["lagThreshold"] = str(threshold)
    content["spec"]["triggers"][1]["metadata"] |= second
    return scaledobject.parse(content, "test")


def of_topics(threshold, *named, kind="kafka", **more):
    """A trigger of this lagThreshold for each topic that is named; "" is none."""
    content = (lag_150() if kind == "kafka" else lasting()).content
    (trigger,) = content["spec"]["triggers"]
    own = {name: value for name, value in trigger["metadata"].items() if name not in ("topic", "topicFromEnv")}
    own |= {"lagThreshold": str(threshold)} | more
    content["spec"]["triggers"] = [{"type": kind, "metadata": own | ({"topic": one} if one else {})} for one in named]
    return scaledobject.parse(content, "my.yaml")


UNEVEN = np.concatenate([np.full(P // 2, 1.5 / P), np.full(P // 2, 0.5 / P)])
TWO, ONE = (Situation(step(180, 1800), UNEVEN, PODS, topics=count) for count in (2, 1))
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
        (ONE, lag_150_with(QUEUE, alone=True), "spec.triggers: ['external'] | at most one trigger of type kafka or"),
        (ONE, lag_150_with(*lag_150().content["spec"]["triggers"]), "spec.triggers: ['kafka', 'kafka'] | at most one"),
        (ONE, lag_150_with(CPU), "command line: --workload: missing | a workload with process_ms"),
        (ONE, lag_150_with(asking("up", 1)), "spec.triggers[1].metadata.query: 'up' | a query as docs/simulate.md lists them"),
        (ONE, timed(), "begins_at of the profile: missing | the time of day at which"),
        (TWO, of_topics(150, "orders", "refunds", "returns"), ".topic: 'returns' | orders, refunds, or topics: 3 in the"),
        (ONE, halves(150, topic="refunds"), "spec.triggers[1].metadata.topic: 'refunds' | TOPIC, or topics: 2 in the"),
        (TWO, of_topics(150, "orders", ""), "spec.triggers: ['kafka', 'kafka'] | at most one"),
        (TWO, of_topics(150, "orders", "orders"), "spec.triggers: ['kafka', 'kafka'] | at most one"),
        (
            replace(TWO, consumers=Consumers(100.0, 3.0, "range")),
            of_topics(150, "orders", "refunds"),
            "simulated group: balancer: 'range' | any other with topics 2",
        ),
    ):
        assert line in refused(simulate, here, scaled)


SEVEN = datetime(2026, 1, 15, 7, 54, tzinfo=UTC)


def timed(start="57 7 * * *", end="27 8 * * *", replicas=24, *, alone=False):
    """lag_150 with 24 pods from 180 s to 1,980 s after SEVEN; ``alone``: without its trigger on lag."""
    metadata = {"timezone": "Etc/UTC", "start": start, "end": end, "desiredReplicas": str(replicas)}
    return lag_150_with({"type": "cron", "metadata": metadata}, alone=alone)


def announced(spike=360.0, rate=1800.0):
    """A spike that comes while the window of ``timed`` is open."""
    return replace(step(180, rate, spike, 600.0, 3000.0), begins_at=SEVEN)


def test_a_time_of_day_scales_before_the_spike_and_holds_to_the_windows_end():
    """On its own it does the same: within a sync of the window's start, and the scale-down's window after its end."""
    for scaled in (timed(), timed(alone=True)):
        curve = simulate(Situation(announced(rate=180), EVEN, PODS), scaled)
        ups = [at for at, before, after in curve.changes if after > before]
        downs = [at for at, before, after in curve.changes if after < before]
        assert curve.replicas.max() == 24
        assert 180 <= ups[0] <= 195
        assert 1980 - 15 + 300 <= downs[0] <= 1980 + 300
        assert curve.replicas[-1] == 4


@given(st.integers(0, 3600), st.integers(1, 59), st.integers(0, 3))
@settings(max_examples=examples(20))
def test_a_time_of_day_is_read_as_keda_reads_it(begins_s, minutes, hours):
    """Between two starts or ends the answer is kept: it is that of the trigger itself at each second."""
    begins_at = SEVEN + timedelta(seconds=begins_s)
    end = SEVEN + timedelta(minutes=3 + minutes, hours=hours)
    (trigger,) = timed(end=f"{end.minute} {end.hour} * * *", alone=True).triggers
    source = sources.Scheduled(trigger, begins_at)
    nothing = np.zeros(1)
    for now in range(0, 20_000, 97):
        found = source.read(Seen(now, nothing, nothing, nothing, []))
        wanted = cron.read(trigger, begins_at + timedelta(seconds=now))
        assert (found.metric, found.active) == (wanted.metric, wanted.active)


@pytest.mark.parametrize("scale", ["quick", "real"])
def test_a_trial_is_simulated_with_the_schedules_that_it_writes(scale):
    """The window opens so far into the profile as the scale makes of it, in the simulation as in the trial."""
    chosen = scales.load(scale)
    scaled, traffic = timed(alone=True).compressed(chosen), announced(rate=180).compressed(chosen.time, 1)
    made, given = anchor.as_trial(scaled, traffic, chosen.time)
    curve = simulate(Situation(given, EVEN, Consumers(100.0, 3.0), sync_s=chosen.hpa_sync_s), made)
    up = curve.changes[0][0] * chosen.time
    assert 180 <= up <= 195
    opens = given.begins_at + timedelta(seconds=180 / chosen.time)
    assert opens.second == 0
    assert made.content["spec"]["triggers"][0]["metadata"]["start"] == f"{opens.minute} 7 15 1 *"


def test_what_is_in_flight_falls_with_the_rate():
    """Shortly after the spike the curve shows the baseline's messages in flight, not the spike's until the next sync."""
    consumers = Consumers(1000.0, 3.0, in_flight_s=0.3)
    curve = simulate(Situation(step(100, 1000, hold=610.0), EVEN, consumers), lag_150())
    assert np.interp(759.9, curve.t, curve.lag) == pytest.approx(300, abs=P)
    assert np.interp(760.4, curve.t, curve.lag) == pytest.approx(30, abs=P)


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(0, 200_000), st.floats(0, 0.5), st.sampled_from([1, 2, 4, 8]), st.floats(1, 400))
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
