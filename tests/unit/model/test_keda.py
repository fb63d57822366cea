"""What KEDA does with readings: its scale loop, fallback, pauses, and the HPA it makes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab import paths
from lab.inputs.policy import load
from lab.inputs.scaledobject import parse
from lab.inputs.triggers.common import Reading, ScalerError
from lab.model import keda
from lab.model.keda import Observation, State

KAFKA = {"type": "kafka", "metadata": {"bootstrapServers": "b:9092", "consumerGroup": "enrich", "topicFromEnv": "TOPIC"}}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "75"}}
CRON = {"type": "cron", "metadata": {"timezone": "Etc/UTC", "start": "0 8 * * *", "end": "0 18 * * *", "desiredReplicas": "10"}}
PROMETHEUS = {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": "sum(x)", "threshold": "0.5"}}
EXTERNAL = {"type": "external", "metadata": {"scalerAddress": "lag-scaler:6000"}}
PREFIX = "autoscaling.keda.sh/"
ACTIVE, QUIET = State(True, False, ()), State(False, False, ())
FAILED = State(False, True, ())


def scaled(*triggers, annotations=None, **spec):
    """A ScaledObject of these triggers, of the kafka one by default."""
    return parse(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "consumer", "annotations": annotations or {}},
            "spec": {"scaleTargetRef": {"name": "enricher"}, "triggers": list(triggers) or [KAFKA]} | spec,
        },
        "my.yaml",
    )


def decided(policy, state, replicas, now_s=1000.0, created_s=0.0, last_active_s=None):
    """Replicas set and the time of activity, without the reasons, of which there is one."""
    decision = keda.scale(policy, state, replicas, now_s, created_s, last_active_s)
    assert decision.reasons
    return decision.replicas, decision.last_active_s


def test_zero_to_one_and_no_further():
    """From 0 KEDA sets 1, or minReplicaCount; from 1 on it leaves replicas to the HPA, and remembers the time."""
    assert decided(scaled(), ACTIVE, 0) == (1, 1000)
    assert decided(scaled(minReplicaCount=4), ACTIVE, 0) == (4, 1000)
    assert decided(scaled(), ACTIVE, 1) == (None, 1000)


def test_n_to_zero_is_one_jump_after_the_cooldown():
    """From any number at once, when more than cooldownPeriod has passed; not when exactly that has."""
    policy = scaled(cooldownPeriod=300)
    assert decided(policy, QUIET, 24, last_active_s=700) == (None, 700)
    assert decided(policy, QUIET, 24, last_active_s=699) == (0, 699)
    assert keda.scale(policy, QUIET, 24, 1000, 0, 699).reasons == (
        "not active for 301 s, cooldownPeriod 300 s is over: 24 to 0",
    )


def test_what_was_never_active_waits_for_the_initial_cooldown_alone():
    """Which is 0 by default: a group scaled up by hand goes back to 0 at the next poll."""
    assert decided(scaled(), QUIET, 5) == (0, None)
    assert decided(scaled(initialCooldownPeriod=2000), QUIET, 5) == (None, None)


def test_cooldown_means_nothing_from_one_replica_on():
    """With minReplicaCount the HPA scales down; KEDA only lifts what is below the floor."""
    policy = scaled(minReplicaCount=4)
    assert decided(policy, QUIET, 24, last_active_s=0) == (None, 0)
    assert decided(policy, QUIET, 2) == (4, None)


def test_idle_replicas_are_below_the_floor():
    """Idle 0 with a floor of 4: quiet goes to 0, active to 4 at once."""
    policy = scaled(minReplicaCount=4, idleReplicaCount=0)
    assert decided(policy, QUIET, 24, last_active_s=0) == (0, 0)
    assert decided(policy, ACTIVE, 0) == (4, 1000)
    assert decided(policy, ACTIVE, 2) == (4, 1000)


def test_a_failed_trigger_keeps_a_group_from_zero():
    """With and without a fallback; unless the fallback is to 0 replicas."""
    fallback = {"failureThreshold": 3, "replicas": 6}
    assert decided(scaled(), FAILED, 24, last_active_s=0) == (None, 0)
    assert decided(scaled(fallback=fallback), FAILED, 24, last_active_s=0) == (None, 0)
    assert decided(scaled(fallback=fallback | {"replicas": 0}), FAILED, 24, last_active_s=0) == (0, 0)


def test_an_error_beside_activity_does_not_renew_the_time():
    """One trigger active, one failing: the time of activity stays what it was."""
    assert decided(scaled(), State(True, True, ()), 5, last_active_s=900) == (None, 900)


def test_pauses_of_one_direction():
    """Neither to 0 nor from it; the HPA's behavior says the same."""
    no_in = scaled(annotations={f"{PREFIX}paused-scale-in": "true"})
    no_out = scaled(annotations={f"{PREFIX}paused-scale-out": "true"})
    assert decided(no_in, QUIET, 24) == (None, None)
    assert decided(no_out, ACTIVE, 0) == (None, None)
    assert keda.hpa(no_in, {"TOPIC": "events"})["spec"]["behavior"] == {"scaleDown": {"selectPolicy": "Disabled"}}
    assert keda.hpa(no_out, {"TOPIC": "events"})["spec"]["behavior"] == {"scaleUp": {"selectPolicy": "Disabled"}}


