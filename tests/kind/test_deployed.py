"""What the binary runtime, which has no Services, can't show: KEDA finds scaler and Prometheus by their names there."""

from typing import Any

import allure
import pytest
from kubernetes import client

from lab import paths, yamlfile
from lab.cluster import apply
from lab.wait import until
from tests.unit.programs.lagscaler.test_with_keda import Scaled

from .one_pod import STARTS_S, until_gone

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("kind")]

NAME = "lag-scaler"  # of the Deployment, the Service and the namespace


@pytest.fixture
def deployed(kind_cluster):
    """The persistent-lag scaler by its own manifest, in its own namespace; its address is the Service's name."""
    api = kind_cluster.api()
    apps, core = client.AppsV1Api(api), client.CoreV1Api(api)
    objects = yamlfile.documents(paths.MANIFESTS / "lagscaler" / "lag-scaler.yaml")
    apply.objects(api, [kind_cluster.fit(item) for item in objects])

    def ready():
        found: Any = apps.read_namespaced_deployment_status(NAME, NAME)
        return found.status.ready_replicas == found.spec.replicas

    until(ready, STARTS_S, "both pods of the scaler ready", kind_cluster.check)
    yield f"{NAME}.{NAME}.svc:6000"
    core.delete_namespace(NAME)
    until_gone(kind_cluster, core, NAME)


def test_lag_that_lasts_scales_by_the_deployed_scaler(kind_cluster, deployed):
    """25 messages at 10 a pod, asked of two pods behind one name: three pods when they have lasted, one once committed."""
    with Scaled(kind_cluster, deployed) as scaled:
        scaled.wait(lambda: scaled.metrics() == [f"s0-persistent-lag-{scaled.topic.name}"], "the HPA")
        scaled.topic.produce(25)
        scaled.reach(3)
        scaled.topic.commit(25)
        scaled.reach(1)


def test_a_prometheus_trigger_is_given_an_address_that_keda_reaches(kind_cluster):
    """The Service's, not the port of the host's loopback that this process asks."""
    asked = {"serverAddress": kind_cluster.pod_prometheus_url, "query": "vector(25)", "threshold": "10"}
    with Scaled(kind_cluster, "", asked, kind="prometheus") as scaled:
        scaled.reach(3)
        assert scaled.condition("Ready")[0] == "True"
