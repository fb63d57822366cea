"""Every trigger type is read strictly, and counts as KEDA does."""

import copy
import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import InputError
from lab.model import lag
from lab.model.lag import Partition
from lab.spec.scale import Scale
from lab.spec.scaledobject import parse
from lab.spec.triggers import cron, parsing, persistent_lag, prometheus
from lab.spec.triggers.common import ScalerError
from lab.spec.triggers.external import PersistentLag

KAFKA = {"type": "kafka", "metadata": {"bootstrapServers": "b:9092", "consumerGroup": "enrich", "topic": "events"}}
PROMETHEUS = {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": "sum(x)", "threshold": "100"}}
CRON = {
    "type": "cron",
    "metadata": {"timezone": "Europe/Berlin", "start": "0 8 * * 1-5", "end": "0 18 * * 1-5", "desiredReplicas": "10"},
}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "75"}}
MEMORY = {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "1536Mi"}}
APACHE = KAFKA | {"type": "apache-kafka"}
EXTERNAL = {"type": "external", "metadata": {"scalerAddress": "queue-scaler:6000", "queue": "jobs"}}
LASTING = {
    "type": "external",
    "metadata": {
        "scalerAddress": "lag-scaler:6000",
        "bootstrapServersFromEnv": "SERVERS",
        "consumerGroup": "enrich",
        "topic": "events",
        "lagThreshold": "500",
        "sustainSeconds": "120",
    },
}
EACH = {
    "kafka": KAFKA,
    "apache": APACHE,
    "prometheus": PROMETHEUS,
    "cron": CRON,
    "cpu": CPU,
    "memory": MEMORY,
    "external": EXTERNAL,
    "lasting": LASTING,
}


def one(trigger, **changed):
    """The trigger with metadata changed (removed, for None), parsed."""
    content = copy.deepcopy(trigger)
    for field, value in changed.items():
        content["metadata"].pop(field, None)
        if value is not None:
            content["metadata"][field] = value
    return parsing.parse([content], "my.yaml")[0]


@pytest.mark.parametrize("kind", EACH)
def test_the_triggers_of_the_scenarios_are_read(kind):
    """One of each type, with a name, beside the others."""
    read = parsing.parse([trigger | {"name": name} for name, trigger in EACH.items()], "my.yaml")
    assert dict(zip(EACH, read, strict=True))[kind].common.name == kind


