"""Drain: the peak of lag, the time until it is worked off, and the best time that was possible."""

from __future__ import annotations

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Quantity
from lab.record.store import Record

LEAST_DRAIN_S = 5.0  # a new pod needs this to be at work at any scale, so a shorter drain shows nothing of the policy


class Drain(Measure):
    """The drain from the last burst's end until lag is at one lagThreshold.

    Times are in the trial's compressed time, except ``real_s``. ``ideal_s`` is the best time that skew allows, which is the
    slowest partition's time with a pod of its own. A rise of lag is measured at full parallelism, above the lowest lag so far.
    """

    peak_lag = number("messages", "peak lag")
    peak_after_s = number("s", "time from the spike's start to the peak lag")
    seconds = number("s", "drain time")
    ideal_s = number("s", "best drain time that the hottest partition allows")
    real_s = number("s", "drain time at real time", UNSCALED)
    full_parallelism_s = number("s", "time at full parallelism while draining")
    largest_rise = number("messages", "largest rise of lag while draining at full parallelism")
    rise_in_thresholds = number("lagThreshold", "rise of lag while draining at full parallelism")


@measure
def drain(record: Record) -> Drain:
    """Measure the drain after the spike.

    There is no data when lag never came back to one lagThreshold, and when the group never ran at full parallelism.
    """
    spike, end, lag = record.zero, record.relief, record.lag
    done = end + drain_time(record).number
    since = lag[lag["t"] >= spike]
    top = since.iloc[int(since["lag"].argmax())]
    begin, until = _full_parallelism(record, end, done)
    rise = largest_rise(lag[lag["t"].between(begin, until)]["lag"])
    return Drain(
        peak_lag=int(top["lag"]),
        peak_after_s=float(top["t"]) - spike,
        seconds=done - end,
        ideal_s=ideal_drain_s(record, end),
        real_s=(done - end) * record.scale.time,
        full_parallelism_s=until - begin,
        largest_rise=int(rise),
        rise_in_thresholds=rise / record.lag_threshold,
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
    """Seconds that the slowest partition needs from ``end`` (epoch s) with a pod of its own.

    The time is backlog / (pod rate - inflow), and the largest over the partitions counts. A partition's inflow is its share of
    all events times the rate of the profile's last phase.
    """
    lags, receipts = record.partition_lag[record.partition_lag["t"] >= end], record.receipts
    if lags.empty:
        raise NoData("no sample of kafka_consumergroup_lag after the spike")
    if receipts.empty:
        raise NoData("no receipts")
    counts = receipts.groupby("partition")["count"].sum()
    inflow = counts / counts.sum() * record.profile.steps[-1].rate
    slowest = 0.0
    for partition, backlog in lags.groupby("partition")["lag"].first().items():
        spare = record.inputs.pod_rate - inflow.get(partition, 0.0)
        slowest = max(slowest, backlog / spare if spare > 0 else float("inf"))
    return slowest


def _full_parallelism(record: Record, end: float, done: float) -> tuple[float, float]:
    """(start, end) in epoch s of the time after the spike in which all replicas that the policy allows are Ready and wanted."""
    curve, ceiling = record.replicas, record.policy.max_replicas
    full = curve[(curve["ready"] == ceiling) & (curve["desired"] == ceiling)]
    if full.empty:
        raise NoData(f"the group never ran with its {ceiling} replicas")
    begin = max(end, float(full["t"].iloc[0]))
    left = curve[(curve["t"] > begin) & (curve["desired"] < ceiling)]
    return begin, min(done, float(left["t"].iloc[0])) if not left.empty else done


class BestDrain(Measure):
    """The drain time, and the best time that skew and the policy's ceiling allow."""

    seconds = number("s", "drain time")
    best_s = number("s", "best drain time that the policy's ceiling and the hottest partition allow")

    @property
    def over_best(self) -> Quantity:
        """The drain time as a multiple of the best."""
        return (self.seconds / self.best_s).named(
            "drain time over the best the policy's ceiling and the hottest partition allow"
        )


@measure
def best_drain(record: Record) -> BestDrain:
    """Measure the drain beside its best time.

    best = max(the ``ideal_s`` of :func:`drain`, lag / (pods x rate - inflow), 5 s). ``pods`` is the policy's ceiling or the
    number of partitions, the smaller of the two. There is no data when lag never came back to one lagThreshold, and when as
    much traffic follows as the pods can take.
    """
    end = record.relief
    best = max(ideal_drain_s(record, end), _together(record, end), LEAST_DRAIN_S)
    if best == float("inf"):
        raise NoData("after the last burst as much arrives as the pods, or one for the hottest partition, can take")
    return BestDrain(seconds=drain_time(record).number, best_s=best)


def _together(record: Record, end: float) -> float:
    """Seconds that all pods together need for the lag at ``end`` (epoch s): the ceiling's, but one per partition at most."""
    pods = min(record.policy.max_replicas, record.inputs.partitions)
    spare = pods * record.inputs.pod_rate - record.profile.steps[-1].rate
    lag = record.lag
    before = lag[lag["t"] <= end]["lag"]
    backlog = float(before.iloc[-1]) if len(before) else 0.0
    if not backlog:
        return 0.0
    return backlog / spare if spare > 0 else float("inf")
