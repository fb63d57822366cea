"""Reactions: that of each burst that the group met at its floor, from the burst's start until a new pod is at work."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.reaction.step import first_pod_at_work
from lab.record.store import Record

RISES = ("burst", "spike")  # phases that begin with a step of the rate


class Reactions(Measure):
    """The reactions to the bursts that began with the group at its floor. The others found pods that were there already.

    ``span_s`` is the largest less the smallest time from the HPA's last sync to a burst. It is near the sync period where
    bursts come at any point of it, and near 0 where they come in step with syncs.
    """

    bursts = number("bursts", "bursts that the group met at its floor")
    fastest_s = number("s", "fastest reaction of the bursts met at the floor")
    median_s = number("s", "median reaction of the bursts met at the floor")
    slowest_s = number("s", "slowest reaction of the bursts met at the floor")
    span_s = number("s", "span of the points of the HPA's sync period at which bursts came")


@dataclass(frozen=True)
class BurstReaction:
    """The reaction to burst ``number`` of a profile, which began at ``start`` (epoch s) with ``before`` pods wanted.

    ``decided_s`` after that the watch saw the first step up, and ``at_work_s`` after that ``pod`` was the first one created
    since the step that was both Ready and assigned a partition. ``since_sync_s`` before the burst was the HPA's last sync;
    None where there is no HPA.
    """

    number: int
    start: float
    before: int
    decided_s: float
    at_work_s: float
    pod: str
    since_sync_s: float | None


def burst_reactions(record: Record) -> list[BurstReaction]:
    """The reaction to each burst that began with the group at its floor and was followed by a step up within the burst.

    Raises :class:`NoData` where a step up brought no pod to work before the next burst began.
    """
    spans = record.phases[record.phases["label"].isin(RISES)]
    starts = [*spans["start"], float("inf")]
    syncs = [sync.at for sync in record.hpa_syncs] if record.policy.hpa else []
    found = []
    for place, (start, end) in enumerate(zip(spans["start"], spans["end"], strict=True), 1):
        before = record.wanted_at(start)
        ups = [change.t for change in record.scalings if start < change.t <= end and change.after > change.before]
        if before != record.policy.min_replicas or not ups:
            continue
        pod, at_work = first_pod_at_work(record, ups[0], starts[place])
        last = max((t for t in syncs if t <= start), default=None)
        since = None if last is None else start - last
        found.append(BurstReaction(place, start, before, ups[0] - start, at_work - start, pod, since))
    return found


@measure
def reactions(record: Record) -> Reactions:
    """Measure the bursts; no data without one that the group met at its floor and answered with a step up."""
    if not (found := burst_reactions(record)):
        raise NoData("no burst that began at the floor and was answered with a step up")
    times = [one.at_work_s for one in found]
    points = [one.since_sync_s for one in found if one.since_sync_s is not None]
    return Reactions(
        bursts=len(found),
        fastest_s=min(times),
        median_s=median(times),
        slowest_s=max(times),
        span_s=max(points) - min(points) if points else None,
    )