@pytest.mark.parametrize(
    ("kind", "field", "value", "line"),
    [
        ("kafka", "consumerGroup", None, "consumerGroup: None is not allowed; allowed: an address or name"),
        (
            "kafka",
            "activationLagThreshold",
            "-1",
            "'-1' is not allowed; allowed: a whole number from 0, as a string",
        ),
        ("kafka", "lagThreshold", "1_000", "lagThreshold: '1_000' is not allowed"),
        ("kafka", "offsetResetPolicy", "none", "offsetResetPolicy: 'none' is not allowed; allowed: latest or earliest"),
        ("kafka", "allowIdleConsumers", "yes", """allowIdleConsumers: 'yes' is not allowed; allowed: "true" or "false\""""),
        ("kafka", "partitionLimitation", "all", "partitionLimitation: 'all' is not allowed; allowed: partitions and ranges"),
        ("kafka", "partitionLimitation", "5-1", "partitionLimitation: '5-1' is not allowed"),
        ("kafka", "sasl", "plaintext", "sasl: 'plaintext' is not allowed; allowed: none without an authenticationRef"),
        ("kafka", "tls", "on", "tls: 'on' is not allowed; allowed: disable or enable"),
        ("kafka", "version", "4", "version: '4' is not allowed"),
        ("kafka", "metricName", "lag", "metricName: 'lag' is not allowed; allowed: one of the fields"),
        ("kafka", "password", "hunter2", "password: '(not shown)' is not allowed; allowed: nothing: KEDA takes it from the Tr"),
        ("kafka", "saslTokenProvider", "aws", "saslTokenProvider: 'aws' is not allowed; allowed: bearer or aws_msk_iam"),
        ("apache", "fullMetadata", "true", "fullMetadata: 'true' is not allowed; allowed: one of the fields"),
        (
            "apache",
            "topic",
            None,
            "topic: None is not allowed; allowed: a topic, here or by topicFromEnv: without one apache-k",
        ),
        ("apache", "topic", "orders,payments", "topic: 'orders,payments' is not allowed; allowed: one topic"),
        (
            "apache",
            "sasl",
            "gssapi",
            "sasl: 'gssapi' is not allowed; allowed: none, plaintext, scram_sha256, scram_sha512 or a",
        ),
        ("apache", "sasl", "aws_msk_iam", "awsRegion: None is not allowed; allowed: the AWS region of the MSK cluster"),
        ("memory", "value", "1.5Gi", "value: '1.5Gi' is not allowed; allowed: whole bytes above 0, such as 500Mi or 2G"),
        ("memory", "value", "0", "value: '0' is not allowed; allowed: whole bytes above 0"),
        ("external", "caCert", "x", "caCert: '(not shown)' is not allowed; allowed: nothing: KEDA takes it from the Trigger"),
        ("prometheus", "authModes", "bearer", "authModes: 'bearer' is not allowed; allowed: none without an authenticationRef"),
        ("prometheus", "authMode", "apiKey", "apiKey: None is not allowed; allowed: a key, here or in the TriggerAuthenticat"),
        ("prometheus", "serverAddress", "p:9090", "serverAddress: 'p:9090' is not allowed; allowed: a URL"),
        ("prometheus", "query", " ", "query: '' is not allowed; allowed: a PromQL query"),
        ("prometheus", "threshold", None, "threshold: None is not allowed; allowed: a number from 0.001"),
        ("prometheus", "threshold", "0", "threshold: '0' is not allowed; allowed: a number from 0.001"),
        ("prometheus", "activationThreshold", "ten", "activationThreshold: 'ten' is not allowed; allowed: a number,"),
        ("prometheus", "ignoreNullValues", "no", "ignoreNullValues: 'no' is not allowed"),
        ("prometheus", "metricName", "x", "metricName: 'x' is not allowed; allowed: nothing: KEDA ignores metricName"),
        ("prometheus", "customHeaders", "a", "customHeaders: '(not shown)' is not allowed; allowed: pairs"),
        ("cron", "timezone", "Berlin", "timezone: 'Berlin' is not allowed; allowed: a time zone such as Europe/Berlin"),
        ("cron", "start", "0 8 * *", "start: '0 8 * *' is not allowed; allowed: five fields of a crontab"),
        ("cron", "end", "0 25 * * *", "its hour is '25', and 0 to 23 is the range"),
        ("cron", "end", "0 8 * * 1-5", "end: '0 8 * * 1-5' is not allowed; allowed: another time than start"),
        ("cron", "desiredReplicas", "0", "desiredReplicas: '0' is not allowed; allowed: a whole number from 1"),
        ("cpu", "type", "Utilization", "metadata.type: 'Utilization' is not allowed; allowed: nothing: KEDA 2.18 removed it"),
        ("cpu", "value", "75%", "value: '75%' is not allowed; allowed: a whole number from 1 to 2147483647"),
        ("external", "scalerAddress", None, "scalerAddress: None is not allowed; allowed: HOST:PORT of a gRPC service"),
        ("external", "scalerAddress", "http://lag-scaler", "allowed: HOST:PORT of a gRPC service, without http://"),
        ("external", "enableTLS", "maybe", "enableTLS: 'maybe' is not allowed"),
        ("lasting", "sustainSeconds", "301", "sustainSeconds: '301' is not allowed; allowed: at most samplingInterval * windo"),
        ("lasting", "lagThreshold", "many", "lagThreshold: 'many' is not allowed; allowed: a whole number from 1"),
        ("lasting", "lagTreshold", "5", "lagTreshold: '5' is not allowed; allowed: one of the fields activationLagSeconds"),
        ("lasting", "topic", None, "topic: None is not allowed; allowed: a value, here or by topicFromEnv"),
    ],
)
def test_a_bad_trigger_is_one_clear_line(kind, field, value, line):
    """File, field, value and what is allowed, on one line."""
    with pytest.raises(InputError) as error:
        one(EACH[kind], **{field: value})
    assert str(error.value).startswith("my.yaml: spec.triggers[0].metadata.")
    assert line in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("trigger", "line"),
    [
        (KAFKA | {"metricType": "Utilization"}, "metricType: 'Utilization' is not allowed; allowed: AverageValue or Value"),
        (CPU | {"metricType": None}, "metricType: None is not allowed; allowed: Utilization or AverageValue"),
        (CPU | {"useCachedMetrics": True}, "useCachedMetrics: True is not allowed; allowed: false: KEDA has none for cpu"),
        (CRON | {"useCachedMetrics": True}, "useCachedMetrics: True is not allowed"),
        (KAFKA | {"authenticationRef": {"name": "x", "kind": "Secret"}}, "authenticationRef.kind: 'Secret' is not allowed"),
        (KAFKA | {"metadata": None}, "metadata: None is not allowed; allowed: a mapping of strings"),
        ({"type": "redis"}, "type: 'redis' is not allowed; allowed: kafka, apache-kafka, prometheus, cron, cpu, memory, exter"),
        ({"type": "external-push"}, "type: 'external-push' is not allowed; allowed: external: the lab's scaler answers when"),
        ({"type": ["kafka"]}, "type: ['kafka'] is not allowed; allowed: kafka, apache-kafka"),
        ({"type": {"kafka": 1}}, "type: {'kafka': 1} is not allowed; allowed: kafka, apache-kafka"),
    ],
)
def test_what_is_beside_the_metadata_is_checked_too(trigger, line):
    """Target types, cached metrics, references to secrets."""
    with pytest.raises(InputError) as error:
        parsing.parse([trigger], "my.yaml")
    assert line in str(error.value)


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
    for missing, field in (("awsRegion", "awsRegion"), ("tls", "tls"), ("identityOwner", "none without an authenticationRef")):
        with pytest.raises(InputError, match=field):
            one(trigger, **login | {"identityOwner": "operator"} | {missing: None})


