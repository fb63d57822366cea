"""The metadata of a trigger, as KEDA sends it: what it comes to, and what is refused, by name."""

import pytest

from lab.errors import InputError
from lab.lagscaler.settings import Source, parse
from lab.lagscaler.window import Rule

GIVEN = {
    "scalerAddress": "lag-scaler:6000",
    "bootstrapServers": "b2:9092, b1:9092",
    "consumerGroup": "enrich",
    "topic": "orders.v1",
    "lagThreshold": "500",
    "sustainSeconds": "120",
}


def test_what_the_seed_writes_is_understood():
    """Its quick start, with the defaults of its table; the same cluster in another order is the same cluster."""
    settings = parse(GIVEN, "x")
    assert settings.source == Source("b1:9092,b2:9092", "enrich", "orders.v1", "latest", None, False)
    assert settings.rule == Rule(500, 120, 0, 0, 10, 30, 0, ages=False, allow_idle=False)
    assert settings.metric == "persistent-lag-orders-v1"


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
