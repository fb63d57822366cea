"""Events on pods: the node's acts and their reasons, written in the background so that no pod waits for them."""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from datetime import UTC, datetime
from typing import Literal

from lab.errors import LabFault
from lab.kubelet.api import ApiServer
from lab.kubelet.podspec import Json
from lab.kubelet.status import timestamp

log = logging.getLogger("lab.node")

REPEAT_S = 10.0
COMPONENT = "process-node"


class Recorder:
    """Queues events. The same words about the same pod raise one event's count, at most every ten seconds."""

    def __init__(self, api: ApiServer, node: str) -> None:
        self._api = api
        self._node = node
        self._queue: asyncio.Queue[tuple[str, Json]] = asyncio.Queue()
        self._known: dict[tuple[str, str, str], tuple[str, int, float]] = {}

    def record(self, pod: Json, kind: Literal["Normal", "Warning"], reason: str, message: str) -> None:
        """Queue an event on ``pod``; never blocks."""
        metadata = pod["metadata"]
        now, moment = time.monotonic(), timestamp(datetime.now(UTC))
        key = (metadata["uid"], reason, message)
        name, count, written = self._known.get(key, ("", 0, 0.0))
        count += 1
        if name and now - written < REPEAT_S:
            self._known[key] = (name, count, written)
            return
        log.log(logging.WARNING if kind == "Warning" else logging.DEBUG, "%s: %s: %s", metadata["name"], reason, message)
        if name:
            change = {"metadata": {"namespace": metadata["namespace"]}, "count": count, "lastTimestamp": moment}
            self._queue.put_nowait((name, change))
        else:
            name = f"{metadata['name'][:200]}.{secrets.token_hex(6)}"
            self._queue.put_nowait(("", _event(metadata, name, kind, reason, message, self._node, moment)))
        self._known[key] = (name, count, now)

    def forget(self, uid: str) -> None:
        """Drop the counts of a pod that is gone."""
        self._known = {key: value for key, value in self._known.items() if key[0] != uid}

    async def run(self) -> None:
        """Write queued events for ever. An event that can't be written is lost, as with a kubelet."""
        while True:
            name, body = await self._queue.get()
            try:
                if name:
                    await self._api.update_event(body.pop("metadata")["namespace"], name, body)
                else:
                    await self._api.create_event(body)
            except LabFault as fault:
                log.warning("an event was not written: %s", fault)


def _event(metadata: Json, name: str, kind: str, reason: str, message: str, node: str, moment: str) -> Json:
    pod = {field: metadata[field] for field in ("namespace", "name", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": metadata["namespace"]},
        "involvedObject": {"apiVersion": "v1", "kind": "Pod", **pod},
        "type": kind,
        "reason": reason,
        "message": message[:1024],
        "source": {"component": COMPONENT, "host": node},
        "reportingComponent": COMPONENT,
        "reportingInstance": node,
        "firstTimestamp": moment,
        "lastTimestamp": moment,
        "count": 1,
    }
