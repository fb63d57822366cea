"""Where a ScaledObject finds what it asks, and how what runs in a trial logs in to Kafka: nothing of that in its inputs."""

import copy
import json
from typing import Any

from lab import paths, yamlfile
from lab.cluster.images import catalog
from lab.inputs import inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.kafka import forms
from lab.kafka import login as logins
from lab.trial import addresses
from lab.trial.addresses import asks_scaler, located

SETTINGS = logins.new()
NO_KAFKA = {"store"}  # reads its own settings there, and no pod gets a login that it has no use for
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
    """Scaler, Prometheus, the namespace of a query, and the login of those that ask Kafka, whatever the author's own was.

    Nothing else of the object changes, nor what was given; without a login no reference does.
    """
    given: Any = copy.deepcopy(SCALED)
    given["spec"]["triggers"] += [
        {"type": "apache-kafka", "metadata": {"lagThreshold": "5"}, "authenticationRef": {"name": "theirs"}},
        {"type": "cpu", "metadata": {"value": "70"}},
    ]
    before = copy.deepcopy(given)
    plain = located(given, "trial-1", "http://127.0.0.1:1", "127.1.2.3")
    placed = located(given, "trial-1", "http://127.0.0.1:1", "127.1.2.3", "kafka-login")
    assert given == before
    wanted: Any = copy.deepcopy(given)
    del wanted["metadata"]["namespace"]
    external, prometheus, kafka, apache, _ = wanted["spec"]["triggers"]
    external["metadata"]["scalerAddress"] = "127.1.2.3:6000"
    prometheus["metadata"] = {"serverAddress": "http://127.0.0.1:1", "query": 'sum(x{namespace="trial-1"})'}
    assert plain == wanted
    for one in (kafka, apache):
        one["authenticationRef"] = {"name": "kafka-login"}
    assert placed == wanted


def test_only_an_external_trigger_waits_for_its_scaler():
    """What is no ScaledObject has no triggers to ask for."""
    assert asks_scaler(SCALED)
    assert not asks_scaler(SCALED | {"spec": {"triggers": [{"type": "kafka"}]}})
    deployment = {"kind": "Deployment", "metadata": {"name": "x", "namespace": "ridehailing"}, "spec": {}}
    assert not asks_scaler(deployment)
    assert located(deployment, "trial-1", "", "")["metadata"] == {"name": "x"}


def test_pods_read_settings_and_keda_what_points_to_them():
    """Each key that the TriggerAuthentication names is there; only the Secrets hold the password."""
    secret, scaler, reference = addresses.login_objects(SETTINGS, "127.0.0.1:9092")
    assert json.loads(secret["stringData"]["settings"]) == SETTINGS
    assert scaler["stringData"] == {"settings": secret["stringData"]["settings"], "clusters": "127.0.0.1:9092"}
    targets = reference["spec"]["secretTargetRef"]
    assert {one["parameter"]: secret["stringData"][one["key"]] for one in targets} == forms.keda(SETTINGS)
    assert {one["name"] for one in targets} == {secret["metadata"]["name"]} == {addresses.LOGIN}
    assert SETTINGS["sasl.password"] not in json.dumps(reference)
    assert addresses.login_objects({}, "127.0.0.1:9092") == []


def _variables(container):
    return {one["name"]: one.get("valueFrom", {}).get("secretKeyRef") for one in container.get("env", ())}


def test_every_pod_of_a_trial_reads_the_login_if_there_is_one():
    """A pod of the lab's that reads the trial's ConfigMap asks Kafka; on kind, where there is no Secret, it starts without."""
    wanted = {"name": addresses.LOGIN, "key": "settings", "optional": True}
    items = (item for file in paths.MANIFESTS.rglob("*.yaml") for item in yamlfile.documents(file))
    for container in (one for item in items for one in catalog.containers(item)):
        if {"configMapRef": {"name": "trial"}} in container.get("envFrom", ()) and container["name"] not in NO_KAFKA:
            assert _variables(container)["KAFKA_SETTINGS"] == wanted, container["name"]


def test_a_trials_scaler_reads_a_secret_of_the_trials():
    """With the clusters that the login is for, by the name that its manifest has."""
    chosen = inputs.read("step-10x", "lasting-4500", Workload(), 1, scales.load("quick"), "binary")
    (scaler,) = (item for item in objects.applied(chosen, {}) if item["metadata"]["name"] == "lag-scaler")
    (container,) = catalog.containers(scaler)
    for name, key in (("KAFKA_SETTINGS", "settings"), ("CLUSTERS", "clusters")):
        assert _variables(container)[name] == {"name": addresses.SCALER_LOGIN, "key": key, "optional": True}


def test_consumers_alone_come_by_the_proxy():
    """And what is told of the trial to all its pods says so, too; nothing else differs."""
    chosen = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    names = chosen.environment("kafka:1", "run")
    both = [objects.applied(chosen, one) for one in (names, names | {objects.CONSUMERS_BOOTSTRAP: "proxy:2"})]
    told, owner = [(plain, cut) for plain, cut in zip(*both, strict=True) if plain != cut]
    assert told[1]["data"] == told[0]["data"] | {objects.CONSUMERS_BOOTSTRAP: "proxy:2"}
    own, other = (one["spec"]["template"]["spec"]["containers"][0]["env"] for one in owner)
    assert (owner[0]["metadata"]["name"], other) == ("consumer", [*own, {"name": "BOOTSTRAP_SERVERS", "value": "proxy:2"}])
