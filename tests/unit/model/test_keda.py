"""What KEDA does with readings: how it counts a lag, its scale loop, fallback, pauses, and the HPA it makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.inputs.policy import load
from lab.inputs.triggers.common import Reading, ScalerError
from lab.model import keda, lag
from lab.model.keda import Observation, State
from lab.model.lag import Partition
from tests.unit.inputs import written
from tests.unit.inputs.written import CPU, CRON, EXTERNAL, PROMETHEUS, one

KAFKA = {"type": "kafka", "metadata": {"bootstrapServers": "b:9092", "consumerGroup": "enrich", "topicFromEnv": "TOPIC"}}
CACHED = KAFKA | {"useCachedMetrics": True}
ACTIVE, QUIET, FAILED = State(True, False, ()), State(False, False, ()), State(False, True, ())


def scaled(*triggers, noted=None, **spec):
    """A ScaledObject of these triggers, of the kafka one by default, with KEDA's annotations ``noted``."""
    annotations = {f"autoscaling.keda.sh/{name}": value for name, value in (noted or {}).items()}
    return written.scaled(list(triggers) or [KAFKA], annotations, **spec)


FALLBACK = {"failureThreshold": 3, "replicas": 6}
IDLE = {"minReplicaCount": 4, "idleReplicaCount": 0}
# By what it shows: a policy, what was found, replicas and time of activity (s) before, and both after the pass at 1000 s.
PASSES = {
    "from 0 KEDA sets 1": ({}, ACTIVE, 0, None, 1, 1000),
    "or the floor": ({"minReplicaCount": 4}, ACTIVE, 0, None, 4, 1000),
    "from 1 on it leaves replicas to the HPA": ({}, ACTIVE, 1, None, None, 1000),
    "when exactly cooldownPeriod has passed it waits": ({}, QUIET, 24, 700, None, 700),
    "when more has passed it is one jump to 0": ({}, QUIET, 24, 699, 0, 699),
    "what was never active waits for no cooldown": ({}, QUIET, 5, None, 0, None),
    "but for the initial one": ({"initialCooldownPeriod": 2000}, QUIET, 5, None, None, None),
    "with a floor the HPA scales down": ({"minReplicaCount": 4}, QUIET, 24, 0, None, 0),
    "KEDA lifts what is below the floor": ({"minReplicaCount": 4}, QUIET, 2, None, 4, None),
    "idle: quiet goes below the floor": (IDLE, QUIET, 24, 0, 0, 0),
    "idle: active goes to the floor at once": (IDLE, ACTIVE, 0, None, 4, 1000),
    "idle: from in between too": (IDLE, ACTIVE, 2, None, 4, 1000),
    "a failed trigger keeps a group from 0": ({}, FAILED, 24, 0, None, 0),
    "with a fallback too": ({"fallback": FALLBACK}, FAILED, 24, 0, None, 0),
    "unless that is to 0": ({"fallback": FALLBACK | {"replicas": 0}}, FAILED, 24, 0, 0, 0),
    "an error beside activity does not renew its time": ({}, State(True, True, ()), 5, 900, None, 900),
    "paused-scale-in": ({"noted": {"paused-scale-in": "true"}}, QUIET, 24, None, None, None),
    "paused-scale-out": ({"noted": {"paused-scale-out": "true"}}, ACTIVE, 0, None, None, None),
    "paused at a number": ({"noted": {"paused-replicas": "3"}}, ACTIVE, 0, None, None, None),
    "activation is forced": ({"noted": {"force-activation": "true"}}, QUIET, 0, None, 1, 1000),
}


@pytest.mark.parametrize("name", PASSES)
def test_a_pass_of_the_loop(name):
    """The replicas that it sets, None for none, and the time of activity that it remembers."""
    policy, found, replicas, last_active_s, wanted, remembered = PASSES[name]
    decision = keda.scale(scaled(**policy), found, replicas, 1000.0, 0.0, last_active_s)
    assert (decision.replicas, decision.last_active_s) == (wanted, remembered)
    assert decision.reasons


def test_a_pause_is_in_the_hpa_too():
    """Of one direction; a pause of both leaves no HPA."""
    for direction, name in (("in", "scaleDown"), ("out", "scaleUp")):
        made = keda.hpa(scaled(noted={f"paused-scale-{direction}": "true"}), {"TOPIC": "events"})
        assert made["spec"]["behavior"] == {name: {"selectPolicy": "Disabled"}}
    assert keda.hpa(scaled(noted={"paused-replicas": "3"})) is None


def test_fallback_after_more_than_the_threshold_of_failures():
    """The metric that makes the HPA ask for those replicas, active; before it, an error to the HPA."""
    policy = scaled(fallback={"failureThreshold": 2, "replicas": 6})
    failures, seen = 0, []
    for _ in range(3):
        observed = keda.observe(policy, ScalerError("no brokers"), failures, 10)
        failures = observed.failures
        seen.append((observed.metric, observed.fallback))
    assert seen == [(None, False), (None, False), (60, True)]
    assert keda.state(policy, [observed]).active
    assert keda.observe(policy, Reading(5, False, ()), failures, 10).failures == 0


def test_an_unreachable_external_scaler_never_falls_back():
    """It names no metric, so no failure is counted, however often."""
    policy = scaled(EXTERNAL, fallback={"failureThreshold": 0, "replicas": 6})
    observed = keda.observe(policy, None, 7, 0)
    assert (observed.metric, observed.fallback, observed.failures) == (None, False, 7)
    assert keda.state(policy, [observed]) == State(False, True, ("trigger 0: failed",))


