"""The metadata of a trigger, as KEDA sends it: what it comes to, and what is refused, by name."""

import pytest

from lab.errors import InputError
from lab.inputs.triggers import external
from lab.inputs.triggers.persistent_lag import Rule, Source, parse

GIVEN = {
    "scalerAddress": "lag-scaler:6000",
    "bootstrapServers": "b2:9092, b1:9092",
    "consumerGroup": "enrich",
    "topic": "orders.v1",
    "lagThreshold": "500",
    "sustainSeconds": "120",
}


def test_what_the_seed_writes_is_understood():
    """Its quick start with what it lacks, and the defaults of its table; the same cluster in another order is the same."""
    settings = parse(GIVEN, "x")
    assert settings.source == Source("b1:9092,b2:9092", "enrich", "orders.v1", "latest", None, False)
    assert settings.rule == Rule(500, 120, 0, 0, 10, 30, 0, ages=False, allow_idle=False)
    assert settings.metric == "persistent-lag-orders-v1"


def test_the_seeds_quick_start_as_written_is_refused():
    """It says of no cluster where it is, and its address is a URL, which gRPC resolves to no host."""
    written = GIVEN | {"scalerAddress": "http://lag-scaler.default.svc.cluster.local"}
    with pytest.raises(InputError, match=r"scalerAddress: 'http://.* is not allowed; allowed: HOST:PORT"):
        external.parse({"type": "external", "metadata": written}, "x", "")
    del written["bootstrapServers"]
    with pytest.raises(InputError, match=r"bootstrapServers: None is not allowed"):
        parse(written, "x")


@pytest.mark.parametrize(
    "tuning",
    [
        {"lagThreshold": "200", "sustainSeconds": "60", "scaleUpStabilization": "30"},
        {"lagThreshold": "1000", "sustainSeconds": "300", "scaleUpStabilization": "120"},
        {"lagThreshold": "2000", "sustainSeconds": "180", "scaleDownStabilization": "600"},
    ],
)
def test_the_seeds_three_tunings_are_valid(tuning):
    """300 s of persistence fit 30 samples 10 s apart: they are 30 intervals, of 31 samples."""
    assert parse(GIVEN | tuning, "x").rule.target == float(tuning["lagThreshold"])


def test_a_variable_arrives_resolved_under_its_fields_name():
    """KEDA sends topicFromEnv with the variable's value; the literal wins where both are there, as in the kafka trigger."""
    given = {key: value for key, value in GIVEN.items() if key not in ("topic", "bootstrapServers")}
    from_env = given | {"topicFromEnv": "payments", "bootstrapServersFromEnv": "b:9092"}
    assert parse(from_env, "x").source.topic == "payments"
    assert parse(from_env, "x").source.servers == "b:9092"
    assert parse(from_env | {"topic": "orders"}, "x").source.topic == "orders"


def test_names_are_checked_where_they_are_names():
    """A manifest has a variable's name there, KEDA sends its value."""
    given = {key: value for key, value in GIVEN.items() if key != "bootstrapServers"} | {"bootstrapServersFromEnv": "SERVERS"}
    assert parse(given, "x").source.servers == "SERVERS"
    with pytest.raises(InputError, match=r"metadata.bootstrapServersFromEnv: 'SERVERS' is not allowed; allowed: HOST:PORT"):
        parse(given, "x", resolved=True)
    for address in ("b:1", "b-1.kafka.svc:65535", "10.0.0.1:9092", "[::1]:9092"):
        assert parse(given | {"bootstrapServersFromEnv": address}, "x", resolved=True).source.servers == address
    for topic in ("a", "x" * 249, "_Schemas.v1-2", "..."):
        assert parse(GIVEN | {"topic": topic}, "x").source.topic == topic


def test_a_stabilization_of_an_hour_is_possible_from_a_second_on():
    """It is as many samples as are kept for it."""
    hour = {"scaleUpStabilization": "3600", "scaleDownStabilization": "3600", "samplingInterval": "1", "sustainSeconds": "30"}
    assert parse(GIVEN | hour, "x").rule.up_s == parse(GIVEN | hour, "x").rule.down_s == 3600


def test_a_threshold_in_seconds():
    """The age of the oldest uncommitted record instead of a number of messages."""
    given = {key: value for key, value in GIVEN.items() if key != "lagThreshold"}
    settings = parse(given | {"lagSeconds": "2.5", "activationLagSeconds": "0.5", "offsetResetPolicy": "earliest"}, "x")
    assert (settings.rule.target, settings.rule.activation, settings.rule.ages) == (2.5, 0.5, True)
    assert settings.metric == "persistent-lag-seconds-orders-v1"
    assert settings.source.ages


def test_words_shared_with_the_kafka_trigger_mean_the_same():
    """Partitions, idle consumers, activation, the reset policy."""
    shared = {"partitionLimitation": "1,3-5", "allowIdleConsumers": "true", "activationLagThreshold": "7"}
    settings = parse(GIVEN | shared | {"offsetResetPolicy": "earliest"}, "x")
    assert settings.source.partitions == {1, 3, 4, 5}
    assert settings.source.offset_reset == "earliest"
    assert (settings.rule.allow_idle, settings.rule.activation) == (True, 7)


