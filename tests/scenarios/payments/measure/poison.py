"""The stall of a partition whose message never succeeds, and the pods that it buys."""

from __future__ import annotations

from lab.errors import NoData
from lab.inputs.failures import Place
from lab.judge.measure import Measure, measure, number
from lab.measure.cost import cost
from lab.record.store import Record


class PoisonStall(Measure):
    """The partition whose message never succeeds, at the trial's end. A ``progress`` of 0 is a stall."""

    progress = number("messages", "messages of the poisoned partition committed past the poison")
    waiting = number("messages", "messages waiting on the poisoned partition")
    others = number("messages", "messages waiting on all other partitions")
    most = number("pods", "most replicas")
    scale_ups = number("steps", "scale-ups")
    pod_minutes = number("pod-minutes", "pod-minutes")
    useless = number("pod-minutes", "pod-minutes above the policy's floor")


@measure
def poison_stall(record: Record) -> PoisonStall:
    """Measure the poisoned partition. There is no data without a poison, and without offsets."""
    place = Place.parse(record.inputs.workload.poison)
    if place is None:
        raise NoData("the workload has no poison")
    partition, offset = place.partition, place.offset
    offsets = record.trial.offsets
    if partition not in offsets:
        raise NoData(f"no offsets of partition {partition} at the end of the trial")
    waiting = {number: one.lag for number, one in offsets.items()}
    found, floor = cost(record), record.policy.min_replicas
    begun, ended = record.profile_start, record.end
    changes = record.scalings
    return PoisonStall(
        progress=max(0, (offsets[partition].committed or 0) - offset),
        waiting=waiting[partition],
        others=sum(waiting.values()) - waiting[partition],
        most=int(record.replicas["desired"].max()),
        scale_ups=sum(change.after > change.before and change.t >= begun for change in changes),
        pod_minutes=float(found.pod_minutes),
        useless=_above(record, floor, begun, ended) / 60,
    )


def _above(record: Record, floor: int, start: float, end: float) -> float:
    """Pod-seconds wanted above ``floor`` from ``start`` to ``end``."""
    curve = record.replicas
    times = [*curve["t"].tolist()[1:], end]
    spans = zip(curve["t"].tolist(), times, curve["desired"].tolist(), strict=True)
    return float(sum(max(0.0, min(until, end) - max(t, start)) * max(0, wanted - floor) for t, until, wanted in spans))
