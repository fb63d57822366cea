"""Curves a record holds, that several measures and the charts are made from. Times are epoch seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pandas as pd

from lab.trial.record import NoData, Record


@dataclass(frozen=True)
class Change:
    """The desired number of replicas went from ``before`` to ``after`` at ``t``."""

    t: float
    before: int
    after: int


def phase_start(record: Record, phase: str) -> float:
    """When the producer's ``phase`` began. Raises :class:`NoData` when it never did."""
    events = record.group_events
    for detail in events.loc[events["event"] == "phase", "detail"]:
        found = json.loads(detail)
        if found["phase"] == phase:
            return float(found["at"])
    raise NoData(f"the producer never reported phase {phase!r}")


def phases(record: Record) -> pd.DataFrame:
    """The profile's phases as columns start, end, label."""
    begun = None
    for detail in record.group_events.loc[record.group_events["event"] == "profile", "detail"]:
        begun = float(json.loads(detail)["start"])
    if begun is None:
        raise NoData("the producer never started")
    content = record.trial["inputs"]["profile"]
    rows: list[dict[str, Any]] = []
    ends = [*(step["at"] for step in content["steps"][1:]), content["duration"]]
    for step, end in zip(content["steps"], ends, strict=True):
        if rows and rows[-1]["label"] == step["phase"]:
            rows[-1]["end"] = begun + end
        else:
            rows.append({"start": begun + step["at"], "end": begun + end, "label": step["phase"]})
    return pd.DataFrame(rows, columns=["start", "end", "label"])


def lag(record: Record) -> pd.DataFrame:
    """Total lag as columns t, lag (messages). Raises :class:`NoData` when there is no sample."""
    chosen = record.samples[record.samples["metric"] == "kafka_consumergroup_lag_sum"]
    if chosen.empty:
        raise NoData("no sample of kafka_consumergroup_lag_sum")
    return chosen[["t", "value"]].rename(columns={"value": "lag"}).sort_values("t", ignore_index=True)


def objects(record: Record, kind: str, name: str | None = None) -> list[tuple[float, str, dict[str, Any]]]:
    """(time, event, object) of every watch event of ``kind`` (and ``name``), in order."""
    rows = record.transitions[record.transitions["kind"] == kind]
    if name is not None:
        rows = rows[rows["name"] == name]
    return [
        (float(t), str(event), json.loads(text))
        for t, event, text in rows[["t", "event", "object"]].itertuples(index=False, name=None)
    ]


def replicas(record: Record) -> pd.DataFrame:
    """The consumer Deployment's replicas as columns t, desired, current, ready; one row at every change."""
    rows: list[dict[str, Any]] = []
    for t, _, item in objects(record, "Deployment", "consumer"):
        status = item.get("status", {})
        row = {
            "t": t,
            "desired": int(item["spec"]["replicas"]),
            "current": int(status.get("replicas", 0)),
            "ready": int(status.get("readyReplicas", 0)),
        }
        if not rows or any(rows[-1][key] != row[key] for key in ("desired", "current", "ready")):
            rows.append(row)
    if not rows:
        raise NoData("the consumer Deployment was never seen")
    return pd.DataFrame(rows)


def scalings(record: Record) -> list[Change]:
    """Every change of the desired replicas, in order."""
    curve = replicas(record)
    changes = []
    before = int(curve["desired"].iloc[0])
    for t, after in curve[["t", "desired"]].itertuples(index=False, name=None):
        if int(after) != before:
            changes.append(Change(float(t), before, int(after)))
            before = int(after)
    return changes


def rebalances(record: Record) -> pd.DataFrame:
    """Group events that changed an assignment: columns t, pod, event, moved (partitions), owned."""
    events = record.group_events
    chosen = events[events["event"].isin(["assigned", "revoked", "lost"])].copy()
    chosen["moved"] = [len(parts) if parts is not None else 0 for parts in chosen["partitions"]]
    return chosen[["t", "pod", "event", "moved", "owned"]].reset_index(drop=True)


def policy(record: Record) -> tuple[int, int, int]:
    """(floor, ceiling, lagThreshold) of the policy as applied."""
    spec = record.trial["inputs"]["policy"]["spec"]
    threshold = int(spec["triggers"][0]["metadata"]["lagThreshold"])
    return int(spec.get("minReplicaCount", 0)), int(spec.get("maxReplicaCount", 100)), threshold