@pytest.mark.parametrize(
    ("written", "canonical"),
    [("1536Mi", "1536Mi"), ("2048Mi", "2Gi"), ("2000M", "2G"), ("1500000", "1500k"), ("1Ki", "1Ki"), ("1023", "1023")],
)
def test_memory_is_written_as_kubernetes_writes_it(written, canonical):
    """Thousands and 1024s are kept apart."""
    target = one(MEMORY, value=written).metric(0, {})["resource"]["target"]
    assert target == {"type": "AverageValue", "averageValue": canonical}


def test_triggers_have_names_of_their_own():
    """KEDA refuses the second of a name; no trigger at all is refused too."""
    with pytest.raises(InputError, match=r"spec.triggers\[1\].name: 'a' is not allowed"):
        parsing.parse([KAFKA | {"name": "a"}, CPU | {"name": "a"}], "my.yaml")
    with pytest.raises(InputError, match=r"spec.triggers: \[\] is not allowed; allowed: a list of at least one trigger"):
        parsing.parse([], "my.yaml")


def test_a_cap_by_topic_needs_a_topic():
    """limitToPartitionsWithLag and ensureEvenDistributionOfPartitions count one topic's partitions."""
    for field in ("limitToPartitionsWithLag", "ensureEvenDistributionOfPartitions"):
        with pytest.raises(InputError, match=f"topic: None is not allowed; allowed: a topic, which {field} needs"):
            one(KAFKA, topic=None, **{field: "true"})


def scaled(content_triggers, annotations=None, **spec):
    """A ScaledObject of these triggers."""
    return parse(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "ScaledObject",
            "metadata": {"name": "consumer", "annotations": annotations or {}},
            "spec": {"scaleTargetRef": {"name": "consumer"}, "triggers": content_triggers} | spec,
        },
        "my.yaml",
    )


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        ({"idleReplicaCount": 0}, "spec.idleReplicaCount: 0 is not allowed; allowed: none without a minReplicaCount"),
        ({"idleReplicaCount": 2, "minReplicaCount": 4}, "allowed: 0: the HPA raises any other to minReplicaCount again"),
        ({"fallback": {"replicas": 3}}, "spec.fallback.failureThreshold: None is not allowed"),
        ({"fallback": {"failureThreshold": 3, "replicas": 3, "behavior": "none"}}, "spec.fallback.behavior: 'none'"),
        ({"advanced": {"scalingModifiers": {"formula": "a + b"}}}, "allowed: nothing: a formula over triggers is not modelled"),
        ({"scaleTargetRef": {"kind": "Deployment"}}, "spec.scaleTargetRef.name: None is not allowed"),
        ({"initialCooldownPeriod": -1}, "spec.initialCooldownPeriod: -1 is not allowed"),
        ({"advanced": {"horizontalPodAutoscalerConfig": {"name": "x" * 64}}}, "allowed: at most 63 characters"),
    ],
)
def test_a_bad_scaledobject_is_one_clear_line(spec, line):
    """File, field, value and what is allowed, on one line."""
    with pytest.raises(InputError) as error:
        scaled([KAFKA], **spec)
    assert str(error.value).startswith("my.yaml: ")
    assert line in str(error.value)
    assert "\n" not in str(error.value)


