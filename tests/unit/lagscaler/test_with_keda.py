"""KEDA's real operator as the client: lag that lasts scales a Deployment; what is refused or gone is held, and seen."""

import uuid

import pytest
from kubernetes import client
from kubernetes.dynamic import DynamicClient

from lab.cluster import apply
from lab.errors import LabFault
from lab.kafka import topics
from lab.wait import until
from tests.unit.lagscaler.test_on_kafka import SUSTAIN_S, Topic
from tests.unit.lagscaler.test_program import running

pytestmark = pytest.mark.cluster
DEADLINE_S = 60
POLLS_S = 8  # several pollingIntervals of 1 s and HPA syncs of 0.5 s: long enough for what must not happen to happen


class Scaled:
    """A Deployment with a ScaledObject whose trigger is the scaler at ``address``, in a namespace of its own."""

    def __init__(self, cluster, address, kind="external", fallback=None, least=1, **changes):
        self.api, self.namespace = cluster.api(), f"lagscaler-{uuid.uuid4().hex[:8]}"
        self.topic = Topic(cluster.bootstrap)
        names = {"BOOTSTRAP_SERVERS": cluster.pod_bootstrap, "GROUP": self.topic.name, "TOPIC": self.topic.name}
        metadata = {
            "scalerAddress": address,
            "bootstrapServersFromEnv": "BOOTSTRAP_SERVERS",
            "consumerGroupFromEnv": "GROUP",
            "topicFromEnv": "TOPIC",
            "lagThreshold": "10",
            "sustainSeconds": str(SUSTAIN_S),
            "samplingInterval": "1",
            "allowIdleConsumers": "true",
        } | changes
        spec = {
            "scaleTargetRef": {"name": "consumer"},
            "pollingInterval": 1,
            "cooldownPeriod": 2,
            "minReplicaCount": least,
            "maxReplicaCount": 6,
            "triggers": [{"type": kind, "metadata": metadata}],
        }
        if fallback:
            spec["fallback"] = fallback
        container = {
            "name": "consumer",
            "image": "elastic-lab/consumer",
            "command": ["python", "-c", "import signal; signal.pause()"],
            "env": [{"name": name, "value": value} for name, value in names.items()],
        }
        template = {"metadata": {"labels": {"app": "consumer"}}, "spec": {"containers": [container]}}
        deployment = {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "consumer"},
            "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "consumer"}}, "template": template},
        }
        apply.objects(self.api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.namespace}}])
        scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "consumer"}, "spec": spec}
        apply.objects(self.api, [deployment, scaled], self.namespace)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        client.CoreV1Api(self.api).delete_namespace(self.namespace)

    def replicas(self):
        """What the Deployment is told; the API leaves a 0 out of a scale."""
        return client.AppsV1Api(self.api).read_namespaced_deployment_scale("consumer", self.namespace).spec.replicas or 0

    def metrics(self):
        """The metrics' names of the HPA KEDA made; none while there is no HPA."""
        listed = client.AutoscalingV2Api(self.api).list_namespaced_horizontal_pod_autoscaler(self.namespace)
        return [metric.external.metric.name for item in listed.items for metric in item.spec.metrics]

    def conditions(self):
        """The conditions of the ScaledObject, by type."""
        resource = DynamicClient(self.api).resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
        status = resource.get(name="consumer", namespace=self.namespace).to_dict().get("status") or {}
        return {item["type"]: item for item in status.get("conditions", [])}

    def condition(self, kind):
        """Status and reason of a condition of the ScaledObject."""
        found = self.conditions().get(kind, {})
        return found.get("status"), found.get("reason")

    def scaled_to(self, replicas):
        """Wait until the Deployment is told that number."""
        until(lambda: self.replicas() == replicas, DEADLINE_S, f"{replicas} replicas")

    def stays_at(self, replicas):
        """For some polls of KEDA's and syncs of the HPA's."""
        try:
            until(lambda: self.replicas() != replicas, POLLS_S, "a change")
        except LabFault:
            return
        raise AssertionError(f"{self.replicas()} replicas, where {replicas} were to stay")


def test_lag_that_lasts_scales_and_what_does_not_does_not(cluster):
    """25 messages at 10 a pod: three pods when they have lasted, one when they are committed; names are from variables."""
    with running() as (address, _), Scaled(cluster, address) as scaled:
        until(lambda: scaled.metrics() == [f"s0-persistent-lag-{scaled.topic.name}"], DEADLINE_S, "the HPA")
        until(lambda: scaled.condition("Ready")[0] == "True", DEADLINE_S, "Ready")
        scaled.topic.produce(25)
        until(lambda: scaled.condition("Active")[0] == "True", DEADLINE_S, "Active")
        scaled.scaled_to(3)
        scaled.topic.commit(25)
        scaled.scaled_to(1)


def test_bad_metadata_is_on_the_scaledobjects_condition(cluster):
    """Not Ready, and no HPA; that no metric is named is all KEDA says there: the field is named in its log and ours."""
    with running() as (address, _), Scaled(cluster, address, lagThreshold="many") as scaled:
        until(lambda: scaled.condition("Ready") == ("False", "ScaledObjectCheckFailed"), DEADLINE_S, "the condition")
        assert "no metric specs returned from scalers" in scaled.conditions()["Ready"]["message"]
        assert scaled.metrics() == []
        assert scaled.replicas() == 1


def test_from_zero_and_back_and_never_to_zero_on_an_error(cluster):
    """Lag wakes the group; with Kafka's topic gone the scaler answers errors, and the replicas stay."""
    with running() as (address, _), Scaled(cluster, address, least=0) as scaled:
        scaled.scaled_to(0)
        scaled.topic.produce(25)
        scaled.scaled_to(3)
        topics.delete(scaled.topic.bootstrap, [scaled.topic.name])
        until(lambda: scaled.condition("Ready") == ("False", "TriggerError"), DEADLINE_S, "the error")
        scaled.stays_at(3)


@pytest.mark.parametrize(("kind", "threshold", "after"), [("external", 3, 3), ("external-push", 3, 3), ("external-push", 0, 5)])
def test_a_scaler_that_cant_be_reached(cluster, kind, threshold, after):
    """The replicas stay, and no fallback fires, as KEDA has lost the metric's name (keda #8056), unless it was streamed.

    With external-push KEDA keeps the name until the first error that is not yet a fallback: failureThreshold 0 falls back.
    """
    fallback = {"failureThreshold": threshold, "replicas": 5}
    with running() as (address, _):
        scaled = Scaled(cluster, address, kind, fallback)
        scaled.topic.produce(25)
        scaled.scaled_to(3)
    with scaled:
        if after != 3:
            scaled.scaled_to(after)
        scaled.stays_at(after)
