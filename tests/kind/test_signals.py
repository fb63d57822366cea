"""A signal through the API reaches a container's first process, as a kill by the kernel does."""

import signal
from types import SimpleNamespace
from typing import Any

import allure
import pytest
from kubernetes import client

from lab.cluster import apply
from lab.errors import LabFault
from lab.trial import signals
from lab.wait import until

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("kind")]

NAMESPACE = "signalled"
STARTS_S = 60  # 3 s on a quiet machine
SLEEPS = ["python", "-c", "import time; time.sleep(600)"]


@pytest.fixture
def consumer(ours):
    """A stage whose one pod sleeps in a container ``consumer``; reads that pod."""
    pod = {"containers": [{"name": "consumer", "image": "elastic-lab/consumer:1", "command": SLEEPS}]}
    labels = {"app": "consumer"}
    spec = {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": pod}}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "consumer"}, "spec": spec}
    api = ours.api()
    core = client.CoreV1Api(api)
    apply.create_namespace(api, NAMESPACE)
    apply.objects(api, [ours.fit(deployment)], NAMESPACE)

    def pods(app):
        found: Any = core.list_namespaced_pod(NAMESPACE, label_selector=f"app={app}")
        return [api.sanitize_for_serialization(pod) for pod in found.items]

    stage: Any = SimpleNamespace(cluster=ours, namespace=NAMESPACE, transitions=SimpleNamespace(pods=pods))
    until(lambda: bool(signals.running(stage)), STARTS_S, "the container running", ours.check)
    yield stage
    core.delete_namespace(NAMESPACE)
    named = f"metadata.name={NAMESPACE}"
    until(lambda: not core.list_namespace(field_selector=named).items, STARTS_S, "the namespace gone", ours.check)


def test_a_killed_container_ends_by_the_signal_and_starts_again(consumer):
    """Exit code 137 is that of SIGKILL; the pod stays, and the time is that of the signal."""
    ((name, container),) = signals.running(consumer).items()
    found = signals.send(consumer, name, container, signal.SIGKILL)

    def started_again():
        ((same, new),) = signals.running(consumer).items() or [("", container)]
        return same == name and new != container

    until(started_again, STARTS_S, "another container in the same pod", consumer.cluster.check)
    (pod,) = consumer.transitions.pods("consumer")
    (status,) = pod["status"]["containerStatuses"]
    assert (status["restartCount"], status["lastState"]["terminated"]["exitCode"]) == (1, 137)
    assert found["pid"] > 1


def test_a_pod_that_is_not_there_is_a_fault_in_one_line(consumer):
    """The API's reason, and no kill that hit nothing."""
    with pytest.raises(LabFault, match="no signal 9 to nobody through the API"):
        signals.send(consumer, "nobody", "containerd://1", signal.SIGKILL)