def test_cpu_alone_can_neither_scale_to_zero_nor_fall_back():
    """KEDA refuses both."""
    with pytest.raises(InputError, match="0 is not allowed; allowed: from 1, where every trigger is cpu"):
        scaled([CPU])
    with pytest.raises(InputError, match="where every trigger is cpu or memory: KEDA refuses it"):
        scaled([CPU], minReplicaCount=1, fallback={"failureThreshold": 3, "replicas": 3})


def test_annotations_pause():
    """Each of KEDA's switches, and a misspelt one."""
    prefix = "autoscaling.keda.sh/"
    assert scaled([KAFKA], {f"{prefix}paused-replicas": "3"}).switches.paused
    assert scaled([KAFKA], {f"{prefix}paused-replicas": "3"}).switches.replicas == 3
    assert scaled([KAFKA], {f"{prefix}paused-scale-in": "true"}).switches.scale_in_paused
    assert not scaled([KAFKA], {f"{prefix}paused": "false", "team": "x"}).switches.paused
    with pytest.raises(InputError, match=r"metadata.annotations.autoscaling.keda.sh/pause: 'true' is not allowed"):
        scaled([KAFKA], {f"{prefix}pause": "true"})
    with pytest.raises(InputError, match=r"paused-replicas: '-1' is not allowed"):
        scaled([KAFKA], {f"{prefix}paused-replicas": "-1"})


def test_a_scale_does_to_each_trigger_what_is_declared():
    """Times are divided, the lag wanted per replica is multiplied; percent stay, and a time of day is refused."""
    lasting = LASTING["metadata"] | {"lagThreshold": "1000", "lagSeconds": ""}
    policy = scaled([KAFKA, CPU, PROMETHEUS, {"type": "external", "metadata": lasting}])
    made = policy.compressed(Scale("test", 30, 4)).content["spec"]["triggers"]
    assert made[0]["metadata"]["lagThreshold"] == str(4 * policy.lag_threshold)
    assert made[1] == CPU
    assert float(made[2]["metadata"]["threshold"]) == 4 * float(PROMETHEUS["metadata"]["threshold"])
    wanted = {"lagThreshold": "4000", "sustainSeconds": "4", "samplingInterval": "0.334"}
    assert made[3]["metadata"] == lasting | wanted
    with pytest.raises(InputError, match=r"my.yaml: spec.triggers: 'cron' is not allowed; allowed: any other trigger: a trial"):
        scaled([KAFKA, CRON]).compressed(Scale("test", 30, 1))


def test_a_threshold_of_lag_is_the_first_trigger_that_has_one():
    """Of the kafka trigger, or of the persistent-lag scaler; None of a policy without one."""
    lasting = {"type": "external", "metadata": {"scalerAddress": "x:6000", "lagThreshold": "700"}}
    assert scaled([CPU, lasting, KAFKA]).lag_threshold == 700
    assert scaled([PROMETHEUS]).lag_threshold is None


# Lag. One partition: log from 0 to 100, committed up to 40.


