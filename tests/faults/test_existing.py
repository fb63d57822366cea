"""A cluster that someone already runs: a trial leaves nothing of its own and changes nothing of theirs.

The lab's own binary cluster stands for it. It is reached as any other: by a kubeconfig, Kafka's address and a login. Beside it
stands a broker that takes logins as a company's does, by SCRAM over TLS and by a client's certificate.
"""

import contextlib
import dataclasses
import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import yaml
from confluent_kafka.admin import AdminClient
from kubernetes import client, config

from lab import yamlfile
from lab.cluster import apply, controlplane, existing
from lab.errors import LabFault
from lab.host import processes, runs
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.inputs import REPLAYED
from lab.kafka import forms
from lab.trial import addresses, runner
from lab.wait import until
from tests.experiments.workloads import slim
from tests.faults import secure_broker

pytestmark = pytest.mark.services

TRAFFIC = {"kind": "steady", "rate": 200, "duration": 5}
DEADLINE_S = 60
_ASKED = {"bootstrapServers": "kafka-0.kafka.svc:9093", "consumerGroup": "orders", "topic": "orders", "lagThreshold": "2250"}
_TLS = {"sasl": "scram_sha512", "tls": "enable", "offsetResetPolicy": "earliest"}
_TRIGGER = {"authenticationRef": {"name": "orders-kafka"}, "metadata": _ASKED | _TLS}
ORDERS: dict[str, Any] = {
    "apiVersion": "keda.sh/v1alpha1",
    "kind": "ScaledObject",
    "metadata": {"name": "orders", "namespace": "orders"},
    "spec": {
        "scaleTargetRef": {"name": "orders"},
        "pollingInterval": 1,
        "minReplicaCount": 2,
        "maxReplicaCount": 4,
        "triggers": [{"type": kind, **_TRIGGER} for kind in ("kafka", "apache-kafka")],
    },
}


@pytest.fixture(scope="module")
def account(cluster):
    """The kubeconfig of an account that has the committed rights and no others."""
    apply.objects(cluster.api(), controlplane.rights("trials/rbac"))
    return cluster.plane.service_account("elastic-lab", "elastic-lab")


@pytest.fixture
def access(cluster, account):
    """The session's cluster, as a user would name it who gives the lab an account of its own."""
    return named(cluster, kubeconfig=account)


def named(cluster, image=None, kubeconfig=None):
    """How a user would say that a cluster of the lab's is reached."""
    file, kafka = kubeconfig or cluster.run / "kubeconfig", (cluster.bootstrap, cluster.pod_bootstrap, cluster.kafka_settings)
    return existing.Access(file, context(file), *kafka, cluster.prometheus_url, image)


@pytest.fixture(scope="module")
def theirs():
    """The broker that takes logins as a company's does."""
    started, run, guard = runs.start(secure_broker.start)
    try:
        yield started
    finally:
        processes.clear(run)
        processes.dismiss(guard)


@pytest.fixture(scope="module")
def reference(cluster):
    """Reads the TriggerAuthentication that their ScaledObject names, in their namespace; with its Secret no one logs in."""
    place = {"name": "orders-kafka", "namespace": "orders"}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": place, "stringData": {"password": "of no one"}}
    spec = {"secretTargetRef": [{"parameter": "password", "name": "orders-kafka", "key": "password"}]}
    made = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": place, "spec": spec}
    with cluster.api() as api:
        apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "orders"}}, secret, made])
        try:
            yield lambda: client.CustomObjectsApi(api).get_namespaced_custom_object(
                "keda.sh", "v1alpha1", "orders", "triggerauthentications", "orders-kafka"
            )
        finally:
            client.CoreV1Api(api).delete_namespace("orders")


def to(access, listener):
    """The same cluster with another's broker."""
    settings = forms.inline(listener.settings)
    return dataclasses.replace(access, bootstrap=listener.bootstrap, pod_bootstrap=listener.bootstrap, kafka_settings=settings)


