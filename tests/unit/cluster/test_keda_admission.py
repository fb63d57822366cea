"""KEDA's real admission webhooks beside the lab's own checks: which of a bad ScaledObject's faults each of them sees."""

import copy
import tempfile
import uuid
from dataclasses import replace

import pytest
from kubernetes import client

from lab import paths, yamlfile
from lab.cluster import apply, keda
from lab.errors import InputError, LabFault
from lab.inputs import hpa_spec, scaledobject
from lab.model import keda as model
from lab.wait import until
from lab.yamlfile import Fields
from tests.defects.target import deployment

CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "70"}}
_ASKED = {"bootstrapServers": "127.0.0.1:1", "consumerGroup": "g", "topic": "t", "lagThreshold": "10"}
KAFKA = {"type": "kafka", "metadata": _ASKED}
FALLBACK = {"failureThreshold": 3, "replicas": 2}
WEBHOOK = "vscaledobject.kb.io"
DEADLINE_S = 60
SCHEMA = "is invalid"
LET_IN = ""
UNKNOWN = "field not declared in schema"
POLICIES = sorted(
    file
    for file in paths.MANIFESTS.glob("*/*.yaml")
    if [item["kind"] for item in yamlfile.documents(file)] == ["ScaledObject"] and "as-written" not in file.stem
)


def kafka(**metadata):
    """A kafka trigger with other metadata."""
    return {**KAFKA, "metadata": KAFKA["metadata"] | metadata}


TWO_CAPS = kafka(limitToPartitionsWithLag="true", allowIdleConsumers="true")


def scaled(name="consumer", **spec):
    """A ScaledObject of the Deployment "consumer" with these fields of its spec."""
    whole = {"scaleTargetRef": {"name": "consumer"}, "minReplicaCount": 1, "maxReplicaCount": 6, "triggers": [KAFKA]} | spec
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": whole}


@pytest.fixture
def namespace(cluster):
    """A namespace with two Deployments: "consumer" requests cpu, "greedy" nothing."""
    name, api = f"admission-{uuid.uuid4().hex[:8]}", cluster.api()
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    apply.objects(api, [deployment("consumer", 0, requests={"cpu": "10m"}), deployment("greedy", 0)], name)
    yield name
    client.CoreV1Api(api).delete_namespace(name)


def refused_here(content):
    """What the lab says against it; "" for nothing."""
    try:
        scaledobject.parse(copy.deepcopy(content), "my.yaml")
    except InputError as error:
        return str(error)
    return ""


def refused_there(cluster, content, namespace):
    """What the apiserver says against creating it, in the name of KEDA's schema or of its webhook; "" for nothing."""
    try:
        apply.objects(cluster.api(), [content], namespace)
    except LabFault as fault:
        return str(fault)
    return ""


@pytest.mark.services
@pytest.mark.parametrize(
    ("spec", "field", "who", "reason"),
    [
        ({"minReplicaCount": 7}, "minReplicaCount", SCHEMA, "minReplicaCount must be less than or equal to maxReplicaCount"),
        ({"idleReplicaCount": 1}, "idleReplicaCount", WEBHOOK, "IdleReplicaCount=1 must be less than MinReplicaCount=1"),
        ({"triggers": [CPU], "minReplicaCount": 0}, "minReplicaCount", WEBHOOK, "scale to zero doesn't work in this case"),
        ({"triggers": [CPU], "fallback": FALLBACK}, "fallback", WEBHOOK, "`AverageValue` type for the fallback"),
        ({"fallback": FALLBACK | {"replicas": -1}}, "fallback.replicas", SCHEMA, "should be greater than or equal to 0"),
        ({"triggers": [KAFKA | {"name": "a"}, CPU | {"name": "a"}]}, "name", WEBHOOK, 'triggerName "a" is defined multiple'),
        ({"triggers": [KAFKA, CPU | {"useCachedMetrics": True}]}, "useCachedMetrics", WEBHOOK, 'not supported for "cpu"'),
        ({"triggers": []}, "triggers", SCHEMA, "should have at least 1 items"),
        ({"minReplicas": 1}, "minReplicas", UNKNOWN, "minReplicas"),
        ({"name": "c" * 55}, "at most 63 characters", WEBHOOK, "is 64 characters long"),  # of its HPA's name
        # A trigger's metadata is no one's at admission: the operator says it in a condition, or nobody does.
        ({"triggers": [kafka(lagThreshold="0")]}, "lagThreshold", LET_IN, ""),
        ({"triggers": [kafka(lagTreshold="5")]}, "lagTreshold", LET_IN, ""),
        ({"triggers": [TWO_CAPS]}, "limitToPartitionsWithLag", LET_IN, ""),
        ({"idleReplicaCount": 1, "minReplicaCount": 2}, "idleReplicaCount", LET_IN, ""),
    ],
)
def test_what_keda_refuses_the_lab_refuses_and_more(cluster, namespace, spec, field, who, reason):
    """Whatever can be seen in the file alone: a user is told before there is a cluster."""
    content = scaled(**spec)
    assert field in refused_here(content)
    said = refused_there(cluster, content, namespace)
    assert bool(said) == bool(who)
    assert who in said
    assert reason in said