def test_a_cached_fallback_counts_as_a_success_to_the_hpa():
    """With useCachedMetrics the HPA's call finds the loop's fallback as an answer, and sets the failures back to 0."""
    policy = scaled(CACHED, fallback={"failureThreshold": 0, "replicas": 6})
    polled = keda.observe(policy, ScalerError("x"), 0, 10)
    read = keda.observe(policy, polled.outcome, polled.failures, 10)
    assert (read.metric, read.fallback, read.failures) == (60, False, 0)
    failed = Observation(None, False, False, 1, ("no brokers",)).outcome
    assert isinstance(failed, ScalerError)


def test_one_active_trigger_of_several_is_enough():
    """An error of another is kept beside it; cpu says nothing, and alone is always active."""
    active, quiet = Observation(5, True, False, 0, ()), Observation(0, False, False, 0, ())
    error = Observation(None, False, False, 1, ())
    policy = scaled(KAFKA, CRON, CPU)
    assert keda.state(policy, [quiet, active, None]).active
    assert not keda.state(policy, [quiet, quiet, None]).active
    both = keda.state(policy, [error, active, None])
    assert (both.active, both.error) == (True, True)
    assert keda.state(scaled(CPU, minReplicaCount=1), [None]).active


def test_the_hpa_of_several_triggers():
    """Metrics by type, then by index; targets as quantities; names with the trigger's index."""
    half = PROMETHEUS | {"metadata": PROMETHEUS["metadata"] | {"threshold": "0.5"}}
    policy = scaled(CPU, KAFKA, CRON, half, EXTERNAL, maxReplicaCount=24, scaleTargetRef={"name": "enricher"})
    made = keda.hpa(policy, {"TOPIC": "orders.v1"}, {4: ("lag", 500.0)})
    assert made["metadata"] == {"name": "keda-hpa-consumer"}
    *external, cpu = made["spec"]["metrics"]
    assert [(one["external"]["metric"]["name"], one["external"]["target"]["averageValue"]) for one in external] == [
        ("s1-kafka-orders-v1", "10"),
        ("s2-cron-Europe-Berlin-08xx1-5-018xx1-5", "1"),
        ("s3-prometheus", "500m"),
        ("s4-lag", "500"),
    ]
    assert cpu["resource"] == {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}
    assert made["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "enricher"}
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (1, 24)
    assert external[0]["external"]["metric"]["selector"] == {"matchLabels": {"scaledobject.keda.sh/name": "consumer"}}


def test_no_hpa_where_no_trigger_names_a_metric():
    """The only trigger is an external scaler that doesn't answer; without a topic the group names the metric."""
    assert keda.hpa(scaled(EXTERNAL)) is None
    named = keda.hpa(scaled(KAFKA))["spec"]["metrics"][0]["external"]["metric"]["name"]
    assert named == "s0-kafka-enrich-topics"


def test_the_hpa_of_the_committed_policy_has_its_behavior():
    """As written, and its own copy."""
    policy = load(paths.MANIFESTS / "scaledobjects" / "lag.yaml")
    made = keda.hpa(policy, {"TOPIC": "events"})
    written = policy.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert made["spec"]["behavior"] == written
    assert made["spec"]["behavior"] is not written


@given(st.booleans(), st.booleans(), st.integers(0, 30), st.floats(0, 2000), st.none() | st.floats(0, 1000))
def test_keda_sets_the_floor_or_zero_and_nothing_else(active, error, replicas, now, last):
    """Whatever it finds: the way between is the HPA's."""
    for policy in (scaled(**IDLE), scaled(minReplicaCount=4), scaled()):
        decision = keda.scale(policy, State(active, error, ()), replicas, now, 0, last)
        assert decision.replicas in (None, 0, max(1, policy.min_replicas))
        assert decision.replicas != replicas


def topic(*lags):
    """A topic whose partitions have these lags."""
    return {"events": {number: Partition(1000 + value, 1000) for number, value in enumerate(lags)}}


def test_persistent_lag_is_told_by_the_previous_call_whoever_made_it():
    """The second of two calls within one commit interval finds every partition stuck; activation still sees the lag."""
    trigger = one(written.KAFKA, excludePersistentLag="true", allowIdleConsumers="true")
    first = lag.read(trigger, topic(50, 70), {})
    second = lag.read(trigger, topic(50, 70), first.previous)
    assert (first.metric, first.active) == (120, True)
    assert (second.metric, second.active) == (0, True)
    assert "and 120 persistent" in second.reasons[0]
    assert second.reasons[-1] == "120 is above activationLagThreshold 0"


def test_a_partition_that_cannot_be_answered_for_fails_the_query():
    """And a limitation that leaves no partition."""
    with pytest.raises(ScalerError, match="not a coordinator"):
        lag.read(one(written.KAFKA), {"events": {0: Partition(10, 5, error="not a coordinator")}}, {})
    with pytest.raises(ScalerError, match="no partition of topic events"):
        lag.read(one(written.KAFKA, partitionLimitation="7-9"), topic(1, 2), {})


def test_only_the_partitions_that_are_wanted_and_answered_count():
    """In the lag and in the cap: KEDA counts the partitions of the answer, not those of the topic."""
    answered = topic(100, 100, 100, 100, 100)
    answered["events"][3] = Partition(None, 5)
    found = lag.read(one(written.KAFKA, partitionLimitation="0,2-3", lagThreshold="10"), answered, {})
    assert (found.lag, found.partitions, found.metric) == (200, 2, 20)