def context(kubeconfig):
    """The name of the context that a kubeconfig begins with."""
    _, current = config.list_kube_config_contexts(str(kubeconfig))
    return current["name"]


def standing(access):
    """What there is of trials: namespaces, ScaledObjects, and topics but Kafka's own.

    A namespace that goes away does not count, nor does what is in it: another test may have deleted it just before.
    """
    with existing.connect(access) as api:
        active = [one.metadata for one in client.CoreV1Api(api).list_namespace().items if one.status.phase == "Active"]
        scaled = client.CustomObjectsApi(api).list_cluster_custom_object("keda.sh", "v1alpha1", "scaledobjects")["items"]
    admin = AdminClient({"bootstrap.servers": access.bootstrap, **access.kafka_settings})
    topics = admin.list_topics(timeout=DEADLINE_S).topics
    return (
        {one.name for one in active if (one.labels or {}).get("created-by") == "elastic-lab"},
        {one["metadata"]["name"] for one in scaled if one["metadata"]["namespace"] in {place.name for place in active}},
        {name for name in topics if not name.startswith("__")},
    )


def settled(access, before):
    """What there is once it is as ``before``, or DEADLINE_S later. Kafka names a deleted topic for a moment longer."""
    with contextlib.suppress(LabFault):
        until(lambda: standing(access) == before, DEADLINE_S, "what there was before")
    return standing(access)


def tried(there, policy, folder, spark):
    """The record of a short trial of the ScaledObject ``policy``, which has lost nothing and left nothing."""
    before = standing(there.access)
    for name, content in (("traffic", TRAFFIC), ("orders", policy)):
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    wanted = (folder / "traffic.yaml", folder / "orders.yaml", slim(), 1, scales.load("real"), there.runtime)
    (record,) = runner.run(there, [inputs.read(*wanted, until=REPLAYED, partitions=6)], folder, spark)
    assert settled(there.access, before) == before
    assert record.trial.ended == "complete"
    assert record.trial.missing.keys() == {"hpa.log"}
    assert record.reconciliation.produced == 1_000
    assert record.reconciliation.lost_messages == record.reconciliation.phantom_messages == 0
    assert "kafka_consumergroup_lag_sum" in set(record.samples["metric"])
    return record


@pytest.mark.nightly
@pytest.mark.parametrize("listener", ["scram", "mutual"])
def test_a_trial_on_a_cluster_that_is_there(listener, access, theirs, reference, spark, tmp_path):
    """All that was produced is accounted for; what the cluster doesn't show has its reason; nothing is left.

    Pods, both of KEDA's scalers, the lag exporter and the ledger log in: each leaves something in the record that shows it. The
    policy is a ScaledObject as a company runs it. The TriggerAuthentication that it names is theirs: no one changes or uses it.
    """
    there, untouched = existing.up(to(access, getattr(theirs, listener))), reference()["spec"]
    record = tried(there, ORDERS, tmp_path, spark)
    assert "does not show kube-controller-manager's log" in record.trial.missing["hpa.log"]
    assert record.trial.versions["kube-apiserver"].startswith("v1.")
    answers = record.samples[record.samples["metric"] == "keda_scaler_metrics_value"]["labels"].map(json.loads)
    assert {one["scaler"] for one in answers} == {"kafkaScaler", "apacheKafkaScaler"}
    applied = yamlfile.read(record.folder / "inputs" / "scaledobject-orders.yaml")["spec"]["triggers"]
    assert [one["authenticationRef"] for one in applied] == [{"name": addresses.LOGIN}] * 2
    secret = secure_broker.PASSWORD.split()[0] if listener == "scram" else there.kafka_settings["ssl.key.pem"].splitlines()[2]
    files = [file for file in record.folder.rglob("*") if file.is_file()]
    assert [file for file in files if secret.encode() in file.read_bytes()] == []
    assert (reference()["spec"], reference().get("status", {}).get("scaledobjects", "")) == (untouched, "")


