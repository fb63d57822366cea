"""Drain: the peak of lag, the time until it is worked off, and the best time that was possible."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.foresee.in_flight import InFlight
from lab.inputs.own_consumer import RECEIPTS
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.quantity import Quantity
from lab.measure.lag import require_samples
from lab.record.store import Record

LEAST_DRAIN_S = 5.0  # a new pod needs this to be at work at any scale, so a shorter drain shows nothing of the policy


class Drain(Measure):
    """The drain from the last burst's end until lag is at one lagThreshold, all of it, with however many pods there were.

    Times are in the trial's compressed time. ``ideal_s`` is the best time to the same end that skew allows, with a pod for
    each partition.

    ``largest_rise`` is above the lowest lag so far. A backlog that only falls still has a lag that rises between two commits.
    So the rise is held to ``between_commits``, what arrives between two commits of a partition::

        between_commits = rate of arrivals (messages/s) x (commit interval + a poll's work) (s)

    Derivation, for a group that commits each partition once in T = commit interval + a poll's work. Lag is what was produced
    less what was committed; the backlog is what was produced less what was processed. What is committed was processed at most T
    before. So lag(t) is at most backlog(t - T) plus what arrived since, and never below backlog(t). Where the backlog has not
    risen from s to t - T, lag(t) <= backlog(s) + rate x T <= lag(s) + rate x T. Where t is less than T after s, no more than
    rate x T has arrived. A larger rise is a backlog that rose, or a commit that was late.
    """

    peak_lag = number("messages", "peak lag")
    peak_after_s = number("s", "time from the spike's start to the peak lag")
    seconds = number("s", "drain time")
    ideal_s = number("s", "best drain time that the hottest partition allows")
    largest_rise = number("messages", "largest rise of lag while draining")
    between_commits = number("messages", "what arrives between two commits of a partition while draining")

    @property
    def rise_over_commits(self) -> Quantity:
        """The largest rise as a multiple of what arrives between two commits: at most 1 where the backlog only falls."""
        return (self.largest_rise / self.between_commits).named(
            "rise of lag while draining over what arrives between two commits"
        )


@measure
def drain(record: Record) -> Drain:
    """Measure the drain after the spike. No data where lag never came back to one lagThreshold, or faults kept it from view."""
    spike, end, lag = record.zero, record.relief, record.lag
    seconds = drain_time(record).number
    require_samples(record, spike, end + seconds)
    since = lag[lag["t"] >= spike]
    top = since.iloc[int(since["lag"].argmax())]
    in_flight = InFlight.of(record.inputs.workload, record.scale.time)
    return Drain(
        peak_lag=int(top["lag"]),
        peak_after_s=float(top["t"]) - spike,
        seconds=seconds,
        ideal_s=ideal_drain_s(record, end),
        largest_rise=int(largest_rise(lag[lag["t"].between(end, end + seconds)]["lag"])),
        between_commits=record.profile.steps[-1].rate * in_flight.most_s,
    )


@quantity("s", "time from the last burst's end until lag is back at one lagThreshold")
def drain_time(record: Record) -> float:
    """Seconds from the last burst's end until total lag is at or below one lagThreshold, 0 when it already was."""
    end, threshold = record.relief, record.lag_threshold
    lag = record.lag
    drained = lag[(lag["t"] >= end) & (lag["lag"] <= threshold)]
    if drained.empty:
        raise NoData(f"lag never came back to {threshold} after the last burst")
    return float(drained["t"].iloc[0]) - end


def largest_rise(values: pd.Series[float]) -> float:
    """The largest excess of a value over the lowest value before it, 0 for a monotone fall or an empty series."""
    return float((values - values.cummin()).max()) if len(values) else 0.0


def ideal_drain_s(record: Record, end: float) -> float:
    """Seconds from ``end`` (epoch s) until lag is at one lagThreshold, where each partition has a pod of its own.

    It is the :func:`ideal_time` of the partitions' lags, each with the pod's rate less the inflow as its spare. A partition's
    inflow is its share of all events times the rate of the profile's last phase.
    """
    lags, counts = record.partition_lag[record.partition_lag["t"] >= end], _messages(record)
    if lags.empty:
        raise NoData("no sample of kafka_consumergroup_lag after the spike")
    inflow = counts / counts.sum() * record.profile.steps[-1].rate
    backlogs = lags.groupby("partition")["lag"].first()
    spares = [record.inputs.pod_rate - inflow.get(partition, 0.0) for partition in backlogs.index]
    return ideal_time(backlogs.tolist(), spares, record.lag_threshold)


def ideal_time(backlogs: Sequence[float], spares: Sequence[float], most: float) -> float:
    """The least time (s) until ``backlogs`` (messages) are no more than ``most`` in all; each falls by its spare (messages/s).

    At t the sum of spare x max(0, backlog / spare - t) is left. It is straight between the ends of two backlogs, so the time is
    exact. It is infinite where any spare is not above 0, whatever waits there: that backlog never falls.
    """
    spare = np.asarray(spares, dtype=float)
    if not (spare > 0).all():
        return math.inf
    ends = np.asarray(backlogs, dtype=float) / spare
    times = np.unique([0.0, *ends])
    left = [float((spare * np.maximum(ends - t, 0.0)).sum()) for t in times]  # falls to 0, which is exact at the last end
    return float(np.interp(most, left[::-1], times[::-1]))


def _messages(record: Record) -> pd.Series[int]:
    """How many messages each partition had, by receipts or, without any by the contract, by its log's end.

    Raises :class:`NoData` for none.
    """
    if record.inputs.workload.rung == RECEIPTS:
        counts = record.receipts.groupby("partition")["count"].sum()
    else:
        counts = pd.Series({number: part.end for number, part in record.offsets.items()}, dtype=int)
    if not counts.sum():
        raise NoData("no receipts" if record.inputs.workload.rung == RECEIPTS else "no messages")
    return counts


class BestDrain(Measure):
    """The drain time, and the best time to the same end that skew and the ceiling allow: LEAST_DRAIN_S or more."""

    seconds = number("s", "drain time")
    best_s = number("s", "best drain time that the policy's ceiling and the hottest partition allow")

    @property
    def over_best(self) -> Quantity:
        """The drain time as a multiple of the best.

        Below 1 where the drain took less than LEAST_DRAIN_S. Also where part of the lag was processed before the last burst's
        end and not committed: that part needs no pod.
        """
        return (self.seconds / self.best_s).named(
            f"drain time over the best that the policy's ceiling and the hottest partition allow, {LEAST_DRAIN_S:g} s at least"
        )


@measure
def best_drain(record: Record) -> BestDrain:
    """Measure the drain beside its best time.

    best = max(the ``ideal_s`` of :func:`drain`, (lag - lagThreshold) / (pods x rate - inflow), 5 s). ``pods`` is the policy's
    ceiling or the number of partitions, the smaller of the two. There is no data when lag never came back to one lagThreshold,
    and when as much traffic follows as the pods can take.
    """
    end = record.relief
    best = max(ideal_drain_s(record, end), _together(record, end), LEAST_DRAIN_S)
    if best == math.inf:
        raise NoData("after the last burst as much arrives as the pods, or one for the hottest partition, can take")
    return BestDrain(seconds=drain_time(record).number, best_s=best)


def _together(record: Record, end: float) -> float:
    """Seconds that all pods together need from ``end`` (epoch s) until lag is at one lagThreshold.

    They are as many as the ceiling allows, but one per partition at most.
    """
    pods = min(record.policy.max_replicas, record.inputs.partitions)
    spare = pods * record.inputs.pod_rate - record.profile.steps[-1].rate
    lag = record.lag
    before = lag[lag["t"] <= end]["lag"]
    over = max(0.0, (float(before.iloc[-1]) if len(before) else 0.0) - record.lag_threshold)
    if not over:
        return 0.0
    return over / spare if spare > 0 else math.inf
