"""Triggers that look at something else than a group's lag, use of pods, queries and the clock; and a formula over triggers."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.foresee import live_hpa, sources, variants
from lab.foresee.group import Consumers, Seen
from lab.foresee.notes import notes
from lab.foresee.queries import Answer, Names
from lab.foresee.scaler import Scaler
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.foresee.usage import Footprint
from lab.inputs import anchor, scaledobject
from lab.inputs import scale as scales
from lab.inputs.triggers import cron
from lab.inputs.workload import Workload
from tests.thoroughness import examples
from tests.unit.foresee.groups import (
    BUSY,
    CPU,
    EVEN,
    PODS,
    SEVEN,
    TWO,
    P,
    asking,
    lag_150,
    lag_150_with,
    of_topics,
    step,
    timed,
)


def weighing(mebibytes):
    """A memory trigger."""
    return {"type": "memory", "metricType": "AverageValue", "metadata": {"value": f"{mebibytes}Mi"}}


def used(footprint, rate=180, spike=1800, **consumers):
    """A long step for pods that use as much as ``footprint`` says."""
    traffic = step(rate, spike, duration=2400)
    return Situation(traffic, EVEN, Consumers(100.0, 3.0, footprint=footprint, **consumers))


def test_cpu_asks_for_pods_where_messages_cost_cpu():
    """5 ms of CPU a message and 18 m at rest, at 70 % of 500 m: 1,100/s are 5,500 m, and 17 pods take 5,806 m."""
    curve = simulate(used(BUSY, 180, 1100), lag_150_with(CPU, alone=True))
    at_rest = int(curve.replicas[np.searchsorted(curve.t, 700.0)])
    use = (1100 * 5 / at_rest + 18) / 500
    assert 0.9 * 0.7 <= use <= 1.1 * 0.7
    assert curve.replicas[-1] == 4


def test_cpu_does_not_see_a_backlog_of_pods_that_wait():
    """Where a message costs no CPU the group stays at its floor, whatever its lag, and lag beside it scales as it did."""
    idle = used(Footprint(request_m=100, each_ms=0.0032))
    alone = simulate(idle, lag_150_with(CPU, alone=True))
    assert (alone.changes, alone.peak_lag > 100_000) == ([], True)
    beside, lag = simulate(idle, lag_150_with(CPU)), simulate(idle, lag_150())
    assert (beside.peak_lag, beside.replicas.max(), beside.replicas[-1]) == (lag.peak_lag, 24, 4)


def test_a_limitation_counts_the_partitions_that_there_are():
    """One to no other is refused: KEDA fails at each question."""
    (trigger,) = lag_150().content["spec"]["triggers"]
    some, none = (trigger | {"metadata": trigger["metadata"] | {"partitionLimitation": f"{one}-90"}} for one in (20, 24))
    given = lag_150_with(some, alone=True)
    assert (live_hpa.counted(given.triggers[0], 24), live_hpa.counted(given.triggers[0], None)) == (4, 71)
    with pytest.raises(
        InputError, match=r"triggers\[0\].metadata.partitionLimitation: '24,25,.*some of the topic's partitions"
    ):
        simulate(used(None), lag_150_with(none, alone=True))


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(1, 1000), st.integers(0, 100), st.integers(1, 100))
def test_an_idle_pod_asks_for_no_other(request_m, burn, target):
    """Whatever a user's pod requests, whatever its messages cost, and whatever the target is: without a message nothing."""
    idle = Footprint.of_theirs(Workload(cpu_request_m=request_m, burn=burn))
    trigger = CPU | {"metadata": {"value": str(target)}}
    assert simulate(used(idle, 0, 0), lag_150_with(trigger, alone=True)).changes == []


def test_memory_never_gives_back_what_idle_pods_are_worth():
    """31 MiB a pod: at a target of 8 each asks for three more without traffic; at 31 none is given back, at 120 all are."""
    ever = simulate(used(BUSY, 0, 0), lag_150_with(weighing(8)))
    assert [(one.before, one.after) for one in ever.log] == [(4, 12), (12, 24)]
    at_target, above = (simulate(used(BUSY), lag_150_with(weighing(size))) for size in (31, 120))
    assert at_target.replicas[: np.searchsorted(at_target.t, 150.0)].max() == 4
    assert (at_target.replicas.max(), at_target.replicas[-1]) == (24, 24)
    assert (above.replicas.max(), above.replicas[-1]) == (24, 4)


@pytest.mark.parametrize("theirs", [None, Footprint.of_theirs(Workload(cpu_request_m=200, burn=50))])
@pytest.mark.parametrize("memory", [weighing(8), {"type": "memory", "metricType": "Utilization", "metadata": {"value": "80"}}])
def test_memory_that_is_not_known_asks_for_nothing(theirs, memory):
    """Beside lag the group scales as it did without the trigger, down again too, and a note says what was not looked at."""
    beside, lag = simulate(used(theirs), lag_150_with(memory)), simulate(used(theirs), lag_150())
    assert beside.changes == lag.changes
    assert Scaler(lag_150_with(memory), used(theirs)).notes[0].startswith("the memory trigger is taken to ask for nothing")