CLIENT = ("ssl.certificate.location", "ssl.key.location")
# By what is wrong: the listener, what is changed in its login (a tuple: what is another authority's), and the reason.
REFUSED = {
    "password": ("scram", {"sasl.password": "wrong"}, "invalid credentials with SASL mechanism SCRAM-SHA-512"),
    "mechanism": ("scram", {"sasl.mechanism": "PLAIN"}, "broker's supported mechanisms: SCRAM-SHA-512"),
    "certificate": ("mutual", CLIENT, "alert certificate unknown"),
    "no certificate": ("mutual", dict.fromkeys(CLIENT), "alert bad certificate"),
    "authority": ("mutual", ("ssl.ca.location",), "certificate verify failed"),
}


def test_a_login_that_is_refused_is_one_line_before_anything_is_created(access, theirs):
    """With the broker's reason, or the client's where the broker is not the one it trusts; nothing of the login is shown."""
    right = {listener: getattr(theirs, listener) for listener in ("scram", "mutual")}

    def refusal(case):
        listener, change, _ = REFUSED[case]
        given = {**right[listener].settings}
        given |= {name: theirs.foreign[name] for name in change} if isinstance(change, tuple) else change
        wrong = {name: value for name, value in given.items() if value is not None}
        with pytest.raises(LabFault) as fault:
            existing.up(to(access, dataclasses.replace(right[listener], settings=wrong)))
        return str(fault.value)

    before = standing(to(access, right["mutual"]))
    with ThreadPoolExecutor(len(REFUSED)) as pool:
        lines = dict(zip(REFUSED, pool.map(refusal, REFUSED), strict=True))
    for case, (listener, _, reason) in REFUSED.items():
        assert lines[case].startswith(f"--lab-bootstrap-servers: Kafka does not answer at {right[listener].bootstrap}: ")
        assert reason in lines[case]
        assert not any(text in lines[case] for text in ("\n", "wrong", secure_broker.PASSWORD))
    assert standing(to(access, right["mutual"])) == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"context": "production"}, "context 'production': "),
        ({"bootstrap": "127.0.0.1:9"}, "--lab-bootstrap-servers: Kafka does not answer at 127.0.0.1:9: "),
        ({"kafka_settings": {}}, "--lab-bootstrap-servers: Kafka does not answer at "),
        ({"prometheus": "http://127.0.0.1:9"}, "Prometheus's /-/ready at http://127.0.0.1:9: not within 10 s"),
    ],
)
def test_what_can_not_be_used_is_one_line_before_anything_is_created(access, change, said, monkeypatch):
    """Another context than the named one is never tried."""
    if "prometheus" not in change:  # before it is asked, Kafka has to answer
        monkeypatch.setattr(existing, "ANSWER_S", 3.0)
    before = standing(access)
    with pytest.raises(LabFault) as fault:
        existing.up(dataclasses.replace(access, **change))
    assert said in str(fault.value)
    assert "\n" not in str(fault.value)
    assert standing(access) == before


def test_all_that_does_not_answer_is_said_at_once(access, monkeypatch):
    """A line for Kafka and one for Prometheus."""
    monkeypatch.setattr(existing, "ANSWER_S", 3.0)
    with pytest.raises(LabFault) as fault:
        existing.up(dataclasses.replace(access, bootstrap="127.0.0.1:9", prometheus="http://127.0.0.1:9"))
    assert [line.partition(" at ")[0] for line in str(fault.value).splitlines()] == [
        "--lab-bootstrap-servers: Kafka does not answer",
        "Prometheus's /-/ready",
    ]


def test_what_a_user_may_not_do_is_named(access, cluster):
    """An account without rights: it may not even create the trial's namespace."""
    account = cluster.plane.service_account("default", "nobody")
    with pytest.raises(LabFault, match="may not create/delete/list namespaces, delete/list/watch pods, get pods/log, "):
        existing.up(dataclasses.replace(access, kubeconfig=account, context=context(account)))


def test_a_namespace_that_is_there_is_not_taken_over(cluster):
    """It may be anyone's."""
    with cluster.api() as api, pytest.raises(LabFault, match="Namespace default could not be created: Conflict"):
        apply.create_namespace(api, "default")
