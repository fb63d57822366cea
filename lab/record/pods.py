"""Pods and replicas over time, as the API server's watch saw them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import pandas as pd

from lab.record.tables import Watched


@dataclass(frozen=True)
class Pod:
    """A pod. Times in epoch s; each is when the watch told of it, None where it never did.

    ``seen`` is its first event, ``ready`` when it was first Ready, ``deleted`` when it was told to go, with ``grace_s``;
    ``exited`` when its container had ended. ``readiness`` is (time, Ready and not told to go) of every event. Pods of a
    StatefulSet of one name are one: first ready and deleted, gone with the last.
    """

    name: str
    seen: float
    added: float | None = None
    ready: float | None = None
    deleted: float | None = None
    grace_s: int = 0
    exited: float | None = None
    exit_code: int | None = None
    gone: float | None = None
    readiness: tuple[tuple[float, bool], ...] = ()

    def ready_before(self, t: float) -> bool:
        """Whether it was Ready, and not told to go, by its last event before ``t``; False where there was none."""
        return next((ready for at, ready in reversed(self.readiness) if at < t), False)


def pods_of(seen: Iterable[Watched], app: str) -> dict[str, Pod]:
    """The pods of ``app`` among those that were ``seen``, by name, in order of their first event."""
    events: dict[str, list[Watched]] = {}
    for one in seen:
        if one.object["metadata"].get("labels", {}).get("app") == app:
            events.setdefault(one.object["metadata"]["name"], []).append(one)
    return {name: _pod(name, own) for name, own in events.items()}


def _pod(name: str, events: list[Watched]) -> Pod:
    leaving = next((one for one in events if "deletionTimestamp" in one.object["metadata"]), None)
    ended = next(((one.t, code) for one in events if (code := _exit_code(one.object)) is not None), (None, None))
    return Pod(
        name=name,
        seen=events[0].t,
        added=next((one.t for one in events if one.event == "ADDED"), None),
        ready=next((one.t for one in events if _ready(one.object)), None),
        deleted=leaving.t if leaving else None,
        grace_s=int(leaving.object["metadata"].get("deletionGracePeriodSeconds") or 0) if leaving else 0,
        exited=ended[0],
        exit_code=ended[1],
        gone=events[-1].t if events[-1].event == "DELETED" else None,  # a StatefulSet's next pod has the name
        readiness=tuple(
            (one.t, one.event != "DELETED" and "deletionTimestamp" not in one.object["metadata"] and _ready(one.object))
            for one in events
        ),
    )


def _ready(item: dict[str, Any]) -> bool:
    conditions = (item.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


def _exit_code(item: dict[str, Any]) -> int | None:
    """The exit code of the pod's container, None while it runs."""
    states = (one.get("state") or {} for one in (item.get("status") or {}).get("containerStatuses") or ())
    return next((int(over["exitCode"]) for state in states if (over := state.get("terminated"))), None)


COLUMNS = ("desired", "current", "ready")


class Change(NamedTuple):
    """The desired number of replicas went from ``before`` to ``after`` at ``t`` (epoch s)."""

    t: float
    before: int
    after: int


def replica_curve(seen: Iterable[Watched]) -> pd.DataFrame:
    """The replicas of the Deployment that was ``seen`` as columns t, desired, current, ready; one row at every change."""
    rows: list[tuple[float, int, int, int]] = []
    for t, _, _, item in seen:
        status = item.get("status", {})
        counts = int(item["spec"]["replicas"]), int(status.get("replicas", 0)), int(status.get("readyReplicas", 0))
        if not rows or rows[-1][1:] != counts:
            rows.append((t, *counts))
    return pd.DataFrame(rows, columns=["t", *COLUMNS])


def replica_changes(curve: pd.DataFrame) -> list[Change]:
    """Every change of the desired replicas on ``curve``, in order."""
    rows = curve[["t", "desired"]].itertuples(index=False, name=None)
    return [Change(float(t), int(one), int(other)) for (_, one), (t, other) in pairwise(rows) if one != other]
