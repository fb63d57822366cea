"""One pod: its containers, its published status, and its end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Coroutine, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Literal

from lab.errors import LabFault
from lab.kubelet import backoff
from lab.kubelet.container import LOST, Container, Surroundings, Tools
from lab.kubelet.environment import Source, Unresolved, environment, sources
from lab.kubelet.podspec import ContainerSpec, Json, parse
from lab.kubelet.process import LEAST_GRACE_S
from lab.kubelet.refusal import refusals
from lab.kubelet.status import Terminated, differs, pod_status, read_time, refused_status

log = logging.getLogger("lab.node")
KNOWN_S = 1.0  # a kubelet keeps what it has watched: a restart waits for no API server that is away
CORRECT_S = 2.0  # the kubelet's next sync, which is 10 s away at most; at once, two that disagree would write for ever
DELETE_AGAIN_S = 2.0  # the same


class Pod:
    """Runs one pod from its binding to its end."""

    def __init__(self, obj: Json, ip: str, tools: Tools, refused_before: int = 0) -> None:
        self.obj = obj
        self.ip = ip
        self.refusals = refusals(obj, tools.images)
        self._tools = tools
        self._refused_before = refused_before
        self._start = datetime.now(UTC)
        status = obj.get("status") or {}
        self._over = status.get("phase") in ("Succeeded", "Failed")  # it ended before this node was started
        self._conditions: dict[str, Json] = {entry["type"]: entry for entry in status.get("conditions") or ()}
        self._dirty, self._deleted, self._gone = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._sending = asyncio.Lock()
        self._sent: Json = {}
        self._version = math.inf  # of the object, with what was sent in it
        self._correcting = False
        self._writes: set[asyncio.Task[None]] = set()
        self._final = False
        self.folder = tools.run / "pods" / f"{self.namespace}_{self.name}_{self.uid}"
        self.containers = [] if self.refusals or self._over else self._make(status.get("containerStatuses") or ())

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return str(self.obj["metadata"]["uid"])

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return str(self.obj["metadata"]["namespace"])

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.obj["metadata"]["name"])

    def update(self, obj: Json) -> None:
        """Take a newer version of the pod. A deletion, or a shortened grace, takes effect at once."""
        self.obj = obj
        metadata = obj["metadata"]
        if metadata.get("deletionTimestamp"):
            grace_s = float(metadata.get("deletionGracePeriodSeconds") or 0)
            for container in self.containers:
                container.stop(grace_s)
            self._deleted.set()
        elif self._sent and int(metadata.get("resourceVersion") or 0) > self._version and differs(obj["status"], self._sent):
            self._correct()
        elif obj["spec"].get("ephemeralContainers"):
            words = [str(refusal) for refusal in refusals(obj, self._tools.images)]
            self._tools.events.record(obj, "Warning", "Unsupported", "; ".join(words))

    def _correct(self) -> None:
        """Write the status again in a while if it is another then: somebody changed it, as where a node's lease was missed."""

        def send() -> None:
            self._correcting = False
            if differs(self.obj["status"], self._sent):
                self._sent = {}
                self._dirty.set()

        if not self._correcting:
            self._correcting = True
            asyncio.get_running_loop().call_later(CORRECT_S, send)

    def abandon(self) -> None:
        """The pod's object is gone, or the node is ending: stop the processes with the least grace and write nothing more."""
        self._gone.set()
        self._deleted.set()
        for write in self._writes:
            write.cancel()
        for container in self.containers:
            container.stop(LEAST_GRACE_S)

    async def run(self) -> None:
        """The pod's whole life. It returns once the processes have ended and the object is removed or was gone."""
        writer = asyncio.create_task(self._publish_changes())
        try:
            if self.refusals and not self._over:
                await self._refuse()
            elif self.containers:
                self.folder.mkdir(parents=True, exist_ok=True)
                await asyncio.gather(*(container.run() for container in self.containers))
            self._final = True
            if not self._over:
                await self._until_done(self._send)
            await self._deleted.wait()
            await self._delete()
        finally:
            writer.cancel()
            self._tools.events.forget(self.uid)

    def _make(self, before: Iterable[Json]) -> list[Container]:
        spec = parse(self.obj, self._tools.images)
        statuses = {entry["name"]: entry for entry in before}
        read: dict[str, dict[Source, Mapping[str, str] | None]] = {}

        async def resolve(container: ContainerSpec) -> dict[str, str]:
            last = read.get(container.name)
            try:
                async with asyncio.timeout(None if last is None else KNOWN_S):
                    found = await self._tools.sources.get(self.namespace, sources(container))
            except (LabFault, TimeoutError) as fault:
                if last is None:
                    raise Unresolved(str(fault)) from fault
                found = last
            read[container.name] = found
            return environment(container, spec, self.ip, str(self.folder), found, self._tools.service)

        def event(kind: Literal["Normal", "Warning"], reason: str, words: str) -> None:
            self._tools.events.record(self.obj, kind, reason, words)

        around = Surroundings(spec, self.ip, self.folder, self._tools, resolve, self._dirty.set, event)
        return [Container(container, around, *resumed(statuses.get(container.name))) for container in spec.containers]

    async def _delete(self) -> None:
        """Remove the object until the watch says that it is gone.

        "Not found" is no proof: NodeRestriction says so of every pod while an API server that was restarted fills its caches.
        """
        while not self._gone.is_set():
            await self._until_done(lambda: self._tools.api.delete_pod(self.obj))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DELETE_AGAIN_S):
                    await self._gone.wait()

    async def _refuse(self) -> None:
        message = "; ".join(map(str, self.refusals))
        self._tools.events.record(self.obj, "Warning", self.refusals[0].reason, message)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(backoff.refusal_delay(self._refused_before)):
                await self._deleted.wait()

    def _status(self) -> Json:
        now = datetime.now(UTC)
        if self.refusals:
            message = "; ".join(map(str, self.refusals))
            return refused_status(self.refusals[0].reason, message, self._start, now, self._conditions)
        return pod_status(
            [container.view() for container in self.containers],
            policy=self.obj["spec"].get("restartPolicy", "Always"),
            final=self._final,
            ip=self.ip,
            start=self._start,
            now=now,
            previous=self._conditions,
        )

    async def _publish_changes(self) -> None:
        """Write the status whenever it has changed. Changes during a write go into the next one."""
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            if not all(container.over for container in self.containers):  # otherwise the last status is about to be written
                await self._until_done(self._send)

    async def _send(self) -> None:
        async with self._sending:
            status = self._status()
            if status == self._sent or self._gone.is_set():
                return
            self._version = await self._tools.api.patch_status(self.obj, status)
            self._sent = status
            self._conditions |= {entry["type"]: entry for entry in status["conditions"]}

    async def _until_done(self, write: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Repeat a failing write until it succeeds or the pod is gone, which also breaks off a write in progress."""
        attempt = 0
        while not self._gone.is_set():
            task = asyncio.create_task(write())
            self._writes.add(task)
            try:
                await asyncio.wait({task})
                if not task.cancelled():
                    task.result()
                    return
            except LabFault as fault:
                if attempt == 0:
                    log.warning("pod %s/%s: %s", self.namespace, self.name, fault)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(backoff.api_retry(attempt)):
                        await self._gone.wait()
                attempt += 1
            finally:
                self._writes.discard(task)
                task.cancel()


def resumed(before: Json | None) -> tuple[Terminated | None, int]:
    """The end of a container's last run and its restart count, from a status that an earlier node process has published."""
    if not before:
        return None, 0
    count = int(before.get("restartCount") or 0)
    running = (before.get("state") or {}).get("running")
    if running:
        lost = "the process node was restarted while the container ran"
        return Terminated(137, LOST, read_time(running["startedAt"]), datetime.now(UTC), message=lost), count
    shown = (before.get("state") or {}).get("terminated") or (before.get("lastState") or {}).get("terminated")
    if not shown:
        return None, count
    start, finish = read_time(shown["startedAt"]), read_time(shown["finishedAt"])
    return Terminated(int(shown["exitCode"]), shown.get("reason", ""), start, finish), count