@pytest.mark.parametrize(
    ("settings", "partition", "previous", "scaling", "activation"),
    [
        ({}, Partition(100, 40), None, 60, 60),
        ({}, Partition(100, None), None, 1, 1),
        ({"scaleToZeroOnInvalidOffset": "true"}, Partition(100, None), None, 0, 0),
        ({"offsetResetPolicy": "earliest"}, Partition(100, None, 30), None, 70, 70),
        ({"offsetResetPolicy": "earliest"}, Partition(100, None, None), None, 100, 100),
        ({"offsetResetPolicy": "earliest"}, Partition(100, None, 130), None, 0, 0),
        ({"offsetResetPolicy": "earliest", "scaleToZeroOnInvalidOffset": "true"}, Partition(100, None, 30), None, 0, 0),
        ({}, Partition(None, 40), None, 0, 0),
        ({}, Partition(None, None), None, 1, 1),
        ({"excludePersistentLag": "true"}, Partition(100, 40), None, 60, 60),
        ({"excludePersistentLag": "true"}, Partition(100, 40), 39, 60, 60),
        ({"excludePersistentLag": "true"}, Partition(100, 40), 40, 0, 60),
        ({}, Partition(100, 40), 40, 60, 60),
    ],
)
def test_the_lag_of_a_partition(settings, partition, previous, scaling, activation):
    """Committed or not, each reset policy, persistent or not, answered or not."""
    found = lag.of_partition(one(KAFKA, **settings), partition, previous)
    assert (found.scaling, found.activation) == (scaling, activation)
    assert str(scaling) in found.reason


def topic(*lags):
    """A topic whose partitions have these lags."""
    return {"events": {number: Partition(1000 + value, 1000) for number, value in enumerate(lags)}}


def test_persistent_lag_is_told_by_the_previous_call_whoever_made_it():
    """The second of two calls within one commit interval finds every partition stuck; activation still sees the lag."""
    trigger = one(KAFKA, excludePersistentLag="true", allowIdleConsumers="true")
    first = lag.read(trigger, topic(50, 70), {})
    second = lag.read(trigger, topic(50, 70), first.previous)
    assert (first.metric, first.active) == (120, True)
    assert (second.metric, second.active, second.activation_lag) == (0, True, 120)
    assert "and 120 persistent" in second.reasons[0]


def test_a_partition_that_cannot_be_answered_for_fails_the_query():
    """And a limitation that leaves no partition."""
    with pytest.raises(ScalerError, match="not a coordinator"):
        lag.read(one(KAFKA), {"events": {0: Partition(10, 5, error="not a coordinator")}}, {})
    with pytest.raises(ScalerError, match="no partition of topic events"):
        lag.read(one(KAFKA, partitionLimitation="7-9"), topic(1, 2), {})


def test_only_the_partitions_that_are_wanted_count():
    """partitionLimitation counts in the lag and in the cap."""
    found = lag.read(one(KAFKA, partitionLimitation="0,2-3", lagThreshold="10"), topic(100, 100, 100, 100, 100), {})
    assert (found.lag, found.partitions, found.metric) == (300, 3, 30)


def test_a_partition_without_an_answer_lowers_the_cap():
    """KEDA counts the partitions of the answer, not those of the topic."""
    answered = topic(100, 100)
    answered["events"][2] = Partition(None, 5)
    found = lag.read(one(KAFKA, lagThreshold="10"), answered, {})
    assert (found.partitions, found.metric) == (2, 20)


@pytest.mark.parametrize(
    ("settings", "total", "partitions", "lagging", "metric"),
    [
        ({}, 240, 24, 24, 240),
        ({}, 249, 24, 24, 249),  # 249 // 10 = 24 is not above 24
        ({}, 250, 24, 24, 240),
        ({"allowIdleConsumers": "true"}, 250, 24, 24, 250),
        ({"limitToPartitionsWithLag": "true"}, 250, 24, 3, 30),
        ({"ensureEvenDistributionOfPartitions": "true"}, 41, 24, 24, 60),
        ({"ensureEvenDistributionOfPartitions": "true"}, 0, 24, 0, 10),
        ({"ensureEvenDistributionOfPartitions": "true", "allowIdleConsumers": "true"}, 999, 24, 24, 240),
        ({}, -15, 24, 0, -15),
        ({}, 10, 0, 0, 0),
    ],
)
def test_the_cap(settings, total, partitions, lagging, metric):
    """The division is of whole numbers; an even distribution replaces the lag by a factor's share, whatever is idle."""
    found, reason = lag.capped(one(KAFKA, lagThreshold="10", **settings), total, partitions, lagging)
    assert found == metric
    assert str(metric) in reason


