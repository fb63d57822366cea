"""Where a ScaledObject finds what it asks, and how what runs in a trial logs in to Kafka: nothing of that in its inputs."""

import copy
import json
from typing import Any

import pytest
from cryptography import x509

from lab import paths, yamlfile
from lab.cluster.images import catalog
from lab.inputs import inputs, objects
from lab.inputs import scale as scales
from lab.inputs.workload import Workload
from lab.kafka import forms
from lab.kafka import login as logins
from lab.programs.lagscaler import service
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
    """Scaler, Prometheus, the namespace of a query, and the login of each that asks scaler or Kafka, whatever the author's was.

    Nothing else of the object changes, nor what was given; without a login no reference to Kafka's does.
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
    external["metadata"] |= {"scalerAddress": "127.1.2.3:6000", "unsafeSsl": "true"}
    external["authenticationRef"] = {"name": "lag-scaler-client"}
    prometheus["metadata"] = {"serverAddress": "http://127.0.0.1:1", "query": 'sum(x{namespace="trial-1"})'}
    assert plain == wanted
    for one in (kafka, apache):
        one["authenticationRef"] = {"name": "kafka-login"}
    assert placed == wanted


def test_a_query_asks_for_the_trials_group_and_topic():
    """By the variables that an adopted query has; any other dollar stays."""
    given: Any = copy.deepcopy(SCALED)
    given["spec"]["triggers"][1]["metadata"]["query"] = 'x{topic="$(TOPIC)",consumergroup="$(GROUP)",pod=~"a$"}'
    placed = located(given, "trial-1", "http://127.0.0.1:1", "", names={"TOPIC": "events-1", "GROUP": "enrich-1"})
    assert placed["spec"]["triggers"][1]["metadata"]["query"] == 'x{topic="events-1",consumergroup="enrich-1",pod=~"a$"}'


@pytest.mark.parametrize("selected", ['namespace="a"', "namespace='a'", "namespace=`a`", "namespace = 'a'"])
def test_a_query_asks_for_the_trials_namespace(selected):
    """However it is written."""
    given: Any = copy.deepcopy(SCALED)
    given["spec"]["triggers"][1]["metadata"]["query"] = f"sum(x{{{selected}}})"
    placed = located(given, "trial-1", "http://127.0.0.1:1", "")
    assert placed["spec"]["triggers"][1]["metadata"]["query"] == 'sum(x{namespace="trial-1"})'


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


def test_a_trials_scaler_reads_secrets_of_the_trials():
    """By the names that its manifest has: the clusters that the login is for, a certificate, and the authority of KEDA's."""
    chosen = inputs.read("step-10x", "lasting-4500", Workload(), 1, scales.load("quick"), "binary")
    (scaler,) = (item for item in objects.applied(chosen, {}) if item["metadata"]["name"] == "lag-scaler")
    (container,) = catalog.containers(scaler)
    wanted = [("KAFKA_SETTINGS", addresses.SCALER_LOGIN, "settings"), ("CLUSTERS", addresses.SCALER_LOGIN, "clusters")]
    wanted += [(f"TLS_{name}", addresses.SCALER_TLS, key) for name, key in (("CERT", "tls.crt"), ("KEY", "tls.key"))]
    for variable, name, key in [*wanted, ("TLS_CLIENT_CA", addresses.SCALER_TLS, "ca.crt")]:
        assert _variables(container)[variable] == {"name": name, "key": key, "optional": True}


TOKEN, CERTIFICATES = ["trial-login"], ["lag-scaler-tls", "lag-scaler-client", "lag-scaler-client"]


@pytest.mark.parametrize(
    ("policy", "slots", "names"), [("lag-4500", 0, []), ("lag-4500", 12, TOKEN), ("lasting-4500", 12, TOKEN + CERTIFICATES)]
)
def test_what_a_trial_is_made_of_is_one_anothers_alone(policy, slots, names):
    """The store's token and the scaler's certificate are of one trial, and pods and KEDA have them; others have none."""
    chosen = inputs.read("step-10x", policy, Workload(store_slots=slots), 1, scales.load("quick"), "binary")
    applied = objects.applied(chosen, {})
    logins, others = addresses.own_logins(applied), addresses.own_logins(applied)
    assert [one["metadata"]["name"] for one in logins] == names
    assert all(one["stringData"] != other["stringData"] for one, other in zip(logins[:3], others, strict=False))
    reads = [_variables(one).get("STORE_TOKEN") for item in applied for one in catalog.containers(item)]
    assert [one for one in reads if one] == [{"name": "trial-login", "key": "token"}] * (2 if slots else 0)


def test_a_service_and_who_sends_to_it_have_the_token_of_their_trial():
    """Each service of the ride-hailing scenario, and Locust: by one Secret, which is made where any of them is in the trial."""
    names = ("ingestion", "rider-api", "driver-matching", "locust", "locust-paced", "riders")
    for name in names:
        item = yamlfile.documents(paths.MANIFESTS / "ridehailing" / f"{name}.yaml")[0]
        (container,) = catalog.containers(item)
        assert _variables(container)["SERVICE_TOKEN"] == {"name": "trial-login", "key": "token"}
        assert [one["metadata"]["name"] for one in addresses.own_logins([item])] == TOKEN


def test_keda_and_the_scaler_know_each_other_by_a_certificate_of_the_trials():
    """The scaler serves with one, and takes KEDA's: both are of the authority that it is told."""
    tls, secret, reference = addresses.own_logins([SCALED])
    served, shown = tls["stringData"], secret["stringData"]
    assert service.credentials(served["tls.crt"], served["tls.key"], served["ca.crt"])
    assert service.credentials(shown["tlsClientCert"], shown["tlsClientKey"], "")  # the key is the certificate's
    cert, ca = (x509.load_pem_x509_certificate(pem.encode()) for pem in (shown["tlsClientCert"], served["ca.crt"]))
    cert.verify_directly_issued_by(ca)
    targets = {one["parameter"]: (one["name"], one["key"]) for one in reference["spec"]["secretTargetRef"]}
    assert targets == {key: (secret["metadata"]["name"], key) for key in shown}


def test_consumers_alone_come_by_the_proxy():
    """And what is told of the trial to all its pods says so, too; nothing else differs."""
    chosen = inputs.read("step-10x", "lag", Workload(), 1, scales.load("quick"), "binary")
    names = chosen.environment("kafka:1", "run")
    both = [objects.applied(chosen, one) for one in (names, names | {objects.CONSUMERS_BOOTSTRAP: "proxy:2"})]
    told, owner = [(plain, cut) for plain, cut in zip(*both, strict=True) if plain != cut]
    assert told[1]["data"] == told[0]["data"] | {objects.CONSUMERS_BOOTSTRAP: "proxy:2"}
    own, other = (one["spec"]["template"]["spec"]["containers"][0]["env"] for one in owner)
    assert (owner[0]["metadata"]["name"], other) == ("consumer", [*own, {"name": "BOOTSTRAP_SERVERS", "value": "proxy:2"}])