def test_a_pause_ends_the_loop_and_the_hpa():
    """As it stands, or at a number."""
    held = scaled(annotations={f"{PREFIX}paused-replicas": "3"})
    assert decided(held, ACTIVE, 0) == (None, None)
    assert keda.hpa(held) is None


def test_activation_can_be_forced():
    """By annotation, without any trigger."""
    assert decided(scaled(annotations={f"{PREFIX}force-activation": "true"}), QUIET, 0) == (1, 1000)


@pytest.mark.parametrize(
    ("behavior", "replicas", "metric"),
    [
        ("static", 9, 60),
        ("currentReplicas", 9, 90),
        ("currentReplicasIfHigher", 9, 90),
        ("currentReplicasIfHigher", 2, 60),
        ("currentReplicasIfLower", 9, 60),
        ("currentReplicasIfLower", 2, 20),
    ],
)
def test_fallback_after_more_than_the_threshold_of_failures(behavior, replicas, metric):
    """The metric that makes the HPA ask for those replicas, active; before it, an error to the HPA."""
    policy = scaled(fallback={"failureThreshold": 2, "replicas": 6, "behavior": behavior})
    failures, seen = 0, []
    for _ in range(3):
        observed = keda.observe(policy, ScalerError("no brokers"), failures, 10, replicas=replicas)
        failures = observed.failures
        seen.append((observed.metric, observed.fallback))
    assert seen == [(None, False), (None, False), (metric, True)]
    assert keda.state(policy, [observed]).active
    assert keda.observe(policy, Reading(5, False, ()), failures, 10).failures == 0


def test_a_fallback_of_type_value_is_shared_by_the_ready_pods():
    """The HPA multiplies it by them again; with none ready it can't."""
    policy = scaled(KAFKA | {"metricType": "Value"}, fallback={"failureThreshold": 0, "replicas": 6})
    assert keda.observe(policy, ScalerError("x"), 0, 10, "Value", 4, 3).metric == 20
    assert keda.observe(policy, ScalerError("x"), 0, 10, "Value", 4, 0).metric is None


def test_an_unreachable_external_scaler_never_falls_back():
    """It names no metric, so no failure is counted, however often."""
    policy = scaled(EXTERNAL, fallback={"failureThreshold": 0, "replicas": 6})
    observed = keda.observe(policy, None, 7, 0)
    assert (observed.metric, observed.fallback, observed.failures) == (None, False, 7)
    assert keda.state(policy, [observed]) == State(False, True, ("trigger 0: failed",))


def test_a_cached_fallback_counts_as_a_success_to_the_hpa():
    """With useCachedMetrics the HPA's call finds the loop's fallback as an answer, and sets the failures back to 0."""
    policy = scaled(KAFKA | {"useCachedMetrics": True}, fallback={"failureThreshold": 0, "replicas": 6})
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


def test_when_the_polling_interval_matters():
    """To and from 0, to idle, and for cached metrics; else the loop reads what the HPA's calls left."""
    assert keda.polls(scaled())
    assert keda.polls(scaled(minReplicaCount=1, idleReplicaCount=0))
    assert keda.polls(scaled(KAFKA | {"useCachedMetrics": True}, minReplicaCount=1))
    assert not keda.polls(scaled(minReplicaCount=1))


def test_the_hpa_of_several_triggers():
    """Metrics by type, then by index; targets as quantities; names with the trigger's index."""
    policy = scaled(CPU, KAFKA, CRON, PROMETHEUS, EXTERNAL, minReplicaCount=0, maxReplicaCount=24)
    made = keda.hpa(policy, {"TOPIC": "orders.v1"}, {4: ("lag", 500.0)})
    external = [
        (metric["external"]["metric"]["name"], metric["external"]["target"]["averageValue"])
        for metric in made["spec"]["metrics"]
        if metric["type"] == "External"
    ]
    assert external == [
        ("s1-kafka-orders-v1", "10"),
        ("s2-cron-Etc-UTC-08xxx-018xxx", "1"),
        ("s3-prometheus", "500m"),
        ("s4-lag", "500"),
    ]
    assert made["spec"]["metrics"][-1] == {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}},
    }
    assert made["metadata"] == {"name": "keda-hpa-consumer"}
    assert made["spec"]["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": "enricher"}
    assert (made["spec"]["minReplicas"], made["spec"]["maxReplicas"]) == (1, 24)
    selector = made["spec"]["metrics"][0]["external"]["metric"]["selector"]
    assert selector == {"matchLabels": {"scaledobject.keda.sh/name": "consumer"}}


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
    for policy in (scaled(minReplicaCount=4, idleReplicaCount=0), scaled(minReplicaCount=4), scaled()):
        decision = keda.scale(policy, State(active, error, ()), replicas, now, 0, last)
        assert decision.replicas in (None, 0, max(1, policy.min_replicas))
        assert decision.replicas != replicas
