"""Dip: what a scale step costs in throughput while the group rebalances, and what it moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.throughput import GRID_S, Array, Throughput
from lab.record.reports import Report
from lab.record.store import Record
from lab.record.trial import Step

BEFORE_S, AFTER_S = 2.0, 1.5  # the times over which the rates before and after a step are means
COARSE_S, FINE_S = 1.0, 0.2
RECOVERED = 0.95
COMPARED = ("depth_1s", "depth_200ms", "recovery_s", "forgone", "cleared", "moved")  # the figures that are combined over steps


@dataclass(frozen=True)
class Dip:
    """One step from ``before`` to ``after`` replicas at ``t`` (epoch s), observed until its end.

    ``baseline`` and ``after_rate`` are in messages/s. ``depth_1s`` and ``depth_200ms`` are the shares of the baseline (0 to 1)
    that the worst window of 1 s and of 200 ms lost. The windows roll on a grid of 50 ms and lie wholly within the step. The
    worst rolling window is slightly harsher than the worst aligned bin, because aligned bins may cut a dip in two.

    ``recovery_s`` is from the start of the first 1 s window below 95 % of the baseline to the end of the last one. It is 0 if
    no window is below, and inf if the step's last window is. ``forgone`` messages fell short of the baseline between the
    first and the last 200 ms window below 95 %. ``cleared`` messages exceeded it in the whole step. Both include the noise of a
    rate over 200 ms.

    ``moved`` partitions have another owner after the step, or none. ``touched`` partitions were handed over at least once.
    ``settle_s`` is from ``t`` to the last handover. It is None for a control step and without a handover. ``dry`` partitions
    had no lag in some sample, so the step is not at saturation. It is None without a sample. Depths, recovery, forgone and
    cleared are NaN when the group consumed nothing before the step, or when the step is shorter than the window.
    """

    t: float
    kind: str
    before: int
    after: int
    baseline: float
    after_rate: float
    depth_1s: float
    depth_200ms: float
    recovery_s: float
    forgone: float
    cleared: float
    moved: int
    touched: int
    settle_s: float | None
    dry: int | None


class MedianStep(Measure):
    """The median of each figure of :class:`Dip` over steps of one kind. ``settle_s`` is missing if no step has one."""

    steps = number("steps", "steps")
    depth_1s = number("of the rate before", "median dip in a rolling second")
    depth_200ms = number("of the rate before", "median dip in rolling 200 ms")
    recovery_s = number("s", "median recovery to 95 %", UNSCALED)
    forgone = number("messages", "messages forgone in the median step", UNSCALED)
    cleared = number("messages", "messages cleared in the median step", UNSCALED)
    moved = number("partitions", "partitions moved in the median step")
    settle_s = number("s", "median time to the last handover", UNSCALED)
    after_rate = number("messages/s", "median rate after a step")


class WorstStep(Measure):
    """The worst of each figure of :class:`Dip` over steps of one kind: the smallest ``cleared``, the largest of all others."""

    depth_1s = number("of the rate before", "worst dip in a rolling second")
    depth_200ms = number("of the rate before", "worst dip in rolling 200 ms")
    recovery_s = number("s", "slowest recovery to 95 %", UNSCALED)
    forgone = number("messages", "most messages forgone in a step", UNSCALED)
    cleared = number("messages", "fewest messages cleared in a step", UNSCALED)
    moved = number("partitions", "most partitions moved in a step")
    settle_s = number("s", "longest time to the last handover", UNSCALED)


def dips(record: Record) -> tuple[Dip, ...]:
    """Measure every decreed step; none in a trial whose steps are an autoscaler's.

    An autoscaler's pods join when they have started, long after its step. So its dips are read around each rebalance, by
    :mod:`lab.measure.scaling_cost`.

    A smaller group is meant to process less. So the baseline of a "down" step is the smaller of the rate before it and the
    rate at its end. It is never less than the remaining pods' share of the rate before. Without that floor, a group that
    stopped for good would have no dip at all.
    """
    done = Throughput(record.receipts)
    changes = record.handovers
    lags = record.partition_lag
    partitions = record.inputs.partitions
    return tuple(_dip(step, done, changes, lags, partitions) for step in record.trial.steps)


@measure
def median_step(dips: Iterable[Dip], kind: str) -> MedianStep:
    """The median over the steps of ``kind`` ("up", "down", "control").

    There is no data without such a step, and when one of them has no dip.
    """
    chosen = _of_kind(dips, kind)
    settled = [dip.settle_s for dip in chosen if dip.settle_s is not None]
    return MedianStep(
        steps=len(chosen),
        **{name: median(float(getattr(dip, name)) for dip in chosen) for name in COMPARED},
        settle_s=median(settled) if settled else None,
        after_rate=median(dip.after_rate for dip in chosen),
    )


@measure
def worst_step(dips: Iterable[Dip], kind: str) -> WorstStep:
    """The worst over the steps of ``kind`` ("up", "down", "control"). There is no data as for :func:`median_step`."""
    chosen = _of_kind(dips, kind)
    figures = {name: [float(getattr(dip, name)) for dip in chosen] for name in COMPARED}
    worst = {name: min(values) if name == "cleared" else max(values) for name, values in figures.items()}
    return WorstStep(**worst, settle_s=max((dip.settle_s for dip in chosen if dip.settle_s is not None), default=None))


def _of_kind(dips: Iterable[Dip], kind: str) -> list[Dip]:
    """The steps of ``kind``. Raises :class:`NoData` when there is none, and when one of them has no dip."""
    chosen = [dip for dip in dips if dip.kind == kind]
    if not chosen:
        raise NoData(f"no {kind} step was decreed")
    for dip in chosen:
        if any(map(math.isnan, (dip.depth_1s, dip.depth_200ms))):
            raise NoData(f"the {kind} step at {dip.t:.1f} has no dip: nothing was consumed before it, or it is too short")
    return chosen


@quantity("partitions", "partitions that ran dry during a step")
def dry_partitions(dips: Iterable[Dip]) -> int:
    """Dry partitions in all steps together. The number is 0 if every step was taken at saturation.

    There is no data when there is no step, and when the lag was not sampled during a step.
    """
    counts = [dip.dry for dip in dips]
    if not counts or None in counts:
        raise NoData("no step was taken" if not counts else "a step without a sample of kafka_consumergroup_lag")
    return sum(count for count in counts if count is not None)


def rate_traces(record: Record) -> pd.DataFrame:
    """The rate around each step: columns kind, step (its number), t (s since it), share (of the baseline, over 200 ms)."""
    done = Throughput(record.receipts)
    frames = []
    for count, (step, dip) in enumerate(zip(record.trial.steps, dips(record), strict=True), 1):
        starts, rates = done.rolling(dip.t - BEFORE_S, step.until, FINE_S)
        middle = starts + FINE_S / 2 - dip.t
        frames.append(pd.DataFrame({"kind": dip.kind, "step": count, "t": middle, "share": rates / dip.baseline}))
    if not frames:
        raise NoData("no step was taken")
    return pd.concat(frames, ignore_index=True)


def _dip(step: Step, done: Throughput, changes: Sequence[Report], lags: pd.DataFrame, partitions: int) -> Dip:
    baseline, after_rate = done.rate(step.t - BEFORE_S, step.t), done.rate(max(step.t, step.until - AFTER_S), step.until)
    if step.kind == "down":
        working_before, working_after = min(step.before, partitions), min(step.after, partitions)
        baseline = min(baseline, max(after_rate, baseline * working_after / working_before))
    starts, coarse = done.rolling(step.t, step.until, COARSE_S)
    _, fine = done.rolling(step.t, step.until, FINE_S)
    below = np.flatnonzero(fine < RECOVERED * baseline)
    fallen = fine[below[0] : below[-1] + 1] if len(below) else fine[:0]
    known = baseline > 0 and len(coarse) > 0
    within = [change for change in changes if step.t <= change.t <= step.until]
    seen = lags[lags["t"].between(step.t, step.until)]
    return Dip(
        t=step.t,
        kind=step.kind,
        before=step.before,
        after=step.after,
        baseline=baseline,
        after_rate=after_rate,
        depth_1s=depth(coarse, baseline) if known else math.nan,
        depth_200ms=depth(fine, baseline) if known else math.nan,
        recovery_s=recovery(starts, coarse, baseline) if known else math.nan,
        forgone=float(np.maximum(0, baseline - fallen).sum() * GRID_S) if known else math.nan,
        cleared=float(np.maximum(0, fine - baseline).sum() * GRID_S) if known else math.nan,
        moved=_moved(changes, step.t, step.until),
        touched=len({partition for change in within for partition in change.partitions}),
        settle_s=within[-1].t - step.t if within and step.kind != "control" else None,
        dry=int(seen.loc[seen["lag"] <= 0, "partition"].nunique()) if len(seen) else None,
    )


def depth(rates: Array, baseline: float) -> float:
    """The share of ``baseline`` (messages/s) that the least of ``rates`` lacks, 0 to 1."""
    return max(0.0, 1 - float(rates.min()) / baseline)


def recovery(starts: Array, rates: Array, baseline: float) -> float:
    """:attr:`Dip.recovery_s` of the ``rates`` (messages/s) of windows of 1 s that begin at ``starts`` (epoch s)."""
    below = np.flatnonzero(rates < RECOVERED * baseline)
    if not len(below):
        return 0.0
    if below[-1] == len(rates) - 1:
        return math.inf
    return float(starts[below[-1]] + COARSE_S - starts[below[0]])


def _moved(changes: Iterable[Report], start: float, end: float) -> int:
    """Partitions whose owner at ``end`` is not the one last assigned before ``start``.

    A partition of a pod that died silently stays that pod's until another pod is assigned it, as the group sees it.
    """
    before: dict[int, str] = {}
    now: dict[int, str | None] = {}
    for change in changes:
        if change.t > end:
            break
        for partition in change.partitions:
            if change.event == "assigned":
                now[partition] = change.pod
                if change.t < start:
                    before[partition] = change.pod
            elif now.get(partition) == change.pod:
                now[partition] = None
    return sum(now[partition] != pod for partition, pod in before.items())
