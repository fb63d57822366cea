"""Cost: what the replicas were, in pod-minutes, and how much of it was idle."""

from __future__ import annotations

from dataclasses import dataclass

from lab.record.store import Record


@dataclass(frozen=True)
class Cost:
    """Pod-minutes as seen and in real time; ``idle_ratio`` is the share in which no batch was being processed."""

    pod_minutes: float
    real_pod_minutes: float
    idle_ratio: float
    pods: int


def cost(record: Record) -> Cost:
    """Sum the lives of all consumer pods. Raises :class:`NoData` when there was none."""
    lives = record.lives()
    seconds = sum(lives.values())
    batches = record.receipts.drop_duplicates(["pod", "start", "end"])
    busy = float((batches["end"] - batches["start"]).sum())
    factor = record.scale.time
    return Cost(seconds / 60, seconds / 60 * factor, 1 - busy / seconds, len(lives))
