"""Every trigger type is read strictly, and the answers of a Prometheus query and of a cron schedule are KEDA's."""

import math
from datetime import UTC, datetime

import pytest

from lab.inputs.scale import Scale
from lab.inputs.triggers import cron, parsing, persistent_lag, prometheus
from lab.inputs.triggers.common import ScalerError
from lab.inputs.triggers.external import PersistentLag
from tests.unit.inputs.written import (
    APACHE,
    CPU,
    CRON,
    EACH,
    EXTERNAL,
    KAFKA,
    LASTING,
    MEMORY,
    PROMETHEUS,
    one,
    refused,
    scaled,
)


@pytest.mark.parametrize(
    ("kind", "field", "value", "line"),
    [
        ("kafka", "consumerGroup", None, "consumerGroup: missing | an address or name"),
        ("kafka", "activationLagThreshold", "-1", "'-1' | a whole number from 0"),
        ("kafka", "lagThreshold", "1_000", "lagThreshold: '1_000' |"),
        ("kafka", "lagThreshold", "5.0", """lagThreshold: '5.0' | did you mean "5"?"""),
        ("kafka", "offsetResetPolicy", "none", "offsetResetPolicy: 'none' | latest or earliest"),
        ("kafka", "allowIdleConsumers", "yes", """allowIdleConsumers: 'yes' | "true" or "false\""""),
        ("kafka", "partitionLimitation", "all", "partitionLimitation: 'all' | partitions and ranges"),
        ("kafka", "partitionLimitation", "5-1", "partitionLimitation: '5-1' |"),
        ("kafka", "topic", "a,b", "topic: 'a,b' | a topic's name"),
        ("kafka", "sasl", "plaintext", "sasl: 'plaintext' | none without an authenticationRef"),
        ("kafka", "tls", "on", "tls: 'on' | disable or enable"),
        ("kafka", "version", "4", "version: '4' |"),
        ("kafka", "metricName", "lag", "metricName: 'lag' | one of the fields"),
        ("kafka", "metricType", "Value", "metricType: 'Value' | did you mean metricType beside metadata?"),
        ("kafka", "pollingInterval", "5", "pollingInterval: '5' | did you mean spec.pollingInterval?"),
        ("kafka", "saslPassword", "hunter2", "saslPassword: '(not shown)' | one of the fields"),
        ("kafka", "password", "hunter2", "password: '(not shown)' | nothing: KEDA takes it from the Tr"),
        ("kafka", "sasl", "aws_msk_iam", "sasl: 'aws_msk_iam' | oauthbearer, with saslTokenProvider aws_msk_iam: aws"),
        ("kafka", "saslTokenProvider", "aws", "saslTokenProvider: 'aws' | bearer or aws_msk_iam"),
        ("apache", "fullMetadata", "true", "fullMetadata: 'true' | one of the fields"),
        ("apache", "topic", None, "topic: missing | a topic, here or by topicFromEnv: without one apache-k"),
        ("apache", "topic", "orders,payments", "topic: 'orders,payments' | one topic"),
        ("apache", "sasl", "gssapi", "sasl: 'gssapi' | none, plaintext, scram_sha256, scram_sha512 or a"),
        ("memory", "value", "1.5", "value: '1.5' | whole bytes above 0, such as 500Mi, 1.5Gi or 2G"),
        ("memory", "value", "0", "value: '0' | whole bytes above 0"),
        ("external", "caCert", "x", "caCert: '(not shown)' | nothing: KEDA takes it from the Trigger"),
        ("prometheus", "authModes", "bearer", "authModes: 'bearer' | none without an authenticationRef"),
        ("prometheus", "authMode", "apiKey", "apiKey: missing | a key, here or in the TriggerAuthenticat"),
        ("prometheus", "serverAddress", "p:9090", "serverAddress: 'p:9090' | a URL"),
        ("prometheus", "query", " ", "query: '' | a PromQL query"),
        ("prometheus", "threshold", None, "threshold: missing | a number from 0.001"),
        ("prometheus", "threshold", "0", "threshold: '0' | a number from 0.001"),
        ("prometheus", "activationThreshold", "ten", "activationThreshold: 'ten' | a number,"),
        ("prometheus", "ignoreNullValues", "no", "ignoreNullValues: 'no' |"),
        ("prometheus", "customHeaders", "a", "customHeaders: '(not shown)' | pairs"),
        ("cron", "timezone", "Berlin", "timezone: 'Berlin' | a time zone such as Europe/Berlin"),
        ("cron", "start", "0 8 * *", "start: '0 8 * *' | five fields of a crontab"),
        ("cron", "end", "0 25 * * *", "its hour is '25', and 0 to 23 is the range"),
        ("cron", "end", "0 8 * * 1-5", "end: '0 8 * * 1-5' | another time than start"),
        ("cron", "desiredReplicas", "0", "desiredReplicas: '0' | a whole number from 1"),
        ("cpu", "type", "Utilization", "metadata.type: 'Utilization' | nothing: KEDA 2.18 removed it"),
        ("cpu", "value", "75%", "value: '75%' | a whole number from 1 to 2147483647"),
        ("external", "scalerAddress", None, "scalerAddress: missing | HOST:PORT of a gRPC service"),
        ("external", "scalerAddress", "http://lag-scaler", "| HOST:PORT of a gRPC service, without http://"),
        ("external", "enableTLS", "maybe", "enableTLS: 'maybe' |"),
        ("lasting", "sustainSeconds", "301", "sustainSeconds: '301' | at most samplingInterval * windo"),
        ("lasting", "lagThreshold", "many", "lagThreshold: 'many' | a whole number from 1"),
        ("lasting", "lagTreshold", "5", "lagTreshold: '5' | did you mean lagThreshold?"),
        ("lasting", "topic", None, "topic: missing | a value, here or by topicFromEnv"),
    ],
)
def test_a_bad_trigger_is_one_clear_line(kind, field, value, line):
    """File, field, value and what is allowed, on one line."""
    said = refused(one, EACH[kind], **{field: value})
    assert said.startswith("my.yaml: spec.triggers[0].metadata.")
    assert line in said


