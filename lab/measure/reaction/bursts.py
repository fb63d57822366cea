"""Reactions: that of each burst that the group met at its floor, from its start to a new pod's first receipt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.reaction.step import first_work
from lab.record.store import Record

RISES = ("burst", "spike")  # phases that begin with a step of the rate


class BurstsMet(Measure):
    """The bursts that began with the group at its floor. Others found pods that were there.

    ``span_s`` is the shortest part of the HPA's sync period that has all points at which bursts came. The period begins anew
    as it ends, so a burst just before a sync and one just after it are near each other. It is near the period where bursts
    come at any point of it, and near 0 where they come in step with syncs.
    """

    bursts = number("bursts", "bursts that the group met at its floor")
    span_s = number("s", "span of the points of the HPA's sync period at which bursts came")


class Reactions(Measure):
    """The reactions to those bursts: each from the burst's start to a new pod's first receipt."""

    fastest_s = number("s", "fastest reaction of the bursts met at the floor")
    median_s = number("s", "median reaction of the bursts met at the floor")
    slowest_s = number("s", "slowest reaction of the bursts met at the floor")


@dataclass(frozen=True)
class BurstMet:
    """Burst ``number`` of a profile, which began at ``start`` (epoch s) with ``before`` pods wanted.

    ``step`` (epoch s) is when the watch saw the first step up, and ``until`` when the next burst began. ``since_sync_s`` before
    the burst was the HPA's last sync; None without an HPA.
    """

    number: int
    start: float
    before: int
    step: float
    until: float
    since_sync_s: float | None


@dataclass(frozen=True)
class BurstReaction:
    """The reaction to a ``burst``: ``at_work_s`` after its start ``pod``, created since the step up, had its first receipt."""

    burst: BurstMet
    at_work_s: float
    pod: str


def bursts_at_floor(record: Record) -> list[BurstMet]:
    """Each burst that began with the group at its floor, with the first step up after it.

    Raises :class:`NoData` for none, and where no step up followed one before the next: its reaction is not known, and without
    it the slowest of the others would say too little.
    """
    spans = record.phases[record.phases["label"].isin(RISES)]
    starts = [*spans["start"], float("inf")]
    syncs = [sync.at for sync in record.hpa_syncs] if record.policy.hpa else []
    found = []
    for place, start in enumerate(spans["start"], 1):
        before = record.wanted_at(start)
        if before != record.policy.min_replicas:
            continue
        ups = [change.t for change in record.scalings if start < change.t <= starts[place] and change.after > change.before]
        if not ups:
            raise NoData(f"burst {place} met the floor, and no step up followed before the next burst")
        last = max((t for t in syncs if t <= start), default=None)
        since = None if last is None else start - last
        found.append(BurstMet(place, start, before, ups[0], starts[place], since))
    if not found:
        raise NoData("no burst that began at the floor")
    return found


def burst_reactions(record: Record) -> list[BurstReaction]:
    """The reaction to each of :func:`bursts_at_floor`.

    Raises :class:`NoData` where a step up brought no pod to work before the next burst began, and without receipts.
    """
    found = []
    for burst in bursts_at_floor(record):
        pod, at_work = first_work(record, burst.step, burst.until)
        found.append(BurstReaction(burst, at_work - burst.start, pod))
    return found


@measure
def bursts_met(record: Record) -> BurstsMet:
    """Count the bursts; no data for none."""
    found = bursts_at_floor(record)
    points = [one.since_sync_s for one in found if one.since_sync_s is not None]
    return BurstsMet(bursts=len(found), span_s=_span_s(points, record.scale.hpa_sync_s) if points else None)


def _span_s(points: Iterable[float], period_s: float) -> float:
    """The shortest stretch of a circle of ``period_s`` that has all ``points``: all of it but the largest gap."""
    places = sorted(point % period_s for point in points)
    gaps = [later - earlier for earlier, later in pairwise([*places, places[0] + period_s])]
    return period_s - max(gaps)


@measure
def reactions(record: Record) -> Reactions:
    """Measure the bursts; no data where :func:`burst_reactions` has none."""
    times = [one.at_work_s for one in burst_reactions(record)]
    return Reactions(fastest_s=min(times), median_s=median(times), slowest_s=max(times))
