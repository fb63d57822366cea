"""What a cluster prints of a ScaledObject is what was written: through the real API server and KEDA, and back."""

import json
import uuid
from dataclasses import replace

import pytest
import yaml
from kubernetes import client

from lab.cluster import apply
from lab.inputs import scaledobject
from lab.inputs.adopt import adopt
from lab.kafka import topics
from lab.model.keda import hpa
from lab.wait import until
from tests.defects.target import deployment

pytestmark = pytest.mark.services

FINALIZER = "finalizer.keda.sh"
DEADLINE_S = 60


def written(bootstrap, topic):
    """A user's ScaledObject: on lag by the apache-kafka scaler, and on memory; with an empty behavior."""
    kafka = {"bootstrapServers": bootstrap, "consumerGroup": "orders-enricher", "topic": topic, "lagThreshold": "50"}
    spec = {
        "scaleTargetRef": {"name": "consumer", "kind": "Deployment"},
        "pollingInterval": 15,
        "minReplicaCount": 1,
        "maxReplicaCount": 6,
        "fallback": {"failureThreshold": 3, "replicas": 2, "behavior": "static"},  # the CRD writes this default
        "advanced": {"horizontalPodAutoscalerConfig": {"behavior": {}}},
        "triggers": [
            {"type": "apache-kafka", "name": "lag", "metadata": kafka | {"awsRegion": "eu-west-1"}},
            {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "1536Mi"}},
        ],
    }
    content = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "orders"}, "spec": spec}
    content["metadata"]["labels"] = {"team": "orders"}
    return content


@pytest.fixture
def place(cluster, keda):
    """A namespace with the Deployment "consumer" in it, and a topic."""
    name, api = f"printed-{uuid.uuid4().hex[:8]}", cluster.api()
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}])
    apply.objects(api, [deployment("consumer", 0, requests={"cpu": "10m", "memory": "48Mi"})], name)
    topics.create(cluster.bootstrap, {name: 6}, cluster.kafka_settings)
    yield name
    keda.delete(name="orders", namespace=name)
    client.CoreV1Api(api).delete_namespace(name)
    topics.delete(cluster.bootstrap, [name], cluster.kafka_settings)


def test_what_is_read_back_is_what_was_written(cluster, keda, place):
    """After KEDA has made it its own and made the HPA, which is the model's too: empty behavior, memory and all."""
    original = written(cluster.pod_bootstrap, place)
    hpas = apply.dynamic_client(cluster.api()).resources.get(api_version="autoscaling/v2", kind="HorizontalPodAutoscaler")
    copied = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(original)}
    sent = original | {"metadata": original["metadata"] | {"annotations": copied}}
    keda.create(body=sent, namespace=place)

    def found():
        return keda.get(name="orders", namespace=place).to_dict()

    until(lambda: FINALIZER in found()["metadata"].get("finalizers", ()), DEADLINE_S, "KEDA's finalizer", cluster.check)
    until(lambda: found().get("status", {}).get("hpaName"), DEADLINE_S, "KEDA's HPA", cluster.check)
    printed = yaml.safe_load(yaml.safe_dump(found()))
    assert printed["spec"]["advanced"]["scalingModifiers"] == {}  # KEDA's doing: if it stops, this test has lost its point
    theirs, ours = (scaledobject.parse(content, "my.yaml") for content in (printed, original))
    assert replace(theirs, content={}) == replace(ours, content={})
    assert adopt(theirs)[0] == adopt(ours)[0]

    real = hpas.get(name=ours.hpa, namespace=place).to_dict()["spec"]
    model = hpa(ours)["spec"]
    assert real["behavior"]["scaleUp"]["policies"] == [  # the defaults of an empty block, which are not those of none
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ]
    assert model["behavior"] == {}
    assert {field: real[field] for field in model if field != "behavior"} == {
        field: value for field, value in model.items() if field != "behavior"
    }
