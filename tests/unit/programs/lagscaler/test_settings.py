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
    with pytest.raises(InputError, match=r"bootstrapServers: missing; allowed:"):
        parse(written, "x")


@pytest.mark.parametrize(
    ("tuning", "told"),
    [
        ({"lagThreshold": "200", "sustainSeconds": "60", "scaleUpStabilization": "30"}, (200, 60, 30, 0)),
        # 300 s of persistence fit 30 samples 10 s apart: they are 30 intervals, of 31 samples.
        ({"lagThreshold": "1000", "sustainSeconds": "300", "scaleUpStabilization": "120"}, (1000, 300, 120, 0)),
        ({"lagThreshold": "2000", "sustainSeconds": "180", "scaleDownStabilization": "600"}, (2000, 180, 0, 600)),
        # An hour is as many samples as are kept for it, from an interval of a second on.
        (
            {"scaleUpStabilization": "3600", "scaleDownStabilization": "3600", "samplingInterval": "1", "sustainSeconds": "30"},
            (500, 30, 3600, 3600),
        ),
    ],
)
def test_the_seeds_three_tunings_are_valid_and_a_stabilization_of_an_hour(tuning, told):
    """Target, sustain and both stabilizations."""
    rule = parse(GIVEN | tuning, "x").rule
    assert (rule.target, rule.sustain_s, rule.up_s, rule.down_s) == told


def but(*fields, **changes):
    """The metadata without ``fields``, with ``changes``."""
    return {key: value for key, value in GIVEN.items() if key not in fields} | changes


def test_a_variable_arrives_resolved_under_its_fields_name():
    """KEDA sends topicFromEnv with the variable's value; the literal wins where both are there, as in the kafka trigger."""
    from_env = but("topic", "bootstrapServers", topicFromEnv="payments", bootstrapServersFromEnv="b:9092")
    source = parse(from_env, "x").source
    assert (source.topic, source.servers) == ("payments", "b:9092")
    assert parse(from_env | {"topic": "orders"}, "x").source.topic == "orders"


def test_names_are_checked_where_they_are_names():
    """A manifest has a variable's name there, KEDA sends its value, which is not shown."""
    given = but("bootstrapServers", bootstrapServersFromEnv="SERVERS")
    assert parse(given, "x").source.servers == "SERVERS"
    with pytest.raises(
        InputError, match=r"metadata.bootstrapServersFromEnv: '\(not shown\)' is not allowed; allowed: HOST:PORT"
    ):
        parse(given, "x", resolved=True)
    for address in ("b:1", "b-1.kafka.svc:65535", "10.0.0.1:9092", "[::1]:9092"):
        assert parse(given | {"bootstrapServersFromEnv": address}, "x", resolved=True).source.servers == address
    for topic in ("a", "x" * 249, "_Schemas.v1-2", "..."):
        assert parse(GIVEN | {"topic": topic}, "x").source.topic == topic


def test_a_threshold_in_seconds():
    """The age of the oldest uncommitted record instead of a number of messages."""
    settings = parse(but("lagThreshold", lagSeconds="2.5", activationLagSeconds="0.5", offsetResetPolicy="earliest"), "x")
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


AGES = {"lagThreshold": None, "lagSeconds": "5"}
FAST = {"samplingInterval": "0.1", "sustainSeconds": "3"}


@pytest.mark.parametrize(
    ("change", "shown", "allowed"),
    [
        ({"topic": None}, "topic: missing", "a value, here or by topicFromEnv from a variable that"),
        ({"topic": "a\0b"}, "topic: 'a\\x00b'", "a topic's name: up to 249 of"),
        ({"topic": "x" * 250}, f"topic: '{'x' * 78}…", "a topic's name"),
        ({"topic": ".."}, "topic: '..'", "a topic's name"),
        ({"consumerGroup": "a\0b"}, "consumerGroup: 'a\\x00b'", "255 printable characters"),
        ({"consumerGroup": "x" * 256}, f"consumerGroup: '{'x' * 78}…", "255 printable"),
        ({"bootstrapServers": " "}, "bootstrapServers: ''", ""),
        ({"bootstrapServers": "b:9092,,"}, "bootstrapServers: 'b:9092,,'", "HOST:PORT, with a"),
        ({"bootstrapServers": "nonsense://x"}, "bootstrapServers: 'nonsense://x'", "HOST:PORT"),
        ({"bootstrapServers": "b:65536"}, "bootstrapServers: 'b:65536'", "HOST:PORT"),
        ({"bootstrapServers": "b"}, "bootstrapServers: 'b'", "HOST:PORT"),
        ({"lagThreshold": "0"}, "lagThreshold: '0'", "a whole number from 1"),
        ({"lagThreshold": None}, "lagThreshold: missing", "either lagThreshold (messages) or"),
        ({"lagSeconds": "5"}, "lagThreshold: '500'", "either lagThreshold (messages) or"),
        (AGES | {"lagSeconds": "0.05"}, "lagSeconds: '0.05'", "a number from 0"),
        (AGES | {"activationLagSeconds": "-1"}, "activationLagSeconds: '-1'", "a number from 0"),
        ({"activationLagSeconds": "5"}, "activationLagSeconds: '5'", "nothing beside lagThresh"),
        ({"sustainSeconds": None}, "sustainSeconds: missing", "a whole number from 0 to 3600"),
        ({"sustainSeconds": "301"}, "sustainSeconds: '301'", "at most samplingInterval * windowSi"),
        ({"samplingInterval": "0"}, "samplingInterval: '0'", "a number from 0.1 to 300"),
        ({"windowSize": "721"}, "windowSize: '721'", "a whole number from 1 to 720"),
        ({"scaleDownStabilization": "1h"}, "scaleDownStabilization: '1h'", "a whole number from"),
        ({"scaleUpStabilization": "3601"}, "scaleUpStabilization: '3601'", "a whole number from"),
        (FAST | {"scaleUpStabilization": "361"}, "scaleUpStabilization: '361'", "at most 3600 times samplingInterval, 360"),
        (FAST | {"scaleDownStabilization": "361"}, "scaleDownStabilization: '361'", "at most 3600 times samplingInterval, 360"),
        ({"partitionLimitation": "3-1"}, "partitionLimitation: '3-1'", ""),
        ({"offsetResetPolicy": "none"}, "offsetResetPolicy: 'none'", "latest or earliest"),
        ({"lagTreshold": "5"}, "lagTreshold: '5'", "did you mean lagThreshold?"),
    ],
)
def test_what_is_refused_is_refused_by_name(change, shown, allowed):
    """One line: the ScaledObject, the field, its value, what is allowed."""
    given = {key: value for key, value in (GIVEN | change).items() if value is not None}
    with pytest.raises(InputError) as refused:
        parse(given, "ScaledObject shop/consumer")
    said = str(refused.value)
    assert said.startswith(f"ScaledObject shop/consumer: metadata.{shown}")
    assert allowed in said
