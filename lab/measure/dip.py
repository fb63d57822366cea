"""Dip: what a scale step costs in throughput while the group rebalances, and what it moved."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.record.reports import Handover
from lab.record.store import Record

BEFORE_S, AFTER_S = 2.0, 1.5  # what the rates before and after a step are the means of
WATCHED_S = 10.0  # a step nobody decreed is watched for so long at most
GRID_S = 0.05
COARSE_S, FINE_S = 1.0, 0.2
RECOVERED = 0.95
COMPARED = ("depth_1s", "depth_200ms", "recovery_s", "forgone", "cleared", "moved")  # figures of a step, of one kind

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Dip:
    """One step from ``before`` to ``after`` replicas at ``t`` (epoch s), observed until its end.

    ``baseline`` and ``after_rate`` in messages/s. Depths are shares of the baseline (0 to 1) that the worst window of 1 s
    and of 200 ms lost. Windows roll on a grid of 50 ms and lie wholly within the step: the worst of them is a slightly
    harsher statistic than the worst of aligned bins, which may cut a dip in two. ``recovery_s`` is from the start of the
    first 1 s window below 95 % of the baseline to the end of the last; 0 if none is, inf if the step's last one is.
    ``forgone`` messages fell short of the baseline between the first and last 200 ms window below 95 %, ``cleared`` ones
    exceeded it in the whole step; both add up the noise of a rate over 200 ms too. Partitions ``moved`` to another owner
    or to none; ``touched`` ones were handed over at least once. ``settle_s`` is from ``t`` to the last handover, None
    when there was none and for a control step. ``dry`` partitions had no lag in some sample: such a step is not at
    saturation. It is None without a sample. Depths, recovery, forgone and cleared are NaN when the group consumed nothing
    before the step, or the step is shorter than the window.
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
    """Each figure of :class:`Dip` as the median over steps of one kind; ``settle_s`` is missing if no step has one."""

    steps = number("steps", "steps")
    depth_1s = number("of the rate before", "median dip in a rolling second")
    depth_200ms = number("of the rate before", "median dip in rolling 200 ms")
    recovery_s = number("s", "median recovery to 95 %")
    forgone = number("messages", "messages forgone in the median step")
    cleared = number("messages", "messages cleared in the median step")
    moved = number("partitions", "partitions moved in the median step")
    settle_s = number("s", "median time to the last handover")
    after_rate = number("messages/s", "median rate after a step")


class WorstStep(Measure):
    """Each figure of :class:`Dip` as the worst over steps of one kind: the least of ``cleared``, the most of all others."""

    depth_1s = number("of the rate before", "worst dip in a rolling second")
    depth_200ms = number("of the rate before", "worst dip in rolling 200 ms")
    recovery_s = number("s", "slowest recovery to 95 %")
    forgone = number("messages", "most messages forgone in a step")
    cleared = number("messages", "fewest messages cleared in a step")
    moved = number("partitions", "most partitions moved in a step")
    settle_s = number("s", "longest time to the last handover")


def dips(record: Record) -> tuple[Dip, ...]:
    """Measure every decreed step; without any, every change of the desired replicas, until the next but 10 s at most.

    A group that shrinks is meant to do less. The baseline of a "down" step is the smaller of the rate before it and the
    rate at its end, but not less than the share of the rate before that the remaining pods did: or a group that stopped
    for good would have no dip at all.
    """
    done = Processed(record.receipts)
    changes = record.handovers
    lags = record.partition_lag
    partitions = record.inputs.partitions
    return tuple(_dip(step, done, changes, lags, partitions) for step in _steps(record))


@measure
def median_step(dips: Iterable[Dip], kind: str) -> MedianStep:
    """The median over the steps of ``kind`` ("up", "down" or "control"); no data when there is none, or one has no figure."""
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
    """The worst over the steps of ``kind`` ("up", "down" or "control"); no data when there is none, or one has no figure."""
    chosen = _of_kind(dips, kind)
    figures = {name: [float(getattr(dip, name)) for dip in chosen] for name in COMPARED}
    worst = {name: min(values) if name == "cleared" else max(values) for name, values in figures.items()}
    return WorstStep(**worst, settle_s=max((dip.settle_s for dip in chosen if dip.settle_s is not None), default=None))


def _of_kind(dips: Iterable[Dip], kind: str) -> list[Dip]:
    """The steps of ``kind``. Raises :class:`NoData` when there is none, or one has no figure."""
    chosen = [dip for dip in dips if dip.kind == kind]
    if not chosen:
        raise NoData(f"no {kind} step was taken")
    for dip in chosen:
        if any(map(math.isnan, (dip.depth_1s, dip.depth_200ms))):
            raise NoData(f"the {kind} step at {dip.t:.1f} has no dip: nothing was consumed before it, or it is too short")
    return chosen


@quantity("partitions", "partitions that ran dry during a step")
def saturated(dips: Iterable[Dip]) -> int:
    """Dry partitions in all steps together: 0 if every step was taken at saturation.

    No data when there is no step, or none can be told of one because its lag was not sampled.
    """
    counts = [dip.dry for dip in dips]
    if not counts or None in counts:
        raise NoData("no step was taken" if not counts else "a step without a sample of kafka_consumergroup_lag")
    return sum(count for count in counts if count is not None)