def test_the_name_of_a_metric_is_taken():
    """KEDA ignores metricName, which most public prometheus triggers still have."""
    assert one(PROMETHEUS, metricName="x").metric(0, {}) == one(PROMETHEUS).metric(0, {})


@pytest.mark.parametrize(
    ("trigger", "line"),
    [
        (KAFKA | {"metricType": "Utilization"}, "metricType: 'Utilization' | AverageValue or Value"),
        (CPU | {"metricType": None}, "metricType: missing | Utilization or AverageValue"),
        (CPU | {"useCachedMetrics": True}, "useCachedMetrics: True | false: KEDA has none for cpu"),
        (CRON | {"useCachedMetrics": True}, "useCachedMetrics: True |"),
        (KAFKA | {"authenticationRef": {"name": "x", "kind": "Secret"}}, "authenticationRef.kind: 'Secret' |"),
        (KAFKA | {"metadata": None}, "metadata: missing | a mapping of strings"),
        ({"type": "redis"}, "type: 'redis' | kafka, apache-kafka, prometheus, cron, cpu, memory, exter"),
        (
            {"type": "cpu", "metadata": {"type": "Utilization", "value": "80"}},
            "metadata.type: 'Utilization' | nothing: KEDA 2.18 removed it; write metricType: Utilization beside metadata",
        ),
        ({"type": "external-push"}, "type: 'external-push' | external: the lab's scaler answers when"),
        ({"type": ["kafka"]}, "type: ['kafka'] | kafka, apache-kafka"),
        ({"type": {"kafka": 1}}, "type: {'kafka': 1} | kafka, apache-kafka"),
    ],
)
def test_what_is_beside_the_metadata_is_checked_too(trigger, line):
    """Target types, cached metrics, references to secrets."""
    assert line in refused(parsing.parse, [trigger], "my.yaml")


def test_of_external_scalers_the_labs_own_is_known():
    """By sustainSeconds; its metadata means what the scaler makes of it, and a variable's name stands for its value."""
    lasting = one(LASTING, scaleDownStabilization="60")
    assert isinstance(lasting, PersistentLag)
    assert lasting.settings == persistent_lag.parse(lasting.metadata, "my.yaml")
    assert (lasting.settings.rule.target, lasting.settings.rule.sustain_s, lasting.settings.rule.down_s) == (500, 120, 60)
    assert lasting.settings.source.servers == "SERVERS"
    assert not isinstance(one(EXTERNAL), PersistentLag)


MSK = {"sasl": "oauthbearer", "saslTokenProvider": "aws_msk_iam", "tls": "enable", "awsRegion": "eu-west-1"}


