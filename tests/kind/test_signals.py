"""Signals to a container's first process: through the API as by the kernel, and of a kubelet, which waits two seconds."""

import signal
from typing import Any

import allure
import pytest
from kubernetes import client

from lab.errors import LabFault
from lab.kubelet.process import LEAST_GRACE_S
from lab.trial import signals
from lab.wait import until

from .one_pod import STARTS_S, one_pod

pytestmark = [pytest.mark.kind, allure.epic("Runtimes"), allure.feature("kind")]

# It prints how long ago SIGTERM was, until SIGKILL ends it.
DEAF = """
import signal, time
at = []
signal.signal(signal.SIGTERM, lambda *_: at.append(time.monotonic()))
while True:
    time.sleep(0.02)
    if at:
        print(time.monotonic() - at[0], flush=True)
"""
SLEEPS = ["python", "-c", "import time; time.sleep(600)"]


@pytest.fixture
def consumer(kind_cluster):
    """A stage whose one pod sleeps in a container ``consumer``; reads that pod."""
    with one_pod(kind_cluster, "signalled", SLEEPS, grace_s=30) as stage:
        yield stage


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


def test_no_grace_is_shorter_than_two_seconds(kind_cluster):
    """A container that ignores SIGTERM, in a pod with a grace of 1 s, lives for two."""
    with one_pod(kind_cluster, "graced", ["python", "-c", DEAF], grace_s=1) as stage:
        ((name, _),) = signals.running(stage).items()
        core = client.CoreV1Api(kind_cluster.api())
        log: Any = core.read_namespaced_pod_log(name, "graced", container="consumer", follow=True, _preload_content=False)
        core.delete_namespaced_pod(name, "graced")
        lived = [float(line) for line in log.data.decode().split()]
    assert LEAST_GRACE_S - 0.2 <= max(lived) <= LEAST_GRACE_S + 1
