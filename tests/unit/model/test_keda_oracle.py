"""The model of KEDA against KEDA's own code: the same cases, and not one different answer."""

from collections import Counter
from random import Random

import pytest
from hypothesis import HealthCheck, find, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from lab.errors import InputError
from tests.oracles.harness import KEDA
from tests.thoroughness import examples
from tests.unit.model.keda_cases import FLAGS, KINDS, SEED, kafka_case, log, modelled, prometheus_case, told, trigger_of

pytestmark = pytest.mark.services


@pytest.fixture(scope="module")
def oracle():
    """KEDA's own code, running."""
    with KEDA.running() as program:
        yield program


def smallest(oracle, generate, model):
    """The smallest case the two disagree on, as Hypothesis finds it from anew."""
    few = settings(max_examples=2_000, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    cases = st.randoms(use_true_random=False).map(generate)
    try:
        return find(cases, lambda case: modelled(case, model) != told(case, oracle.answers([case])[0]), settings=few)
    except NoSuchExample:
        return None


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_answers_as_keda_does(oracle, kind):
    """The kafka scaler (thorough: over 100,000 calls), the other triggers, the scale loop and fallback: no disagreement."""
    generate, model, count = KINDS[kind]
    random = Random(f"{SEED} {kind}")
    cases = [generate(random) for _ in range(count)]
    answers = oracle.answers(cases)
    compared = Counter()
    for case, answer in zip(cases, answers, strict=True):
        if modelled(case, model) != told(case, answer):
            least = smallest(oracle, generate, model) or case
            pytest.fail(f"{least}\nmodel: {modelled(least, model)}\nKEDA:  {told(least, oracle.answers([least])[0])}")
        compared["refused" if "refused" in answer else "cases"] += 1
        compared["calls"] += len(answer.get("calls", ())) + len(answer.get("observe", ())) + ("scale" in answer)
    log.info("%s: %s", kind, dict(compared))
    assert compared["cases"] > 0.9 * count
    assert compared["calls"] >= (examples(100_000) if kind == "kafka" else count)


# What is written in a trigger, and mostly can't be used.

WORDS = [
    *("", " ", "0", "1", "-1", "10", "007", "1.5", "1e3", ".5", "abc", "true", "false", "True", "yes", "latest", "earliest"),
    *("none", "enable", "disable", "plaintext", "1.0.0", "4", "0-3", "3-0", "all", "1,2", "x=y", "5s", "NaN", "500m", "75%"),
    *("2Gi", "1536Mi", "2000M", "1023", "1Ki", "aws_msk_iam", "oauthbearer", "operator", "gssapi", "bearer"),
    *("http://p:9090", "host:1", "0 8 * * *", "0 25 * * *", "* * * *", "Europe/Berlin", "Nowhere/City", "9223372036854775808"),
]
VALID = {
    "kafka": kafka_case(Random(SEED), 1)["metadata"] | {"topic": "orders.v1"},
    "prometheus": prometheus_case(Random(SEED))["metadata"],
    "apache-kafka": kafka_case(Random(SEED), 1)["metadata"] | {"topic": "orders.v1"},
    "cron": {"timezone": "Asia/Kolkata", "start": "0 8 * * 1-5", "end": "*/5 18 ? * *", "desiredReplicas": "5"},
    "cpu": {"value": "75"},
    "memory": {"value": "500Mi"},
    "external": {"scalerAddress": "lag-scaler:6000", "queue": "jobs"},
}
BOTH = [
    *("bootstrapServers", "consumerGroup", "topic", "lagThreshold", "activationLagThreshold", "offsetResetPolicy"),
    *(*FLAGS, "partitionLimitation", "tls", "sasl", "awsRegion", "identityOwner"),
]
FIELDS = {
    "kafka": [*BOTH, "version", "unsafeSsl", "fullMetadata", "saslTokenProvider"],
    "apache-kafka": BOTH,
    "prometheus": [
        *("serverAddress", "query", "threshold", "activationThreshold", "ignoreNullValues", "timeout", "customHeaders")
    ],
    "cron": ["timezone", "start", "end", "desiredReplicas"],
    "cpu": ["value", "containerName", "type"],
    "memory": ["value", "containerName", "type"],
    "external": ["scalerAddress", "enableTLS", "unsafeSsl", "topic"],
}


def written_case(random):
    """A trigger with some of its fields changed."""
    kind = random.choice(list(VALID))
    metadata = dict(VALID[kind])
    for _ in range(random.randint(0, 2)):
        field = random.choice(FIELDS[kind])
        if random.random() < 0.2:
            metadata.pop(field, None)
        else:
            metadata[field] = random.choice(WORDS)
    types = ["Utilization", "AverageValue"] + ([] if kind in ("cpu", "memory") else ["", "Value"])
    case = {"kind": kind, "index": random.randint(0, 9), "metricType": random.choice(types), "metadata": metadata}
    return case | ({"name": "lag", "target": random.choice([0.5, 500.0, 1000.0, 1e6])} if kind == "external" else {})


def test_what_keda_refuses_is_refused_and_what_is_accepted_makes_the_same_metric(oracle):
    """The model may refuse more than KEDA, which leaves some errors to the HPA or to every query; it accepts nothing more."""
    random = Random(f"{SEED} written")
    cases = [written_case(random) for _ in range(6_000)]
    seen = Counter()
    for case, answer in zip(cases, oracle.answers(cases), strict=True):
        try:
            trigger = trigger_of(case)
        except InputError:
            seen["refused by both" if "refused" in answer else "refused by the model"] += 1
            continue
        assert "refused" not in answer, (case, answer)
        if case["kind"] == "external":
            metric = trigger.metric(case["index"], case["name"], case["target"])
        else:
            metric = trigger.metric(case["index"], {})
        assert [metric] == answer["metrics"], case
        seen["accepted"] += 1
    log.info("written: %s", dict(seen))
    assert min(seen["accepted"], seen["refused by both"]) > 1_000