@pytest.mark.parametrize("trigger", [KAFKA, APACHE], ids=["kafka", "apache-kafka"])
def test_msk_iam_is_taken_with_a_region_encryption_and_an_identity(trigger):
    """Of the operator itself, or of a TriggerAuthentication; each of the three that is missing is named."""
    login = MSK if trigger is KAFKA else {"sasl": "aws_msk_iam", "tls": "enable", "awsRegion": "eu-west-1"}
    one(trigger, **login, identityOwner="operator")
    one(trigger | {"authenticationRef": {"name": "msk"}}, **login | {"tls": None})
    for missing, line in (
        ("awsRegion", "awsRegion: "),
        ("tls", "tls: "),
        ("identityOwner", "| none without an authenticationR"),
    ):
        assert line in refused(one, trigger, **login | {"identityOwner": "operator"} | {missing: None})


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("1536Mi", "1536Mi"),
        ("2048Mi", "2Gi"),
        ("2000M", "2G"),
        ("1500000", "1500k"),
        ("1.5Gi", "1536Mi"),
        ("1Ki", "1Ki"),
        ("1023", "1023"),
    ],
)
def test_memory_is_written_as_kubernetes_writes_it(written, canonical):
    """Thousands and 1024s are kept apart."""
    target = one(MEMORY, value=written).metric(0, {})["resource"]["target"]
    assert target == {"type": "AverageValue", "averageValue": canonical}


def test_a_type_that_is_not_known_is_named_beside_the_others():
    """Those can be read without it."""
    said = refused(parsing.parse, [{"type": "aws-sqs-queue", "metadata": {}}, KAFKA], "my.yaml")
    assert said.startswith("my.yaml: spec.triggers[0].type: 'aws-sqs-queue' | kafka, apache-kafka, ")
    assert said.endswith("; without it the others can be read")


def test_triggers_have_names_of_their_own():
    """KEDA refuses the second of a name; no trigger at all is refused too."""
    named = [KAFKA | {"name": "a"}, CPU | {"name": "a"}]
    assert "spec.triggers[1].name: 'a' | a name no other trigger has" in refused(parsing.parse, named, "my.yaml")
    assert "spec.triggers: [] | a list of at least one trigger" in refused(parsing.parse, [], "my.yaml")


def test_a_cap_by_topic_needs_a_topic():
    """limitToPartitionsWithLag and ensureEvenDistributionOfPartitions count one topic's partitions."""
    for field in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"):
        assert f"topic: missing | a topic, which {field} needs" in refused(one, KAFKA, topic=None, **{field: "true"})


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"idleReplicaCount": 0}, "spec.idleReplicaCount: 0 | none without a minReplicaCount"),
        ({"idleReplicaCount": 2, "minReplicaCount": 4}, "| 0: the HPA raises any other to minReplicaCount again"),
        ({"fallback": {"replicas": 3}}, "spec.fallback.failureThreshold: missing |"),
        ({"fallback": {"failureThreshold": 3, "replicas": 3, "behavior": "none"}}, "spec.fallback.behavior: 'none'"),
        ({"advanced": {"scalingModifiers": {"formula": "1 + 1"}}}, "spec.advanced.scalingModifiers.target: missing |"),
        ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name: missing |"),
        ({"initialCooldownPeriod": -1}, "spec.initialCooldownPeriod: -1 |"),
        ({"behavior": {}}, "spec.behavior: {} | did you mean advanced.horizontalPodAutoscalerConfig.behavior?"),
        ({"advanced": {"horizontalPodAutoscalerConfig": {"name": "x" * 64}}}, "| at most 63 characters"),
    ],
)
def test_a_bad_scaledobject_is_one_clear_line(spec, line):
    """File, field, value and what is allowed, on one line."""
    said = refused(scaled, [KAFKA], **spec)
    assert said.startswith("my.yaml: ")
    assert line in said


def test_cpu_alone_can_neither_scale_to_zero_nor_fall_back():
    """KEDA refuses both."""
    assert "0 | from 1, where every trigger is cpu" in refused(scaled, [CPU])
    fallback = {"failureThreshold": 3, "replicas": 3}
    assert "| none, where every trigger is cpu or memory" in refused(scaled, [CPU], minReplicaCount=1, fallback=fallback)


def test_annotations_pause():
    """Each of KEDA's switches, and a misspelt one."""
    prefix = "autoscaling.keda.sh/"
    held = scaled([KAFKA], {f"{prefix}paused-replicas": "3", f"{prefix}paused-scale-in": "true"}).switches
    assert (held.paused, held.replicas, held.scale_in_paused, held.scale_out_paused) == (True, 3, True, False)
    assert not scaled([KAFKA], {f"{prefix}paused": "false", "team": "x"}).switches.paused
    assert f"metadata.annotations.{prefix}pause: 'true' |" in refused(scaled, [KAFKA], {f"{prefix}pause": "true"})
    assert "paused-replicas: '-1' |" in refused(scaled, [KAFKA], {f"{prefix}paused-replicas": "-1"})


