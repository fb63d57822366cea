"""Follows the objects of one kind: listed once, then watched, and resumed so that nothing is told twice and no end is missed.

A watch that broke goes on from the last resourceVersion. Where the API server no longer has that (410 Gone), the objects are
listed again, and only what differs is told: what is new as ADDED, what changed as MODIFIED, what is gone as DELETED with its
last known state. ``gap`` is told from when to when only the outcome is known.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from kubernetes import watch
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import DynamicClient
from urllib3.exceptions import HTTPError

from lab.errors import NoAnswer
from lab.kubelet import backoff

log = logging.getLogger("lab.trial")

Json = dict[str, Any]
WATCH_S = 240  # after which the API server ends a watch in order
REQUEST_S = 10.0
TRIES = 5  # in a row from one resourceVersion, then it is given up
STEADY_S = 5.0  # a watch that stood so long is none that fails at once
_GONE = 410
# A broken connection may end in the middle of a line, whose JSON is then none.
_BROKEN = (ApiException, NoAnswer, HTTPError, OSError, ValueError, KeyError, TypeError)


class Expired(Exception):
    """A watch can't go on from where it was: list again."""


class Kind:
    """The objects of one kind in a namespace, or the one of a ``name``, from the API server."""

    def __init__(self, api: DynamicClient, version: str, kind: str, namespace: str, name: str = "") -> None:
        self._resource = api.resources.get(api_version=version, kind=kind)
        # A right on one name holds for a list and for a watch with this selector alone.
        self._which = {"namespace": namespace} | ({"field_selector": f"metadata.name={name}"} if name else {})
        self._own = {"apiVersion": version, "kind": kind}
        self._watch = watch.Watch()

    def objects(self) -> tuple[str, list[Json]]:
        """The resourceVersion of this moment, and every object."""
        answer = self._resource.get(**self._which, serialize=False, _request_timeout=REQUEST_S)
        content = json.loads(answer.data)
        return content["metadata"]["resourceVersion"], [self._own | item for item in content.get("items") or ()]

    def events(self, version: str) -> Iterator[tuple[str, Json]]:
        """(type, object) of each event after ``version``, until the connection ends. Raises :class:`Expired`."""
        self._watch = watch.Watch()
        try:
            for event in self._watch.stream(
                self._resource.get,
                **self._which,
                resource_version=version,
                serialize=False,
                timeout_seconds=WATCH_S,
                allow_watch_bookmarks=True,
                _request_timeout=(REQUEST_S, WATCH_S + 30),
            ):
                yield event["type"], event["raw_object"]
        except ApiException as error:
            if error.status == _GONE:
                raise Expired from error
            raise

    def stop(self) -> None:
        """End a watch that waits for its next event."""
        self._watch.stop()


def follow(
    source: Kind,
    take: Callable[[str, Json], None],
    stop: threading.Event,
    gap: Callable[[float, float], None] = lambda began, ended: None,
    pause: Callable[[int], float] = backoff.api_retry,
) -> None:
    """Hand each event of ``source`` to ``take`` (type, object) until ``stop`` is set.

    ``gap`` is told the monotonic times between which events were not seen one by one. After a failure it waits ``pause`` (s, by
    attempt from 0), or until ``stop``.
    """
    known: dict[str, Json] = {}
    first = True
    version, attempt, seen = "", 0, time.monotonic()
    while not stop.is_set():
        began: float | None = None  # of the watch: a list that takes long is no steady one
        try:
            if not version:
                version, listed = source.objects()
                for event, item in changes(known, listed):
                    take(event, item)
                if not first:
                    gap(seen, time.monotonic())
                first, known, seen = False, {item["metadata"]["name"]: item for item in listed}, time.monotonic()
            began = time.monotonic()
            for event, item in source.events(version):
                if stop.is_set():
                    return
                version, attempt, seen = item["metadata"]["resourceVersion"], 0, time.monotonic()
                if event not in ("ADDED", "MODIFIED", "DELETED"):  # a bookmark has only the version
                    continue
                if event == "DELETED":
                    known.pop(item["metadata"]["name"], None)
                else:
                    known[item["metadata"]["name"]] = item
                take(event, item)
        except Expired:
            version = ""
        except _BROKEN as error:
            if attempt == 0 and not stop.is_set():
                log.debug("a watch broke: %s", error)
            if attempt >= TRIES:
                version = ""
        if began is not None and time.monotonic() - began >= STEADY_S:
            attempt, seen = 0, time.monotonic()
        else:
            stop.wait(pause(attempt))
            attempt += 1


def changes(known: Mapping[str, Json], listed: Sequence[Json]) -> Iterator[tuple[str, Json]]:
    """What the ``listed`` objects tell that is not ``known`` (by name), as (type, object). Pure.

    An object of a name that another had before is that one's end, and its own beginning.
    """
    names = {item["metadata"]["name"] for item in listed}
    for name, item in known.items():
        if name not in names:
            yield "DELETED", item
    for item in listed:
        before = known.get(item["metadata"]["name"])
        if before is not None and before["metadata"].get("uid") != item["metadata"].get("uid"):
            yield "DELETED", before
            before = None
        if before is None:
            yield "ADDED", item
        elif before["metadata"]["resourceVersion"] != item["metadata"]["resourceVersion"]:
            yield "MODIFIED", item
