"""A process node without an API server: real processes, probes and signals; what would be written is kept in lists."""

from __future__ import annotations

import asyncio
import copy
import itertools
import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lab.errors import LabFault
from lab.host import processes
from lab.kubelet.agent import Addresses, Agent
from lab.kubelet.api import Changed, Deleted, Sources
from lab.kubelet.container import Tools
from lab.kubelet.environment import service
from lab.kubelet.events import Recorder
from lab.kubelet.forking import Zygote
from lab.kubelet.pod import Pod
from lab.kubelet.podspec import Images, Json
from lab.kubelet.probe import Prober

IMAGES = Images({"elastic-lab": Path(sys.executable).parent})
SERVER = "https://127.0.0.1:6443"
DEADLINE_S = 60.0  # of what happens at once on a quiet machine
_uids = itertools.count(1)


def container(*command: str, name: str = "main", **more: Any) -> Json:
    """A container as the API gives it."""
    return {"name": name, "image": "elastic-lab:test", "command": list(command), **more}


def shell(script: str, name: str = "main", **more: Any) -> Json:
    """A container that runs a shell script."""
    return container("sh", "-c", script, name=name, **more)


def pod(*containers: Json, policy: str = "Always", metadata: Json | None = None, **spec: Any) -> Json:
    """A pod bound to the node, as the API gives it."""
    return {
        "metadata": {"name": "pod", "namespace": "ns", "uid": f"uid-{next(_uids)}", **(metadata or {})},
        "spec": {"nodeName": "node-1", "restartPolicy": policy, "containers": list(containers), **spec},
        "status": {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": "x"}]},
    }


class RecordingApi:
    """Takes what a node writes; every write wakes whoever waits for one."""

    def __init__(self) -> None:
        self.statuses: list[Json] = []
        self.events: list[Json] = []
        self.deleted: list[str] = []
        self.objects: dict[tuple[str, str], dict[str, str]] = {}
        self.reads = 0
        self.down = False
        self.hangs = False
        self.version = math.inf
        self._written = asyncio.Event()

    async def patch_status(self, pod: Json, status: Json) -> float:
        """Keep a copy, unless the API is said to be down or to hang. Returns ``version``."""
        if self.hangs:
            await asyncio.sleep(3600)
        if self.down:
            raise LabFault("the API server is down")
        self.statuses.append(copy.deepcopy(status))
        self._written.set()
        return self.version

    async def delete_pod(self, pod: Json) -> None:
        """Keep the uid."""
        self.deleted.append(pod["metadata"]["uid"])

    async def create_event(self, event: Json) -> None:
        """Keep the event."""
        self.events.append(event)
        self._written.set()

    async def update_event(self, namespace: str, name: str, change: Json) -> None:
        """Counts are not looked at."""

    async def data(self, kind: str, namespace: str, name: str) -> dict[str, str] | None:
        """What the test has put in ``objects``."""
        self.reads += 1
        return self.objects.get((kind, name))

    async def until(self, holds: Callable[[], Any]) -> None:
        """Wait until ``holds()`` is true after some write."""
        async with asyncio.timeout(DEADLINE_S):
            while not holds():
                self._written.clear()
                await self._written.wait()

    def shown(self, name: str = "main") -> list[Json]:
        """The container's status in every pod status written."""
        return [entry for status in self.statuses for entry in status.get("containerStatuses", ()) if entry["name"] == name]

    def reasons(self) -> list[str]:
        """The reasons of the events written."""
        return [event["reason"] for event in self.events]

    def running(self, restarts: int = 0) -> bool:
        """Whether the latest status shows the container running after so many restarts."""
        latest = self.shown()[-1:]
        return bool(latest) and "running" in latest[0]["state"] and latest[0]["restartCount"] >= restarts

    def ready(self) -> list[str]:
        """The Ready condition of every status, repetitions left out."""
        found = [entry["status"] for status in self.statuses for entry in status["conditions"] if entry["type"] == "Ready"]
        return [value for value, _ in itertools.groupby(found)]


class Node:
    """An agent with a recording API."""

    def __init__(self, run: Path, backoff_base_s: float, zygote: Zygote | None = None) -> None:
        self.run = run
        self.zygote = zygote
        self.api = RecordingApi()
        self.events = Recorder(self.api, "node-1")
        self.errors: list[BaseException] = []
        around = service(SERVER)
        tools = Tools(self.api, Sources(self.api), self.events, Prober(run), IMAGES, run, backoff_base_s, around, zygote)
        self.agent = Agent(tools, Addresses("127.77"), self.errors.append)

    def apply(self, obj: Json) -> Pod:
        """Show the node a pod, as the watch would."""
        self.agent.apply(Changed(obj))
        return next(pod for pod in self.agent.pods() if pod.uid == obj["metadata"]["uid"])

    def delete(self, obj: Json, grace_s: int) -> None:
        """Show the node that the pod is being deleted."""
        metadata = {**obj["metadata"], "deletionTimestamp": "2026-01-01T00:00:00Z", "deletionGracePeriodSeconds": grace_s}
        self.agent.apply(Changed({**obj, "metadata": metadata}))

    def vanish(self, obj: Json) -> None:
        """Show the node that the pod's object is gone."""
        self.agent.apply(Deleted(obj))

    async def removed(self, obj: Json) -> Json:
        """Wait until the node has removed the pod, and return the last status it had written before."""
        async with asyncio.timeout(DEADLINE_S):
            while obj["metadata"]["uid"] not in self.api.deleted:
                await asyncio.sleep(0.005)
        return self.api.statuses[-1]

    async def ended(self, obj: Json) -> Json:
        """Wait until the node has removed the pod, and return how its container ended."""
        ended: Json = (await self.removed(obj))["containerStatuses"][0]["state"]["terminated"]
        return ended

    async def phase(self, *wanted: str) -> None:
        """Wait until the latest status shows one of these phases."""
        await self.api.until(lambda: self.api.statuses and self.api.statuses[-1]["phase"] in wanted)

    def text(self, pod: Pod, name: str = "main") -> str:
        """What the container has written so far."""
        log = pod.folder / f"{name}.log"
        return log.read_text() if log.exists() else ""

    async def said(self, pod: Pod, words: str) -> None:
        """Wait until the container has written ``words``."""
        async with asyncio.timeout(DEADLINE_S):
            while words not in self.text(pod):
                await asyncio.sleep(0.005)


@asynccontextmanager
async def node(run: Path, backoff_base_s: float = 0.2, zygote: Zygote | None = None) -> AsyncIterator[Node]:
    """A node whose processes have all ended when it is left, with no pid file behind and no error swallowed."""
    made = Node(run, backoff_base_s, zygote)
    if zygote:
        zygote.start()
    writer = asyncio.create_task(made.events.run())
    try:
        yield made
    finally:
        await made.agent.stop()
        if zygote:
            zygote.stop()
        writer.cancel()
    assert not made.errors
    assert not processes.remembered(run)
    assert not list((run / "pids").glob("*"))