@pytest.mark.parametrize(("word", "on"), [("True", True), ("1", True), ("FALSE", False), ("f", False), ("", False)])
def test_a_truth_value_is_what_go_takes_for_one(word, on):
    """In a trigger as in an annotation, where any other word counts as true."""
    assert one(KAFKA, allowIdleConsumers=word).allow_idle is on
    prefix = "autoscaling.keda.sh/"
    assert scaled([KAFKA], {f"{prefix}paused": word}).switches.paused is (on or not word)


def test_a_scale_does_to_each_trigger_what_is_declared():
    """A lag is rate x time; percent and a time of day stay, and a query may be of anything."""
    lasting = LASTING["metadata"] | {"lagThreshold": "1000", "activationLagThreshold": "100", "lagSeconds": ""}
    policy = scaled([KAFKA, CPU, PROMETHEUS, {"type": "external", "metadata": lasting}, CRON])
    made = policy.compressed(Scale("test", 30, 4)).content["spec"]["triggers"]
    assert made[0]["metadata"]["lagThreshold"] == str(round(policy.lag_threshold * 4 / 30))
    assert made[1] == CPU
    assert float(made[2]["metadata"]["threshold"]) == 4 * float(PROMETHEUS["metadata"]["threshold"])
    wanted = {"lagThreshold": "133", "activationLagThreshold": "13", "sustainSeconds": "4", "samplingInterval": "0.334"}
    assert made[3]["metadata"] == lasting | wanted
    assert made[4] == CRON


def test_a_threshold_of_lag_is_the_first_trigger_that_has_one():
    """Of the kafka trigger, or of the persistent-lag scaler; None of a policy without one."""
    lasting = {"type": "external", "metadata": {"scalerAddress": "x:6000", "lagThreshold": "700"}}
    assert scaled([CPU, lasting, KAFKA]).lag_threshold == 700
    assert scaled([PROMETHEUS]).lag_threshold is None


@pytest.mark.parametrize(
    ("elements", "metric", "active"),
    [
        ([500.0], 500, True),
        ([10.0], 10, False),
        ([], 0, False),
        ([math.nan], 0, False),
        ([-5.0], 0, False),
        ([0.1234], 0.123, False),
    ],
)
def test_the_answer_of_a_query(elements, metric, active):
    """Nothing, NaN and what is negative are 0; active is strictly above the threshold."""
    found = prometheus.read(one(PROMETHEUS, activationThreshold="10"), elements)
    assert (found.metric, found.active) == (metric, active)


@pytest.mark.parametrize("elements", [[], [math.inf], [1.0, 2.0]])
def test_a_query_fails_where_null_values_are_not_ignored(elements):
    """More than one element is always an error."""
    with pytest.raises(ScalerError):
        prometheus.read(one(PROMETHEUS, ignoreNullValues="false"), elements)
    if len(elements) < 2:
        assert prometheus.read(one(PROMETHEUS), elements).metric == 0


@pytest.mark.parametrize(
    ("now", "replicas"),
    [
        (datetime(2026, 3, 2, 6, 59, 59, tzinfo=UTC), 0),  # Monday, 7:59:59 in Berlin
        (datetime(2026, 3, 2, 7, 0, 0, tzinfo=UTC), 10),
        (datetime(2026, 3, 2, 16, 59, 59, tzinfo=UTC), 10),
        (datetime(2026, 3, 2, 17, 0, 0, tzinfo=UTC), 0),
        (datetime(2026, 7, 6, 6, 0, 0, tzinfo=UTC), 10),  # summer time: 8:00 is an hour earlier
        (datetime(2026, 3, 7, 12, 0, 0, tzinfo=UTC), 0),  # Saturday
    ],
)
def test_the_replicas_of_office_hours(now, replicas):
    """From the start's minute to the end's, in the trigger's zone, on its days."""
    found = cron.read(one(CRON), now)
    assert (found.metric, found.active) == (replicas, bool(replicas))
    assert "next start" in found.reasons[0]


def test_a_day_that_never_comes_leaves_the_trigger_active():
    """A start that is never due doesn't come before any end; an end alone that never comes doesn't come before any start."""
    now = datetime(2026, 1, 15, tzinfo=UTC)
    assert cron.read(one(CRON, start="0 0 30 2 *"), now).active
    assert not cron.read(one(CRON, end="0 0 30 2 *"), now).active
