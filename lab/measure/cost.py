"""Cost: what the replicas were, in pod-minutes, and how much of it was idle."""

from __future__ import annotations

from lab.judge.measure import Measure, measure, number
from lab.record.store import Record


class Cost(Measure):
    """What the consumer pods cost. ``pod_minutes`` are as seen; a pod is idle while it processes no batch."""

    pod_minutes = number("pod-minutes", "pod-minutes")
    real_pod_minutes = number("pod-minutes", "pod-minutes at real time")
    idle_ratio = number("of pod time", "idle share of pod time")
    pods = number("pods", "pods that ever were")


@measure
def cost(record: Record) -> Cost:
    """Sum the lives of all consumer pods; no data when there was none."""
    lives = record.lives()
    seconds = sum(lives.values())
    batches = record.receipts.drop_duplicates(["pod", "start", "end"])
    busy = float((batches["end"] - batches["start"]).sum())
    return Cost(
        pod_minutes=seconds / 60,
        real_pod_minutes=seconds / 60 * record.scale.time,
        idle_ratio=1 - busy / seconds,
        pods=len(lives),
    )
