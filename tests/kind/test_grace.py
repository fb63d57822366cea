"""A kubelet gives a container two seconds between SIGTERM and SIGKILL, however short its grace is. So does the process node."""

from typing import Any

import allure
import pytest
from kubernetes import client

from lab.kubelet.process import LEAST_GRACE_S
from lab.trial import signals

from .one_pod import one_pod

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


def test_no_grace_is_shorter_than_two_seconds(ours):
    """A container that ignores SIGTERM, in a pod with a grace of 1 s, lives for two."""
    with one_pod(ours, "graced", ["python", "-c", DEAF], grace_s=1) as stage:
        ((name, _),) = signals.running(stage).items()
        core = client.CoreV1Api(ours.api())
        log: Any = core.read_namespaced_pod_log(name, "graced", container="consumer", follow=True, _preload_content=False)
        core.delete_namespaced_pod(name, "graced")
        lived = [float(line) for line in log.data.decode().split()]
    assert LEAST_GRACE_S - 0.2 <= max(lived) <= LEAST_GRACE_S + 1