def traces(record: Record, before_s: float = BEFORE_S) -> pd.DataFrame:
    """The rate around each step: columns kind, step (its number), t (s since it), share (of the baseline, over 200 ms)."""
    done = Processed(record.receipts)
    frames = []
    for count, (step, dip) in enumerate(zip(_steps(record), dips(record), strict=True), 1):
        starts, rates = done.rolling(dip.t - before_s, step.until, FINE_S)
        middle = starts + FINE_S / 2 - dip.t
        frames.append(pd.DataFrame({"kind": dip.kind, "step": count, "t": middle, "share": rates / dip.baseline}))
    if not frames:
        raise NoData("no step was taken")
    return pd.concat(frames, ignore_index=True)


class Processed:
    """Messages processed by a time: each receipt's count spread evenly over its start..end. Raises NoData without receipts.

    The sum is one broken line whose slope changes where a receipt starts or ends, so any number of rates cost one sort.
    """

    def __init__(self, receipts: pd.DataFrame) -> None:
        if receipts.empty:
            raise NoData("no receipts")
        start, end, count = (receipts[name].to_numpy(dtype=np.float64) for name in ("start", "end", "count"))
        self._zero = float(start.min())  # epoch seconds have 0.2 µs of precision; differences from near have all
        lasting = end - start > 1e-6
        speed = count[lasting] / (end - start)[lasting]
        edges = np.concatenate([start[lasting], end[lasting]]) - self._zero
        order = np.argsort(edges)
        self._edges = edges[order]
        slopes = np.cumsum(np.concatenate([speed, -speed])[order])
        self._line = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(self._edges))])
        order = np.argsort(start[~lasting])
        self._moments = start[~lasting][order] - self._zero
        self._jumps = np.concatenate([[0.0], np.cumsum(count[~lasting][order])])

    def by(self, t: Array) -> Array:
        """Messages processed until each of ``t`` (epoch s)."""
        since = t - self._zero
        line = np.interp(since, self._edges, self._line) if len(self._edges) else np.zeros_like(since)
        return np.asarray(line + self._jumps[np.searchsorted(self._moments, since, side="right")], dtype=np.float64)

    def between(self, start: float, end: float) -> float:
        """Messages processed from ``start`` to ``end`` (epoch s)."""
        first, last = self.by(np.array([start, end]))
        return float(last - first)

    def rate(self, start: float, end: float) -> float:
        """Mean messages/s from ``start`` to ``end`` (epoch s); NaN for no time at all."""
        return self.between(start, end) / (end - start) if end > start else math.nan

    def rolling(self, start: float, end: float, window: float) -> tuple[Array, Array]:
        """(starts, messages/s) of every window of ``window`` s on the grid that lies wholly from ``start`` to ``end``."""
        within = (end - start - window) / GRID_S + 1e-4  # an epoch time is known to some 0.2 µs: 5e-6 of the grid
        windows = max(0, math.floor(within) + 1)
        starts: Array = start + GRID_S * np.arange(windows, dtype=np.float64)
        return starts, (self.by(starts + window) - self.by(starts)) / window


@dataclass(frozen=True)
class _Step:
    t: float
    kind: str
    before: int
    after: int
    until: float


def _steps(record: Record) -> list[_Step]:
    if decreed := record.trial.steps:
        return [_Step(one.t, one.kind, one.before, one.after, one.until) for one in decreed]
    changes = record.scalings
    ends = [*(change.t for change in changes[1:]), math.inf]
    return [
        _Step(one.t, "up" if one.after > one.before else "down", one.before, one.after, min(end, one.t + WATCHED_S))
        for one, end in zip(changes, ends, strict=True)
    ]


def _dip(step: _Step, done: Processed, changes: Sequence[Handover], lags: pd.DataFrame, partitions: int) -> Dip:
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
        depth_1s=_depth(coarse, baseline) if known else math.nan,
        depth_200ms=_depth(fine, baseline) if known else math.nan,
        recovery_s=_recovery(starts, coarse, baseline) if known else math.nan,
        forgone=float(np.maximum(0, baseline - fallen).sum() * GRID_S) if known else math.nan,
        cleared=float(np.maximum(0, fine - baseline).sum() * GRID_S) if known else math.nan,
        moved=_moved(changes, step.t, step.until),
        touched=len({partition for change in within for partition in change.partitions}),
        settle_s=within[-1].t - step.t if within and step.kind != "control" else None,
        dry=int(seen.loc[seen["lag"] <= 0, "partition"].nunique()) if len(seen) else None,
    )


def _depth(rates: Array, baseline: float) -> float:
    return max(0.0, 1 - float(rates.min()) / baseline)


def _recovery(starts: Array, rates: Array, baseline: float) -> float:
    below = np.flatnonzero(rates < RECOVERED * baseline)
    if not len(below):
        return 0.0
    if below[-1] == len(rates) - 1:
        return math.inf
    return float(starts[below[-1]] + COARSE_S - starts[below[0]])


def _moved(changes: Iterable[Handover], start: float, end: float) -> int:
    """Partitions whose owner at ``end`` is not the one last assigned before ``start``.

    What a pod owned that died without a word stays its own until someone else is assigned it, as for the group.
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
