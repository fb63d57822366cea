"""Records every API watch event of a trial's namespace with the time it arrived, and lets the runner wait on them."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kubernetes import client, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from lab.errors import LabFault

log = logging.getLogger("lab.trial")

KINDS = (
    ("apps/v1", "Deployment"),
    ("autoscaling/v2", "HorizontalPodAutoscaler"),
    ("keda.sh/v1alpha1", "ScaledObject"),
    ("v1", "Pod"),
    ("batch/v1", "Job"),
)


class Transitions:
    """Watches the namespace from the moment it is made; ``now`` holds each object's last state by (kind, name)."""

    def __init__(self, api: client.ApiClient, namespace: str, file: Path) -> None:
        self._namespace = namespace
        self._file = file.open("a")
        self._changed = threading.Condition()
        self._stopped = False
        self.now: dict[tuple[str, str], dict[str, Any]] = {}
        dynamic = DynamicClient(api)
        for version, kind in KINDS:
            resource = dynamic.resources.get(api_version=version, kind=kind)
            threading.Thread(target=self._follow, args=(dynamic, resource, kind), name=f"watch-{kind}", daemon=True).start()

    def wait(
        self, condition: Callable[[], bool], deadline_s: float, what: str, check: Callable[[], None] | None = None
    ) -> None:
        """Block until ``condition`` holds, asked at every event. Raises :class:`LabFault` when the deadline passes."""
        end = time.monotonic() + deadline_s
        with self._changed:
            while not condition():
                left = end - time.monotonic()
                if left <= 0:
                    raise LabFault(f"{what}: not within {deadline_s:g} s")
                self._changed.wait(min(left, 1.0))
                if check is not None:
                    check()

    def notify(self) -> None:
        """Let waiters ask again: something else they wait for has changed."""
        with self._changed:
            self._changed.notify_all()

    def field(self, kind: str, name: str, *path: str) -> Any:
        """The value at ``path`` of an object's last state; None when any part of it is missing."""
        value: Any = self.now.get((kind, name))
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        return value

    def pods(self, app: str) -> list[dict[str, Any]]:
        """The last state of the pods of ``app`` that have not been deleted."""
        return [
            item
            for (kind, _), item in self.now.items()
            if kind == "Pod" and item["metadata"].get("labels", {}).get("app") == app
        ]

    def close(self) -> None:
        """Stop recording; threads end with the namespace."""
        with self._changed:
            self._stopped = True
            self._file.close()

    def _follow(self, dynamic: DynamicClient, resource: Any, kind: str) -> None:
        version: str | None = None
        while not self._stopped:
            watcher = watch.Watch()
            try:
                for event in dynamic.watch(resource, namespace=self._namespace, resource_version=version, watcher=watcher):
                    version = event["raw_object"]["metadata"]["resourceVersion"]
                    if not self._keep(kind, event["type"], event["raw_object"]):
                        return
            except (ApiException, HTTPError, OSError) as error:
                if self._stopped:
                    return
                log.debug("watch of %s begins again: %s", kind, error)
                version = None

    def _keep(self, kind: str, event: str, item: dict[str, Any]) -> bool:
        received = time.time()
        item["metadata"].pop("managedFields", None)
        name = item["metadata"]["name"]
        row = {"t": received, "kind": kind, "name": name, "event": event, "object": item}
        with self._changed:
            if self._stopped:
                return False
            self._file.write(json.dumps(row) + "\n")
            self._file.flush()
            if event == "DELETED":
                self.now.pop((kind, name), None)
            else:
                self.now[(kind, name)] = item
            self._changed.notify_all()
        return True
