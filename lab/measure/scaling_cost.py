"""Scaling cost: the messages that an autoscaler's rebalances cost, beside those that its scaling cleared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Quantity
from lab.measure.rebalance import rebalance_spans
from lab.measure.throughput import GRID_S, Array, Span, Throughput, clip, lagging_spans
from lab.record.reports import GIVEN, Report
from lab.record.store import Record

FINE_S = 0.2
ASLEEP_S = 1.0  # librdkafka's fetchers sleep so long after a rebalance where nothing wakes them (docs/decisions/19)


@dataclass(frozen=True)
class RebalanceCost:
    """One rebalance: from ``t``, when its first cause is seen, to ``until``, 1 s after its last handover (epoch s).

    A cause is a member that subscribes or leaves. ``before`` and ``after`` are the Ready pods at either end. ``forgone``
    messages fell short of what the Ready pods could do while a backlog waited. ``unowned_s`` are the partition-seconds without
    an owner.
    """

    t: float
    until: float
    before: int
    after: int
    forgone: float
    unowned_s: float


class ScalingCost(Measure):
    """The cost of an autoscaler's rebalances and the worth of its scaling, in messages, from the first step up to the end.

    Both count only while a backlog waits: a total lag above one lagThreshold. With r the rate of a pod, w(t) the Ready pods at
    t (at most one for each partition), w0 those of before the first step up, and c(t) the group's rate:

        forgone = sum over rebalances of the integral of max(0, r w(t) - c(t)) dt, c over rolling 200 ms
        cleared = integral of (c(t) - r w0) dt over all of the time

    So ``cleared`` exceeds what the initial pods could have done at their best, and is net of rebalances.
    ``forgone`` includes the noise of a rate over 200 ms, and that a saturated pod does less than r. Both make it larger.
    """

    forgone = number("messages", "messages short of what Ready pods could do during rebalances", UNSCALED)
    cleared = number("messages", "messages cleared beyond what the pods of before could do")
    rebalances = number("rebalances", "rebalances while a backlog waited")
    unowned_s = number("partition-seconds", "time of partitions without an owner in rebalances", UNSCALED)
    each = detail(tuple[RebalanceCost, ...], "each rebalance while a backlog waited, in order")

    @property
    def share(self) -> Quantity:
        """``forgone`` over ``cleared``: below 1 scaling costs less than the backlog that it clears."""
        return (self.forgone / self.cleared).named("messages forgone in rebalances over messages cleared by scaling")


@measure
def scaling_cost(record: Record) -> ScalingCost:
    """Measure the rebalances and the scaling.

    There is no data when the autoscaler never asked for more, without a lagThreshold, and when no backlog waited after it did
    or the scaling cleared nothing of it.
    """
    ups = [change.t for change in record.scalings if change.after > change.before and change.t > record.zero]
    if not ups:
        raise NoData("the replicas were never raised after the spike began")
    done, waiting = Throughput(record.receipts), clip(lagging_spans(record, record.lag_threshold), (ups[0], record.end))
    spent = sum(end - start for start, end in waiting)
    if not spent:
        raise NoData(f"lag was never above one lagThreshold, {record.lag_threshold}, after the first step up")
    floor = min(_ready(record, np.array([ups[0]]))[0], record.inputs.partitions)
    cleared = float(sum(done.between(*span) for span in waiting) - record.inputs.pod_rate * floor * spent)
    if cleared <= 0:
        raise NoData(
            f"the scaling cleared nothing: {cleared:,.0f} messages more than the {floor:.0f} pods of before at their best"
        )
    each = [cost for cost in rebalance_costs(record, ups[0]) if clip(waiting, (cost.t, cost.until))]
    return ScalingCost(
        forgone=sum(cost.forgone for cost in each),
        cleared=cleared,
        rebalances=len(each),
        unowned_s=sum(cost.unowned_s for cost in each),
        each=tuple(each),
    )


def rebalance_costs(record: Record, start: float) -> list[RebalanceCost]:
    """Every rebalance whose first cause is seen from ``start`` (epoch s) on, in order.

    Raises :class:`NoData` without receipts or a sample of lag, and for a policy without a lagThreshold.
    """
    done, waiting = Throughput(record.receipts), lagging_spans(record, record.lag_threshold)
    return [_cost(record, span, done, waiting) for span in _windows(record, start)]


def _windows(record: Record, start: float) -> list[Span]:
    """(first cause, 1 s after the last handover) of each rebalance, up to the next one's first cause or the trial's end."""
    events, end = record.group_events, record.end
    causes = np.sort(events.loc[events["event"].isin(["subscribed", "left", "draining"]), "t"].to_numpy(dtype=float))
    begun: list[Span] = []
    over = -np.inf
    for first, last in rebalance_spans(record):
        within = causes[(causes > over) & (causes <= first)]
        begun.append((float(within[0]) if len(within) else first, last))
        over = last
    following = [*(first for first, _ in begun[1:]), end]
    found = [(first, min(last + ASLEEP_S, max(last, then), end)) for (first, last), then in zip(begun, following, strict=True)]
    return [(first, until) for first, until in found if start <= first < until]


def _cost(record: Record, span: Span, done: Throughput, waiting: Sequence[Span]) -> RebalanceCost:
    start, until = span
    partitions = record.inputs.partitions_after or record.inputs.partitions
    before, after = (int(one) for one in _ready(record, np.array(span)))
    starts, fine = done.rolling(start, until, FINE_S)
    middle = starts + FINE_S / 2
    able = record.inputs.pod_rate * np.minimum(_ready(record, middle), partitions)
    behind = np.array([any(begin <= t < end for begin, end in waiting) for t in middle], dtype=bool)
    return RebalanceCost(
        t=start,
        until=until,
        before=before,
        after=after,
        forgone=float((np.maximum(0.0, able - fine) * behind).sum() * GRID_S),
        unowned_s=_unowned_s(record.handovers, start, until),
    )


def _ready(record: Record, times: Array) -> Array:
    """The Ready pods at each of ``times``, 0 before the first row of the record's replicas."""
    curve = record.replicas
    rows = np.searchsorted(curve["t"].to_numpy(dtype=float), times, side="right") - 1
    counts: Array = np.where(rows >= 0, curve["ready"].to_numpy(dtype=np.float64)[np.maximum(rows, 0)], 0.0)
    return counts


def _unowned_s(changes: Sequence[Report], start: float, until: float) -> float:
    """Partition-seconds from ``start`` to ``until`` in which a partition that had an owner has none.

    A member may report what it lost after another was given it: that takes it from nobody.
    """
    since: dict[int, float] = {}
    owner: dict[int, str | None] = {}
    total = 0.0
    for change in changes:
        for partition in change.partitions:
            if change.event == GIVEN:
                owner[partition] = change.pod
                if partition in since:
                    total += max(0.0, min(until, change.t) - max(start, since.pop(partition)))
            elif owner.get(partition, change.pod) == change.pod:  # one that was never given is that of who loses it
                owner[partition] = None
                since[partition] = change.t
    return total + sum(max(0.0, until - max(start, t)) for t in since.values())
