"""Cost: what the replicas were, in pod-minutes, and how much of it was idle."""

from __future__ import annotations

from dataclasses import dataclass

from lab.measure import curves
from lab.trial.record import NoData, Record


@dataclass(frozen=True)
class Cost:
    """Pod-minutes as seen and in real time; ``idle_ratio`` is the share in which no batch was being processed."""

    pod_minutes: float
    real_pod_minutes: float
    idle_ratio: float
    pods: int


def cost(record: Record) -> Cost:
    """Sum the lives of all consumer pods, from created to gone (or to the record's end)."""
    born: dict[str, float] = {}
    gone: dict[str, float] = {}
    for t, event, item in curves.objects(record, "Pod"):
        if item["metadata"].get("labels", {}).get("app") != "consumer":
            continue
        name = item["metadata"]["name"]
        born.setdefault(name, t)
        if event == "DELETED":
            gone[name] = t
    if not born:
        raise NoData("no consumer pod was seen")
    end = float(record.trial["times"]["ended"])
    seconds = sum(gone.get(name, end) - at for name, at in born.items())
    batches = record.receipts.drop_duplicates(["pod", "start", "end"])
    busy = float((batches["end"] - batches["start"]).sum())
    factor = float(record.trial["inputs"]["scale"]["time"])
    return Cost(seconds / 60, seconds / 60 * factor, 1 - busy / seconds, len(born))