@pytest.mark.services
def test_keda_refuses_what_only_a_cluster_shows(cluster, namespace):
    """A cpu trigger on pods that request none, and a Deployment that another ScaledObject has."""
    greedy = scaled(name="greedy", scaleTargetRef={"name": "greedy"}, triggers=[CPU])
    assert refused_here(greedy) == ""
    assert "doesn't have the cpu request defined" in refused_there(cluster, greedy, namespace)
    assert refused_there(cluster, scaled(), namespace) == ""
    second, api = scaled(name="second"), cluster.api()
    assert refused_here(second) == ""
    # The webhook reads its cache, which hears of the first a moment later. Asked in a dry run, as one admitted would stay.
    taken = "is already managed by the ScaledObject 'consumer'"
    until(lambda: taken in (keda.refusal(api, second, namespace) or ""), DEADLINE_S, "the second one refused", cluster.check)


@pytest.mark.services
@pytest.mark.parametrize("file", POLICIES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_every_committed_policy_is_admitted(cluster, namespace, file):
    """By the webhook that a user's cluster has."""
    content = yamlfile.read(file)
    content["spec"]["scaleTargetRef"] = {"name": "consumer"}
    assert keda.refusal(cluster.api(), content, namespace) is None


@pytest.mark.services
@pytest.mark.parametrize("written", [{"policies": []}, {"policies": None}, {}], ids=["empty", "null", "absent"])
def test_a_list_of_policies_that_is_empty_is_left_to_the_api_server(cluster, namespace, written):
    """It lets the ScaledObject in; KEDA's client leaves the list out, and the HPA has the defaults, as the model says."""
    behavior = {"scaleDown": {"stabilizationWindowSeconds": 60} | written}
    content = scaled(triggers=[CPU], advanced={"horizontalPodAutoscalerConfig": {"behavior": behavior}})
    assert refused_here(content) == ""
    api = cluster.api()
    keda.scaled_objects(api).create(body=content, namespace=namespace)
    hpas = client.AutoscalingV2Api(api)
    until(
        lambda: bool(hpas.list_namespaced_horizontal_pod_autoscaler(namespace).items), DEADLINE_S, "KEDA's HPA", cluster.check
    )
    (made,) = hpas.list_namespaced_horizontal_pod_autoscaler(namespace).items
    found = hpa_spec.behavior_of(Fields(api.sanitize_for_serialization(made)["spec"], "HPA"))
    ours = model.hpa(scaledobject.parse(content, "my.yaml"))["spec"]
    assert found == hpa_spec.behavior_of(Fields(ours, "model"))
    assert found.down == replace(hpa_spec.DOWN, window_s=60)
    assert found.up == hpa_spec.UP


def test_the_webhooks_are_kedas_at_another_address(tmp_path):
    """Path, rules and failurePolicy are left; the Service becomes this machine's port, with the authority to trust."""
    ca = tmp_path / "ca.crt"
    ca.write_bytes(b"certificate")
    service = {"name": "keda-admission-webhooks", "namespace": "keda", "path": "/validate"}
    theirs = {"name": "v.kb.io", "failurePolicy": "Ignore", "clientConfig": {"service": service}, "rules": [1]}
    found = keda.on_loopback({"kind": "K", "webhooks": [theirs]}, 4443, ca)
    there = {"url": "https://127.0.0.1:4443/validate", "caBundle": "Y2VydGlmaWNhdGU="}
    assert found == {"kind": "K", "webhooks": [{**theirs, "clientConfig": there}]}
    assert theirs["clientConfig"] == {"service": service}


def test_a_client_leaves_no_file_of_the_kinds_that_there_are(cluster, tmp_path, monkeypatch):
    """In the temporary folder it would be read by a session whose cluster has the same address."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert apply.dynamic_client(cluster.api()).resources.get(api_version="v1", kind="Pod").namespaced
    assert list(tmp_path.iterdir()) == []
