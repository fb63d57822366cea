"""The node's core: it starts the pods bound to it, keeps them up to date and ends them, as the watch says."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from lab.errors import LabFault
from lab.host import processes
from lab.kubelet.api import Changed, Deleted, Listed
from lab.kubelet.container import Tools
from lab.kubelet.pod import Pod
from lab.kubelet.podspec import Json
from lab.kubelet.process import LEAST_GRACE_S, kill_session

_HOSTS = 2**16


class Addresses:
    """The /16 under a prefix such as ``127.77``. The pointer moves on, so that a freed address rests before its next use."""

    def __init__(self, network: str) -> None:
        self._network = network
        self._next = 1
        self._used: set[str] = set()

    def take(self, wanted: str = "") -> str:
        """An unused address: ``wanted`` (a pod's from before a restart of the node) if it is of this network and free."""
        if wanted.startswith(f"{self._network}.") and wanted not in self._used:
            self._used.add(wanted)
            return wanted
        for _ in range(_HOSTS):
            number, self._next = self._next, (self._next + 1) % _HOSTS
            address = f"{self._network}.{number >> 8}.{number & 255}"
            if number & 255 not in (0, 255) and address not in self._used:
                self._used.add(address)
                return address
        raise LabFault(f"no free pod address is left in {self._network}.0.0/16")

    def give_back(self, address: str) -> None:
        """Mark an address as free again."""
        self._used.discard(address)


class Agent:
    """The pods of this node, by uid. A pod whose object is gone is dropped, and its task ends by itself."""

    def __init__(self, tools: Tools, addresses: Addresses, failed: Callable[[BaseException], None]) -> None:
        self._tools = tools
        self._addresses = addresses
        self._failed = failed
        self._pods: dict[str, Pod] = {}
        self._tasks: dict[asyncio.Task[None], Pod] = {}
        self._refused: dict[str, int] = {}

    def pods(self) -> list[Pod]:
        """The pods whose objects exist, the newest first."""
        return list(reversed(self._pods.values()))

    def apply(self, change: Listed | Changed | Deleted) -> None:
        """Follow one message of the watch."""
        if isinstance(change, Changed):
            self._change(change.pod)
        elif isinstance(change, Deleted):
            self._drop(change.pod["metadata"]["uid"])
        else:
            there = {pod["metadata"]["uid"] for pod in change.pods}
            for uid in [uid for uid in self._pods if uid not in there]:
                self._drop(uid)
            for pod in change.pods:
                self._change(pod)

    async def stop(self) -> None:
        """End every pod's processes: SIGTERM, two seconds, SIGKILL. Nothing is written to the API."""
        for pod in self._tasks.values():
            pod.abandon()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=LEAST_GRACE_S + 5)

    def _change(self, obj: Json) -> None:
        uid = obj["metadata"]["uid"]
        if uid not in self._pods:
            self._start(obj)
        # A pod whose task has ended stays here until the watch says that its object is gone, so late news can't start it again.
        self._pods[uid].update(obj)

    def _start(self, obj: Json) -> None:
        ip = self._addresses.take((obj.get("status") or {}).get("podIP") or "")
        owner = next((ref["uid"] for ref in obj["metadata"].get("ownerReferences") or ()), obj["metadata"]["uid"])
        pod = Pod(obj, ip, self._tools, self._refused.get(owner, 0))
        if pod.refusals:
            self._refused[owner] = self._refused.get(owner, 0) + 1
        self._pods[pod.uid] = pod
        task = asyncio.create_task(pod.run(), name=f"{pod.namespace}/{pod.name}")
        self._tasks[task] = pod
        task.add_done_callback(self._ended)

    def _drop(self, uid: str) -> None:
        pod = self._pods.pop(uid, None)
        if pod:
            pod.abandon()

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._addresses.give_back(self._tasks.pop(task).ip)
        if not task.cancelled() and (error := task.exception()):
            self._failed(error)


def end_leftovers(run: Path) -> int:
    """End the pods' processes that an earlier node process has left in ``run``, and return how many there were."""
    left = processes.remembered(run, "pod/")
    processes.end(left, LEAST_GRACE_S)
    for process in left:
        kill_session(process.pid)
        processes.forget(run, process.pid)
    return len(left)