@pytest.mark.parametrize(("partitions", "stuck"), [(24, (22, 23)), (48, (44, 45, 46, 47))])
def test_at_the_cap_the_tolerance_of_the_hpa_holds_fewer_replicas_than_partitions(partitions, stuck):
    """The metric never exceeds P * T by a full T, so from 10/11 of P on the ratio is within 10 % whatever the lag."""
    trigger = one(KAFKA, lagThreshold="100")
    metric = lag.read(trigger, topic(*[1_000_000] * partitions), {}).metric
    assert metric == partitions * 100
    kept = [replicas for replicas in range(1, partitions) if abs(metric / (100 * replicas) - 1) <= 0.1]
    assert tuple(kept) == stuck


def test_between_p_and_p_plus_one_thresholds_no_cap_acts():
    """The HPA then asks for P + 1, and its tolerance keeps the idle pod."""
    trigger = one(KAFKA, lagThreshold="100")
    metric = lag.read(trigger, topic(*[100] * 23, 150), {}).metric
    assert metric == 2450
    assert math.ceil(metric / 100) == 25
    assert abs(2400 / (100 * 25) - 1) <= 0.1


offsets = st.integers(0, 10**12)
partition = st.builds(Partition, end=st.none() | offsets, committed=st.none() | offsets, start=st.none() | offsets)
settings = st.fixed_dictionaries(
    {
        "lagThreshold": st.integers(1, 10**6).map(str),
        "offsetResetPolicy": st.sampled_from(["latest", "earliest"]),
        "excludePersistentLag": st.sampled_from(["true", "false"]),
        "scaleToZeroOnInvalidOffset": st.sampled_from(["true", "false"]),
    }
)
caps = st.sampled_from([{}, {"limitToPartitionsWithLag": "true"}, {"ensureEvenDistributionOfPartitions": "true"}])
events = st.dictionaries(st.integers(0, 50), partition, min_size=1, max_size=12)


@given(settings, caps | st.just({"allowIdleConsumers": "true"}), events)
def test_the_metric_is_never_negative(plain, cap, found):
    """Though lag can be: an offset committed after the log's end was asked for."""
    assert lag.read(one(KAFKA, **plain, **cap), {"events": found}, {}).metric >= 0


@given(settings, caps, events)
def test_the_cap_never_leaves_more_than_a_bound_and_a_bit(plain, cap, found):
    """Less than (bound + 1) thresholds, and with an even distribution at most P of them."""
    trigger = one(KAFKA, **plain, **cap)
    read = lag.read(trigger, {"events": found}, {})
    bound = read.lagging if trigger.limit_to_lagging else read.partitions
    assert read.metric < (bound + 1) * trigger.lag_threshold
    if trigger.even:
        assert read.metric <= bound * trigger.lag_threshold


@given(settings, caps, st.lists(st.integers(0, 10**6), min_size=1, max_size=12), st.data())
def test_more_lag_is_never_a_smaller_bound_than_the_cap(plain, cap, lags, data):
    """The replicas asked for, in whole thresholds, never fall when a lagging partition's lag grows."""
    trigger = one(KAFKA, **plain, **cap)
    place = data.draw(st.integers(0, len(lags) - 1))
    grown = [value + data.draw(st.integers(0, 10**6)) * (index == place) for index, value in enumerate(lags)]
    before, after = (lag.read(trigger, topic(*values), {}).metric // trigger.lag_threshold for values in (lags, grown))
    assert before <= after


@given(settings, events)
def test_without_a_cap_every_message_counts(plain, found):
    """The metric is the lag, and activation compares the lag with the persistent one included."""
    read = lag.read(one(KAFKA, allowIdleConsumers="true", **plain), {"events": found}, {})
    assert read.metric == max(0, read.lag)
    assert read.active == (read.activation_lag > 0)


# Prometheus.


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


# Cron.


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


def test_an_interval_may_span_midnight():
    """The end comes before the next start."""
    night = one(CRON, start="0 22 * * *", end="0 6 * * *", timezone="Etc/UTC")
    active = [hour for hour in range(24) if cron.read(night, datetime(2026, 1, 15, hour, 30, tzinfo=UTC)).active]
    assert active == [0, 1, 2, 3, 4, 5, 22, 23]


def test_a_day_that_never_comes_leaves_the_trigger_active():
    """A start that is never due doesn't come before any end; an end alone that never comes doesn't come before any start."""
    now = datetime(2026, 1, 15, tzinfo=UTC)
    assert cron.read(one(CRON, start="0 0 30 2 *"), now).active
    assert not cron.read(one(CRON, end="0 0 30 2 *"), now).active
