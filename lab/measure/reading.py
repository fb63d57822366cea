"""Readings: the lag that the HPA reads at its syncs, beside the lag that there is between two commits."""

from __future__ import annotations

from statistics import median

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.model.hpa_log import Sync
from lab.record.store import Record

BURST = "burst"
SETTLED = 1 / 4  # of a burst: then the backlog of its beginning is worked off
FEWEST = 3  # readings of a burst


class Readings(Measure):
    """The HPA's readings of lag in the bursts that the ceiling's pods take, from the first quarter's end on.

    ``share`` is the range of the readings over that of the lag, in the median burst: near 1 where they meet lag at all points
    between two commits, and near 0 where syncs come in step with commits. ``renewing_s`` is the highest reading of the burst
    in which it is lowest, over the rate of arrival: the s of traffic that every burst shows the HPA at least once.
    """

    bursts = number("bursts", "bursts that the ceiling's pods took")
    share = number("of the lag's", "range of the HPA's readings in a burst", UNSCALED)
    renewing_s = number("s", "traffic in flight that the HPA read in each burst at least once")


@measure
def readings(record: Record) -> Readings:
    """Measure the bursts; no data without one that began and ended with all pods of the ceiling Ready."""
    ceiling, curve, lag = record.policy.max_replicas, record.replicas, record.lag
    read = [(one.at, value) for one in record.hpa_syncs if (value := total(one)) is not None]
    rate = max((step.rate for step in record.profile.steps if step.phase == BURST), default=0.0)
    shares, highest = [], []
    for start, end, label in record.phases.itertuples(index=False, name=None):
        ready = [curve[curve["t"] <= t]["ready"].iloc[-1] for t in (start, end) if (curve["t"] <= t).any()]
        if label != BURST or ready != [ceiling, ceiling]:
            continue
        begin = start + (end - start) * SETTLED
        found = [value for at, value in read if begin <= at <= end]
        there = lag[lag["t"].between(begin, end)]["lag"]
        if len(found) >= FEWEST and there.max() > there.min():
            shares.append((max(found) - min(found)) / float(there.max() - there.min()))
            highest.append(max(found) / rate)
    if not shares:
        raise NoData("no burst that the ceiling's pods took, with three syncs in it")
    return Readings(bursts=len(shares), share=median(shares), renewing_s=min(highest))


def total(sync: Sync) -> float | None:
    """The messages of lag that ``sync`` read, of its first metric; None where they can't be known."""
    first = sync.seen[0].observed[0] if sync.seen and sync.seen[0].observed else None
    return sum(first) / 1000 if isinstance(first, tuple) else None  # an HPA counts in thousandths
