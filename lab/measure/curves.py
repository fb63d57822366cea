"""Curves a record holds, that several measures and the charts are made from. Times are epoch seconds."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.record.store import Record
from lab.spec.profile import BASELINE, RELIEF

CONSUMER = "consumer"


@dataclass(frozen=True)
class Change:
    """The desired number of replicas went from ``before`` to ``after`` at ``t``."""

    t: float
    before: int
    after: int


def begun(record: Record) -> list[tuple[float, str]]:
    """(time, name) of every phase the producer began, in order."""
    events = record.group_events
    found = [json.loads(detail) for detail in events.loc[events["event"] == "phase", "detail"]]
    return [(float(one["at"]), str(one["phase"])) for one in found]


def zero(record: Record) -> float:
    """When the traffic first left its baseline: what charts and reactions count from. :class:`NoData` when it never did."""
    for at, phase in begun(record):
        if phase != BASELINE:
            return at
    raise NoData("the producer never left the baseline")


def relief(record: Record) -> float:
    """When the last spike, burst or tooth was over. Raises :class:`NoData` when the producer did not come that far."""
    last = begun(record)[-1:]
    if not last or last[0][1] not in RELIEF:
        raise NoData(f"the producer ended in phase {last[0][1]!r}" if last else "the producer began no phase")
    return last[0][0]


def profile_start(record: Record) -> float:
    """When the producer began its profile. Raises :class:`NoData` when it never did."""
    for detail in record.group_events.loc[record.group_events["event"] == "profile", "detail"]:
        return float(json.loads(detail)["start"])
    raise NoData("the producer never started")


def phases(record: Record) -> pd.DataFrame:
    """The profile's phases as columns start, end, label."""
    begun = profile_start(record)
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


def span(record: Record, phase: str) -> tuple[float, float]:
    """When the profile's first phase of that name began and its last ended. :class:`NoData` where it has none."""
    found = phases(record)
    chosen = found[found["label"] == phase]
    if chosen.empty:
        raise NoData(f"the profile has no phase {phase}")
    return float(chosen["start"].iloc[0]), float(chosen["end"].iloc[-1])


def lag_within(record: Record, start: float, end: float) -> pd.DataFrame:
    """:func:`lag` from ``start`` to ``end``. Raises :class:`NoData` for fewer than three samples."""
    curve = lag(record)
    seen = curve[curve["t"].between(start, end)]
    if len(seen) < 3:
        raise NoData(f"{len(seen)} samples of lag in {end - start:.1f} s")
    return seen


def slope(seen: pd.DataFrame) -> float:
    """How fast lag grows over the samples ``seen``, messages/s (least squares)."""
    return float(np.polyfit(seen["t"] - seen["t"].iloc[0], seen["lag"], 1)[0])


@quantity("messages", "peak lag")
def peak_lag(record: Record) -> int:
    """The trial's highest total lag; no data where :func:`lag` has none."""
    return int(lag(record)["lag"].max())


def controller_log(record: Record) -> str:
    """What kube-controller-manager said of the trial's HPA (klog, UTC). Raises :class:`NoData` for a trial without an HPA."""
    return record.file("hpa.log").read_text()


def objects(record: Record, kind: str, name: str | None = None) -> list[tuple[float, str, dict[str, Any]]]:
    """(time, event, object) of every watch event of ``kind`` (and ``name``), in order."""
    return [(t, event, item) for t, one, event, item in record.objects.get(kind, ()) if name in (None, one)]


def lives(record: Record, app: str = CONSUMER) -> dict[str, float]:
    """How long each pod of ``app`` was there, s: from seen to gone, or to the record's end. :class:`NoData` for none."""
    born: dict[str, float] = {}
    gone: dict[str, float] = {}
    for t, event, item in objects(record, "Pod"):
        if item["metadata"].get("labels", {}).get("app") == app:
            born.setdefault(item["metadata"]["name"], t)
            if event == "DELETED":
                gone[item["metadata"]["name"]] = t
    if not born:
        raise NoData(f"no pod of {app} was seen")
    end = float(record.trial["times"]["ended"])
    return {name: gone.get(name, end) - at for name, at in born.items()}


def replicas(record: Record, deployment: str = CONSUMER) -> pd.DataFrame:
    """The replicas of ``deployment`` as columns t, desired, current, ready; one row at every change."""
    rows: list[dict[str, Any]] = []
    for t, _, item in objects(record, "Deployment", deployment):
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
        raise NoData(f"the {deployment} Deployment was never seen")
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


@dataclass(frozen=True)
class Bounds:
    """What a policy allows: replicas from ``floor`` to ``ceiling``; ``threshold`` is lagThreshold, None if lag is no signal."""

    floor: int
    ceiling: int
    threshold: int | None

    @property
    def lag_threshold(self) -> int:
        """lagThreshold. Raises :class:`NoData` for a policy that does not scale on lag."""
        if self.threshold is None:
            raise NoData("the policy has no lagThreshold")
        return self.threshold


def policy(record: Record) -> Bounds:
    """The bounds of the policy as applied, of whichever kind it is."""
    content = record.trial["inputs"]["policy"]
    spec = content["spec"]
    threshold: int | None = None
    if content["kind"] == "ScaledObject":
        written = (trigger["metadata"].get("lagThreshold") for trigger in spec["triggers"])
        threshold = next((int(value) for value in written if value), None)
        return Bounds(int(spec.get("minReplicaCount", 0)), int(spec.get("maxReplicaCount", 100)), threshold)
    if content["kind"] in ("HorizontalPodAutoscaler", "LagController"):
        if content["kind"] == "LagController":
            threshold = int(spec["lagThreshold"])
        return Bounds(int(spec.get("minReplicas", 1)), int(spec["maxReplicas"]), threshold)
    replicas = [int(spec["replicas"]), *(int(step["replicas"]) for step in spec["steps"] if "replicas" in step)]
    return Bounds(min(replicas), max(replicas), None)
