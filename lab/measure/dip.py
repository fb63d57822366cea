"""Dip: what a change of the wanted replicas costs the group's rate.

**Step.** Any change of the wanted replicas, decreed or by an autoscaler, up or down. It lasts until 5 s after the last thing
that followed it, or until the next step. What follows it are changes of the Ready pods and handovers of partitions. A decreed
step lasts as long as it was observed.

**Reference.** The rate is that of receipts, in rolling seconds, of which one begins every 50 ms. The reference of a second is
the best second that lies within the 3 s before it. These are seconds of the clock at any scale: no scale compresses a join, a
heartbeat or a rebalance. Once the rate is below 95 % of its reference, the reference is held until the rate is back at that.
So a long trough is not its own reference, and a trough counts wherever it lies: no window is put around a rebalance.

**Fewer pods.** Of n pods at work in the best second, those that are Ready no more are left out: the reference of the others is
best x remaining / n. So a pod that goes is no dip, and a smaller group has to do what its pods did. A pod that was told to go
may work on for a second. Pods without a partition don't count.

**Work.** A second is judged only if every partition has work throughout it. Samples of lag tell, from the last one before the
second to the first one after it. In each of them a partition's lag has to exceed what receipts say was processed of it in the
commit interval and the poll before: so much of its lag may be done and not yet committed. It counts from its first receipt on.
Where no fall is seen, and less than half of the step up to a second after its last handover is judged, there is no dip, not 0.

**Depth.** The share (0 to 1) of its reference that the worst second lacks. A fall begins when its first second below 95 % is
over. It belongs to the step in which it begins, and is followed to its end, also into the next step. Of a fall that began in
no step, each second that is over in one belongs to that step: a small fall before the step does not hide a deep one in it.

**Noise.** The depth of the worst second that belongs to no step of the same record: nothing happened to the group in it.

**Recovery.** Falls with less than 5 s of judged seconds between them are one: the group was not back for good. Each counts from
its cause until the rate is back at 95 % of the reference of its deepest second. The cause is the last of these before the fall,
and after the fall before it: the step itself, or a member that subscribes or leaves. Where none is there the fall is its own
cause. A rate that sinks slowly below 95 % of the reference of the step's deepest second is a fall, too. The start of 20
processes and the join of their members 45 s later are two falls, as they are to a reader. The rate is back
when it is first seen so: seconds that can't be judged show nothing. The step's is the longest.

**Forgone.** The integral of (reference - rate) over all falls of the step, where the rate is below 95 % of the reference.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.fall import BACK, LOOKBACK_S, SECOND_S, Falls, Places, falls
from lab.measure.rebalance import moved_partitions
from lab.measure.throughput import GRID_S, Array, Throughput
from lab.record.store import Record

SETTLED_S = 5.0  # after the last thing that followed a step: the time that an objective gives a group to recover
ENOUGH = 0.5  # of the time from a step to a second after its last handover
CAUSES = ("subscribed", "left", "draining")  # what a member reports as it comes and goes
COMBINED = ("depth", "recovery_s", "forgone", "moved", "settle_s")


@dataclass(frozen=True)
class Dip:
    """One step of ``kind`` (up, down, control, other) from ``before`` to ``after`` replicas at ``t`` until ``until`` (epoch s).

    ``judged_s`` are its seconds with work for every partition, ``dry_s`` those without. ``reference`` (messages/s),
    ``depth`` (0 to 1) are those of its deepest second, ``recovery_s`` of its longest fall, ``forgone`` (messages) of all; None
    where no second is judged, and 0 where the rate was never below 95 %. ``recovery_s`` is inf where the last judged second is
    below. ``noise`` is that of the record, None with less than 3 s of work that belong to no step.

    ``moved`` partitions have another owner after the step, or none. ``settle_s`` is from ``t`` to the last handover, None
    without one and for a control step.
    """

    kind: str
    t: float
    until: float
    before: int
    after: int
    judged_s: float
    dry_s: float
    reference: float | None
    depth: float | None
    recovery_s: float | None
    forgone: float | None
    noise: float | None
    moved: int
    settle_s: float | None


class MedianStep(Measure):
    """The median of each figure of :class:`Dip` over the steps that have a depth."""

    steps = number("steps", "steps that are judged")
    depth = number("of the best second before", "median dip of a step")
    recovery_s = number("s", "median recovery to 95 %", UNSCALED)
    forgone = number("messages", "messages forgone in the median step", UNSCALED)
    moved = number("partitions", "partitions moved in the median step")
    settle_s = number("s", "median time to the last handover", UNSCALED)


class WorstStep(Measure):
    """The largest of each figure of :class:`Dip` over the steps that have a depth; ``unjudged`` steps have none."""

    steps = number("steps", "steps that are judged")
    unjudged = number("steps", "steps without a second of work for every partition")
    depth = number("of the best second before", "worst dip of a step")
    recovery_s = number("s", "slowest recovery to 95 %", UNSCALED)
    forgone = number("messages", "most messages forgone in a step", UNSCALED)
    moved = number("partitions", "most partitions moved in a step")
    settle_s = number("s", "longest time to the last handover", UNSCALED)
    noise = number("of the best second before", "worst fall of a second in which nothing happened")


class _Step(NamedTuple):
    kind: str
    t: float
    before: int
    after: int
    until: float


def dips(record: Record, *others: float) -> tuple[Dip, ...]:
    """Measure every step, in order; ``others`` are times (epoch s) of something else that was done to the group.

    Raises :class:`NoData` without a step, like :func:`lab.measure.fall.falls`, and where the replicas were never seen.
    """
    steps = _steps(record, others)
    if not steps:
        raise NoData("the wanted replicas never changed")
    found, events = falls(record), record.group_events
    owner = _owners(steps, found.shown[found.begun])
    owner = np.where(owner < 0, _owners(steps, found.shown), owner)
    depths = np.clip(1 - found.seconds.rates / np.maximum(found.able(), 1e-9), 0, 1)
    quiet = depths[found.judged & (owner < 0)]
    noise = float(quiet.max()) if len(quiet) * GRID_S >= LOOKBACK_S else None
    causes = np.sort(events.loc[events["event"].isin(CAUSES), "t"].to_numpy(dtype=np.float64))
    return tuple(
        _dip(record, step, found, np.flatnonzero(found.judged & (owner == place)), depths, causes, noise)
        for place, step in enumerate(steps)
    )


@measure
def worst_dip(record: Record, kind: str = "") -> WorstStep:
    """The worst over the steps of ``kind`` of one record, or over all. There is no data where none of them is judged."""
    return _worst(dips(record), kind)


@measure
def worst_step(dips: Iterable[Dip], kind: str = "") -> WorstStep:
    """The worst over the steps of ``kind``, or over all. There is no data where none of them is judged."""
    return _worst(dips, kind)


@measure
def median_step(dips: Iterable[Dip], kind: str = "") -> MedianStep:
    """The median over the steps of ``kind``, or over all. There is no data where none of them is judged."""
    chosen = _judged(dips, kind)
    return MedianStep(steps=len(chosen), **_each(chosen, median))


@quantity("s", "time of steps without work for every partition", UNSCALED)
def dry_time(dips: Iterable[Dip]) -> float:
    """Of all steps together. There is no data without a step."""
    steps = list(dips)
    if not steps:
        raise NoData("the wanted replicas never changed")
    return sum(one.dry_s for one in steps)


def rate_traces(record: Record, before_s: float = 2.0) -> pd.DataFrame:
    """The rate around each step that is judged: columns kind, step, t (s since it), share (of the reference, rolling seconds).

    ``t`` is the middle of a second, from ``before_s`` before the step until its end. Raises :class:`NoData` like :func:`dips`.
    """
    done, frames = Throughput(record.receipts), []
    for count, dip in enumerate(dips(record), 1):
        if dip.reference:
            starts, rates = done.rolling(dip.t - before_s, dip.until, SECOND_S)
            middle = starts + SECOND_S / 2 - dip.t
            frames.append(pd.DataFrame({"kind": dip.kind, "step": count, "t": middle, "share": rates / dip.reference}))
    if not frames:
        raise NoData("no step has a second of work for every partition")
    return pd.concat(frames, ignore_index=True)


def _worst(dips: Iterable[Dip], kind: str) -> WorstStep:
    several = list(dips)
    chosen = _judged(several, kind)
    unjudged = sum(one.kind == kind or not kind for one in several) - len(chosen)
    noise = max((one.noise for one in chosen if one.noise is not None), default=None)
    return WorstStep(steps=len(chosen), unjudged=unjudged, noise=noise, **_each(chosen, max))


def _judged(dips: Iterable[Dip], kind: str) -> list[Dip]:
    """The steps of ``kind`` that have a depth. Raises :class:`NoData` for none."""
    several = [one for one in dips if one.kind == kind or not kind]
    chosen = [one for one in several if one.depth is not None]
    if not chosen:
        word = f"{kind} step" if kind else "step"
        why = f"too little of {len(several)} had a rate before it and work for every partition" if several else "there is none"
        raise NoData(f"no {word} is judged: {why}")
    return chosen


def _each(dips: Iterable[Dip], combine: Callable[[list[float]], float]) -> dict[str, float | None]:
    several = {name: [getattr(one, name) for one in dips] for name in COMBINED}
    known = {name: [value for value in values if value is not None] for name, values in several.items()}
    return {name: combine(values) if values else None for name, values in known.items()}


def _steps(record: Record, others: Iterable[float]) -> list[_Step]:
    """The decreed steps, else every change of the wanted replicas since the producer was applied; and the ``others``."""
    found = [_Step(one.kind, one.t, one.before, one.after, one.until) for one in record.trial.steps]
    happened = np.array([change.t for change in record.handovers], dtype=np.float64)
    if not found:
        changes = [one for one in record.scalings if one.t > record.driven]
        found = [_Step("up" if one.after > one.before else "down", *one, math.inf) for one in changes]
        curve = record.replicas
        happened = np.append(happened, curve.loc[curve["ready"].diff() != 0, "t"])
    found += [_Step("other", at, record.wanted_at(at), record.wanted_at(at), math.inf) for at in others]
    found.sort(key=lambda one: one.t)
    following = [*(one.t for one in found), record.end][1:]
    return [one._replace(until=_until(one, then, happened)) for one, then in zip(found, following, strict=True)]


def _owners(steps: list[_Step], times: Array) -> Places:
    """The place of the step that each of ``times`` is in, -1 for none."""
    last = np.searchsorted([step.t for step in steps], times, side="right") - 1
    return np.where(times > np.array([step.until for step in steps])[last], -1, last)


def _until(step: _Step, then: float, happened: Array) -> float:
    if math.isfinite(step.until):
        return min(step.until, then)
    within = happened[(happened >= step.t) & (happened < then)]
    return min(then, float(within.max(initial=step.t)) + SETTLED_S)


def _dip(record: Record, step: _Step, found: Falls, own: Places, depths: Array, causes: Array, noise: float | None) -> Dip:
    """The dip of ``step``, to which the seconds at the places ``own`` belong."""
    changes = [change.t for change in record.handovers if step.t <= change.t <= step.until]
    dry = found.dry & (found.seconds.starts >= step.t) & (found.shown <= step.until)
    over = max([step.t, *changes]) + SECOND_S
    seen_s = float((found.judged & (found.shown >= step.t) & (found.shown <= over)).sum()) * GRID_S  # they may end before
    reference, depth, back, forgone = None, None, None, None
    deepest = own[np.argmax(depths[own])] if len(own) else None
    if deepest is not None and (depths[deepest] > 1 - BACK or seen_s >= ENOUGH * (over - step.t)):
        reference, depth = float(found.able()[deepest]), float(depths[deepest])
        back, forgone = _recovery(found, own, depths, np.append(step.t, causes[causes > step.t]))
    return Dip(
        kind=step.kind,
        t=step.t,
        until=step.until,
        before=step.before,
        after=step.after,
        judged_s=len(own) * GRID_S,
        dry_s=float(dry.sum()) * GRID_S,
        reference=reference,
        depth=depth,
        recovery_s=back,
        forgone=forgone,
        noise=noise,
        moved=moved_partitions(record.handovers, step.t, step.until),
        settle_s=changes[-1] - step.t if changes and step.kind != "control" else None,
    )


def _recovery(found: Falls, own: Places, depths: Array, causes: Array) -> tuple[float, float]:
    """The longest recovery of the falls in a step, s, and what is forgone in all, messages.

    The seconds at the places ``own`` belong to the step. Its ``causes`` are sorted times, the first of which is the step's.
    """
    judged, rates = np.flatnonzero(found.judged), found.seconds.rates
    after = judged[(judged > own[-1]) & (judged <= own[-1] + LOOKBACK_S / GRID_S)]
    longest = forgone = 0.0
    since = -math.inf  # the end of the fall before
    deepest = own[np.argmax(depths[own])]
    of_it = found.able(found.references[deepest])  # a rate that sinks slowly is never far below its own reference
    sunk = own[(own >= found.begun[deepest]) & (rates[own] < BACK * of_it[own])]
    left = np.union1d(own[depths[own] > 1 - BACK], sunk)
    while len(left):
        begun = max(found.begun[left[0]], own[0])
        fall = _without_pause(left, judged)
        worst = fall[np.argmax(depths[fall])]
        able = found.able(found.references[worst]) if depths[worst] > 1 - BACK else of_it
        later = np.append(judged[(judged >= begun) & (judged <= own[-1])], after[:1])
        below = _without_pause(np.union1d(fall, later[rates[later] < BACK * able[later]]), judged)
        forgone += float(np.maximum(able[below] - rates[below], 0).sum() * GRID_S)
        known = causes[(causes > since) & (causes <= found.shown[begun])]
        seen = later[later > below[-1]]
        since = float(found.shown[seen[0] - 1]) if len(seen) else math.inf
        longest = max(longest, since - float(known[-1] if len(known) else found.seconds.starts[begun]))
        left = left[left > below[-1]]
    return longest, forgone


def _without_pause(places: Places, judged: Places) -> Places:
    """The first of ``places`` with less than SETTLED_S of ``judged`` places between one and the next."""
    between = np.diff(np.searchsorted(judged, places)) - 1
    return np.split(places, np.flatnonzero(between * GRID_S >= SETTLED_S) + 1)[0]
