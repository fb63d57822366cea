"""Where a ScaledObject finds what it asks, as it is applied."""

import copy
from typing import Any

from lab.trial.located import asks_scaler, located

SCALED = {
    "kind": "ScaledObject",
    "metadata": {"name": "matching", "namespace": "ridehailing"},
    "spec": {
        "triggers": [
            {"type": "external", "metadata": {"scalerAddress": "lag-scaler.lag-scaler.svc:6000", "lagThreshold": "5"}},
            {"type": "prometheus", "metadata": {"serverAddress": "http://p:9090", "query": 'sum(x{namespace="ridehailing"})'}},
            {"type": "kafka", "metadata": {"lagThreshold": "5"}},
        ]
    },
}


def test_a_trigger_is_given_the_address_it_asks():
    """Scaler, Prometheus, and the namespace of a query; nothing else of the object changes, nor what was given."""
    given = copy.deepcopy(SCALED)
    placed = located(given, "trial-1", "http://127.0.0.1:1", "127.1.2.3")
    assert given == SCALED
    wanted: Any = copy.deepcopy(SCALED)
    del wanted["metadata"]["namespace"]
    external, prometheus, _ = wanted["spec"]["triggers"]
    external["metadata"]["scalerAddress"] = "127.1.2.3:6000"
    prometheus["metadata"] = {"serverAddress": "http://127.0.0.1:1", "query": 'sum(x{namespace="trial-1"})'}
    assert placed == wanted


def test_triggers_that_ask_kafka_log_in():
    """Both types, whatever reference the author's had; others stay as they are, and without a login all do."""
    given: Any = copy.deepcopy(SCALED)
    given["spec"]["triggers"] += [
        {"type": "apache-kafka", "metadata": {"lagThreshold": "5"}, "authenticationRef": {"name": "theirs"}},
        {"type": "cpu", "metadata": {"value": "70"}},
    ]
    plain = located(given, "trial-1", "http://127.0.0.1:1", "127.1.2.3")["spec"]["triggers"]
    triggers = located(given, "trial-1", "http://127.0.0.1:1", "127.1.2.3", "kafka-login")["spec"]["triggers"]
    asking = [one for one in triggers if one["type"] in ("kafka", "apache-kafka")]
    assert [one["authenticationRef"] for one in asking] == [{"name": "kafka-login"}] * 2
    for one, before in zip(triggers, plain, strict=True):
        assert one == (before | {"authenticationRef": {"name": "kafka-login"}} if one in asking else before)
    assert plain[3]["authenticationRef"] == {"name": "theirs"}


def test_only_an_external_trigger_waits_for_its_scaler():
    """What is no ScaledObject has no triggers to ask for."""
    assert asks_scaler(SCALED)
    assert not asks_scaler(SCALED | {"spec": {"triggers": [{"type": "kafka"}]}})
    deployment = {"kind": "Deployment", "metadata": {"name": "x", "namespace": "ridehailing"}, "spec": {}}
    assert not asks_scaler(deployment)
    assert located(deployment, "trial-1", "", "")["metadata"] == {"name": "x"}
