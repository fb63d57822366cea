"""How what runs in a trial logs in to Kafka: one Secret, and nothing of it in the trial's inputs."""

import json

import pytest

from lab import paths, yamlfile
from lab.cluster.images import catalog
from lab.inputs import inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.kafka import forms
from lab.kafka import login as logins
from lab.trial import login

SETTINGS = logins.new()
PASSWORD = SETTINGS["sasl.password"]
NO_KAFKA = {"store"}  # reads its own settings there, and no pod gets a login that it has no use for


def test_pods_read_settings_and_keda_what_points_to_them():
    """Each key that the TriggerAuthentication names is there; only the Secrets hold the password."""
    secret, scaler, reference = login.objects(SETTINGS, "127.0.0.1:9092")
    assert json.loads(secret["stringData"]["settings"]) == SETTINGS
    assert scaler["stringData"] == {"settings": secret["stringData"]["settings"], "clusters": "127.0.0.1:9092"}
    targets = reference["spec"]["secretTargetRef"]
    assert {one["parameter"]: secret["stringData"][one["key"]] for one in targets} == forms.keda(SETTINGS)
    assert {one["name"] for one in targets} == {secret["metadata"]["name"]} == {login.NAME}
    assert PASSWORD not in json.dumps(reference)
    assert login.objects({}, "127.0.0.1:9092") == []


def _variables(container):
    return {one["name"]: one.get("valueFrom", {}).get("secretKeyRef") for one in container.get("env", ())}


@pytest.mark.parametrize("file", sorted(paths.MANIFESTS.rglob("*.yaml")), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_pod_of_a_trial_reads_the_login_if_there_is_one(file):
    """A pod of the lab's that reads the trial's ConfigMap asks Kafka; on kind, where there is no Secret, it starts without."""
    wanted = {"name": login.NAME, "key": "settings", "optional": True}
    for item in yamlfile.documents(file):
        for container in catalog.containers(item):
            if {"configMapRef": {"name": "trial"}} in container.get("envFrom", ()) and container["name"] not in NO_KAFKA:
                assert _variables(container)["KAFKA_SETTINGS"] == wanted


def test_a_trials_scaler_reads_a_secret_of_the_trials():
    """With the clusters that the login is for, by the name that its manifest has."""
    chosen = inputs.read("step-10x", "lasting-4500", Workload(), 1, scales.load("quick"), "binary")
    (scaler,) = (item for item in objects.applied(chosen, {}) if item["metadata"]["name"] == "lag-scaler")
    (container,) = catalog.containers(scaler)
    for name, key in (("KAFKA_SETTINGS", "settings"), ("CLUSTERS", "clusters")):
        assert _variables(container)[name] == {"name": login.SCALER, "key": key, "optional": True}