def test_a_query_on_lag_is_the_kafka_trigger():
    """At the same threshold, as long as no partition limits either."""
    query = 'sum( kafka_consumergroup_lag{consumergroup="enrich"} )'
    asked = simulate(used(None), lag_150_with(asking(query, 150), alone=True))
    assert asked.changes == simulate(used(None), lag_150()).changes


def test_a_query_on_arrivals_asks_for_the_rate_over_the_threshold():
    """1,800/s at 170 a pod: 11, though a backlog is there, and as many at every sync of the spike's second half."""
    asked = asking('sum(rate(kafka_topic_partition_current_offset{namespace="enrich"}[1m]))', 170)
    curve = simulate(used(None), lag_150_with(asked, alone=True))
    half = (curve.t > 450) & (curve.t < 750)
    assert set(curve.replicas[half].tolist()) == {11}
    assert curve.peak_lag > 100_000


def test_before_its_start_a_profile_counts_as_its_first_rate():
    """A window that reaches before 0 s sees the baseline, and neither nothing nor a spike."""
    here = Situation(step(180, 1800), EVEN, Consumers(100.0, 3.0))
    value = Answer("sum(rate(kafka_topic_partition_current_offset[5m]))", Names("", ("",)), here, "so.yaml", "query")
    nothing = np.zeros(P)
    seen = [value(Seen(now, nothing, nothing, nothing, []))[0] for now in (0.0, 100.0, 150.0, 300.0, 450.0)]
    assert seen == pytest.approx([180, 180, 180, (180 + 1800) / 2, 1800])


def composing(content, formula, target, **more):
    """``content`` with a formula over its triggers, which are named a, b and so on."""
    content["spec"]["triggers"] = [one | {"name": "abc"[n]} for n, one in enumerate(content["spec"]["triggers"])]
    modifiers = {"formula": formula, "target": str(target)} | more
    content["spec"]["advanced"] = (content["spec"].get("advanced") or {}) | {"scalingModifiers": modifiers}
    return scaledobject.parse(content, "so.yaml")


def test_the_sum_of_two_topics_is_the_lag_of_both():
    """As one trigger without a topic counts it, where no partition limits either."""
    both = simulate(TWO, of_topics(3000, "", allowIdleConsumers="true"))
    apart = of_topics(3000, "orders", "refunds", allowIdleConsumers="true").content
    composed = simulate(TWO, composing(apart, "a + b", 3000))
    assert composed.changes == both.changes != []
    assert "a + b with a " in composed.log[0].reasons[0]


def test_each_trigger_is_capped_before_the_formula():
    """12 partitions a topic at a lagThreshold of 10 are 240 at most, and 3 pods of 100."""
    capped = composing(of_topics(10, "orders", "refunds", allowIdleConsumers="false").content, "a + b", 100)
    assert simulate(TWO, capped).replicas.max() == 4  # its floor


def test_a_cpu_trigger_stays_beside_the_formula():
    """The larger proposal wins."""
    alone = simulate(used(BUSY, 180, 1100), lag_150_with(CPU, alone=True))
    beside = lag_150_with(asking("sum(kafka_consumergroup_lag)", 1), CPU, alone=True)
    assert simulate(used(BUSY, 180, 1100), composing(beside.content, "a * 0", 1)).replicas.max() == alone.replicas.max()


def test_tune_tries_other_targets():
    """In place of a lagThreshold, of which there are two; whole ones where it is whole."""
    content = of_topics(150, "orders", "refunds").content
    for target, others in (
        (200, {50, 70, 100, 142, 200, 282, 400, 566, 800}),
        ("2.5", {0.625, 0.875, 1.25, 1.77, 2.5, 3.52, 5.0, 7.08, 10.0}),
    ):
        scaled = composing(content, "max(a, b)", target)
        tried = {one.scaled.modifiers.target for one in variants.variants(scaled, TWO, 60.0)}
        assert tried == others
        assert all(one.scaled.triggers == scaled.triggers for one in variants.variants(scaled, TWO, 60.0, 20))


def test_every_refused_query_is_named_at_once():
    """Beside the trigger that is simulated."""
    queries = [asking("up", 1), asking("sum(kafka_consumergroup_lag)", 1), asking("down", 1)]
    with pytest.raises(InputError) as error:
        Scaler(lag_150_with(*queries), TWO)
    lines = str(error.value).splitlines()
    assert [line.partition(" is not")[0] for line in lines] == [
        "so.yaml: spec.triggers[1].metadata.query: 'up'",
        "so.yaml: spec.triggers[3].metadata.query: 'down'",
    ]


def test_the_caps_before_a_formula_are_told():
    """In place of what is said of triggers that ask for pods by themselves."""
    capped = composing(of_topics(10, "orders", "refunds", allowIdleConsumers="false").content, "a + b", 100)
    hot, note = notes(TWO, capped, simulate(TWO, capped))
    assert note.endswith("which is 240 at all the caps and asks for 3 pods, whatever the lag")
    free = composing(of_topics(10, "orders", "refunds").content, "a + b", 100)
    assert notes(TWO, free, simulate(TWO, free)) == [hot]


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
