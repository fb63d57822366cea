"""Drain: how much lag the spike built, and how it went down again."""

from __future__ import annotations

from collections.abc import Hashable

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.record.store import Record


class Drain(Measure):
    """The drain is from the last burst's end until lag is at one lagThreshold. Times are as seen, but for ``real_s``.

    ``ideal_s`` is the best time that skew allows: that of the slowest partition with a pod of its own. A rise of lag is
    measured at full parallelism, above the lowest lag so far.
    """

    peak_lag = number("messages", "peak lag")
    peak_after_s = number("s", "time from the spike's start to the peak lag")
    seconds = number("s", "drain time")
    ideal_s = number("s", "best drain time that the hottest partition allows")
    real_s = number("s", "drain time at real time")
    full_parallelism_s = number("s", "time at full parallelism while draining")
    largest_rise = number("messages", "largest rise of lag while draining at full parallelism")
    rise_in_thresholds = number("lagThreshold", "rise of lag while draining at full parallelism")


@measure
def drain(record: Record) -> Drain:
    """Measure the drain after the spike.

    No data when lag never came back to one lagThreshold, or the group never ran at full parallelism.
    """
    ceiling, threshold = record.policy.max_replicas, record.lag_threshold
    spike, end = record.zero, record.relief
    lag = record.lag
    done = end + caught_up(record).number
    since = lag[lag["t"] >= spike]
    top = since.loc[since["lag"].idxmax()]
    begin, until = _full_parallelism(record, ceiling, end, done)
    rise = largest_rise(lag[(lag["t"] >= begin) & (lag["t"] <= until)]["lag"])
    factor = record.scale.time
    return Drain(
        peak_lag=int(top["lag"]),
        peak_after_s=float(top["t"]) - spike,
        seconds=done - end,
        ideal_s=ideal(record, end),
        real_s=(done - end) * factor,
        full_parallelism_s=until - begin,
        largest_rise=int(rise),
        rise_in_thresholds=rise / threshold,
    )


@quantity("s", "time from the last burst's end until lag is back at one lagThreshold")
def caught_up(record: Record) -> float:
    """Seconds from the last burst's end until total lag is at or below one lagThreshold; 0 when it already was."""
    end, threshold = record.relief, record.lag_threshold
    lag = record.lag
    drained = lag[(lag["t"] >= end) & (lag["lag"] <= threshold)]
    if drained.empty:
        raise NoData(f"lag never came back to {threshold} after the last burst")
    return float(drained["t"].iloc[0]) - end


def largest_rise(values: pd.Series[float]) -> float:
    """The most that any value stands above the lowest one before it; 0 for a monotone fall or an empty series."""
    return float((values - values.cummin()).max()) if len(values) else 0.0


def ideal(record: Record, end: float) -> float:
    """Seconds the slowest partition needs from ``end`` when a pod of its own gives it all its rate.

    backlog / (pod rate - inflow), the largest over partitions; inflow is the mean growth of the log's end after ``end``.
    """
    rate = record.inputs.pod_rate
    lags = record.partition_lag[record.partition_lag["t"] >= end]
    if lags.empty:
        raise NoData("no sample of kafka_consumergroup_lag after the spike")
    inflow = _inflow(record)
    slowest = 0.0
    for partition, backlog in lags.groupby("partition")["lag"].first().items():
        spare = rate - inflow.get(partition, 0.0)
        slowest = max(slowest, backlog / spare if spare > 0 else float("inf"))
    return slowest


def _inflow(record: Record) -> dict[Hashable, float]:
    """Events/s that arrive at each partition in the profile's last phase: its share of all events."""
    receipts = record.receipts
    if receipts.empty:
        raise NoData("no receipts")
    counts = receipts.groupby("partition")["count"].sum()
    rate = record.profile.steps[-1].rate
    return {partition: float(share) * rate for partition, share in (counts / counts.sum()).items()}


def _full_parallelism(record: Record, ceiling: int, end: float, done: float) -> tuple[float, float]:
    """The stretch after the spike in which every replica the policy allows is Ready and wanted."""
    curve = record.replicas
    full = curve[(curve["ready"] == ceiling) & (curve["desired"] == ceiling)]
    if full.empty:
        raise NoData(f"the group never ran with its {ceiling} replicas")
    begin = max(end, float(full["t"].iloc[0]))
    left = curve[(curve["t"] > begin) & (curve["desired"] < ceiling)]
    return begin, min(done, float(left["t"].iloc[0])) if not left.empty else done