@pytest.mark.parametrize(
    ("change", "line"),
    [
        (
            {"topic": None},
            "metadata.topic: None is not allowed; allowed: a value, here or by topicFromEnv from a variable that",
        ),
        ({"bootstrapServers": " "}, "metadata.bootstrapServers: '' is not allowed"),
        ({"lagThreshold": "0"}, "metadata.lagThreshold: '0' is not allowed; allowed: a whole number from 1"),
        ({"lagThreshold": None}, "metadata.lagThreshold: None is not allowed; allowed: either lagThreshold (messages) or"),
        ({"lagSeconds": "5"}, "metadata.lagThreshold: '500' is not allowed; allowed: either lagThreshold (messages) or"),
        ({"lagThreshold": None, "lagSeconds": "0.05"}, "metadata.lagSeconds: '0.05' is not allowed; allowed: a number from 0"),
        ({"activationLagSeconds": "5"}, "metadata.activationLagSeconds: '5' is not allowed; allowed: nothing beside lagThresh"),
        ({"sustainSeconds": None}, "metadata.sustainSeconds: None is not allowed; allowed: a whole number from 0 to 3600"),
        (
            {"sustainSeconds": "301"},
            "metadata.sustainSeconds: '301' is not allowed; allowed: at most samplingInterval * windowSi",
        ),
        ({"samplingInterval": "0"}, "metadata.samplingInterval: '0' is not allowed; allowed: a number from 0.1 to 300"),
        ({"windowSize": "721"}, "metadata.windowSize: '721' is not allowed; allowed: a whole number from 1 to 720"),
        (
            {"scaleDownStabilization": "1h"},
            "metadata.scaleDownStabilization: '1h' is not allowed; allowed: a whole number from",
        ),
        (
            {"scaleUpStabilization": "3601"},
            "metadata.scaleUpStabilization: '3601' is not allowed; allowed: a whole number from",
        ),
        (
            {"scaleUpStabilization": "361", "samplingInterval": "0.1", "sustainSeconds": "3"},
            "metadata.scaleUpStabilization: '361' is not allowed; allowed: at most 3600 times samplingInterval, 360",
        ),
        (
            {"scaleDownStabilization": "361", "samplingInterval": "0.1", "sustainSeconds": "3"},
            "metadata.scaleDownStabilization: '361' is not allowed; allowed: at most 3600 times samplingInterval, 360",
        ),
        (
            {"lagThreshold": None, "lagSeconds": "5", "activationLagSeconds": "-1"},
            "metadata.activationLagSeconds: '-1' is not allowed; allowed: a number from 0",
        ),
        ({"topic": "a\0b"}, "metadata.topic: 'a\\x00b' is not allowed; allowed: a topic's name: up to 249 of"),
        ({"topic": "x" * 250}, f"metadata.topic: '{'x' * 250}' is not allowed; allowed: a topic's name"),
        ({"topic": ".."}, "metadata.topic: '..' is not allowed; allowed: a topic's name"),
        ({"consumerGroup": "a\0b"}, "metadata.consumerGroup: 'a\\x00b' is not allowed; allowed: 255 printable characters"),
        ({"consumerGroup": "x" * 256}, f"metadata.consumerGroup: '{'x' * 256}' is not allowed; allowed: 255 printable"),
        ({"bootstrapServers": "b:9092,,"}, "metadata.bootstrapServers: 'b:9092,,' is not allowed; allowed: HOST:PORT, with a"),
        ({"bootstrapServers": "nonsense://x"}, "metadata.bootstrapServers: 'nonsense://x' is not allowed; allowed: HOST:PORT"),
        ({"bootstrapServers": "b:65536"}, "metadata.bootstrapServers: 'b:65536' is not allowed; allowed: HOST:PORT"),
        ({"bootstrapServers": "b"}, "metadata.bootstrapServers: 'b' is not allowed; allowed: HOST:PORT"),
        ({"partitionLimitation": "3-1"}, "metadata.partitionLimitation: '3-1' is not allowed"),
        ({"offsetResetPolicy": "none"}, "metadata.offsetResetPolicy: 'none' is not allowed; allowed: latest or earliest"),
        ({"lagTreshold": "5"}, "metadata.lagTreshold: '5' is not allowed; allowed: one of the fields activationLagSeconds"),
    ],
)
def test_what_is_refused_is_refused_by_name(change, line):
    """One line: the ScaledObject, the field, its value, what is allowed."""
    given = {key: value for key, value in (GIVEN | change).items() if value is not None}
    with pytest.raises(InputError) as refused:
        parse(given, "ScaledObject shop/consumer")
    assert str(refused.value).startswith(f"ScaledObject shop/consumer: {line}")
