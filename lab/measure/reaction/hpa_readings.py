"""Readings: the lag that the HPA reads at its syncs, beside the lag that there is between two commits."""

from __future__ import annotations

import re
from dataclasses import dataclass
from statistics import median

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure
from lab.judge.measure import number as number_of
from lab.judge.origin import UNSCALED
from lab.model.hpa import DEFAULTS
from lab.model.hpa_log import Sync
from lab.record.store import Record

BURST = "burst"
SETTLED = 1 / 4  # of a burst: then the backlog of its beginning is worked off
FEWEST = 3  # readings of a burst
_ON_LAG = re.compile(r"s\d+-kafka-")  # how KEDA names the metric of a kafka trigger


class Readings(Measure):
    """The HPA's readings of lag in the bursts that all pods of the ceiling take, from the first quarter's end on.

    ``share`` is the range of the readings over that of the lag, in the median burst: near 1 where they meet lag at all points
    between two commits, and near 0 where syncs come in step with commits. ``renewing_s`` is the highest reading of the burst
    in which it is lowest, over the rate of arrival: the s of traffic that every burst shows the HPA at least once.
    """

    bursts = number_of("bursts", "bursts that all pods of the ceiling took")
    share = number_of("of the lag's", "range of the HPA's readings in a burst", UNSCALED)
    renewing_s = number_of("s", "traffic in flight that the HPA read in each burst at least once")


@dataclass(frozen=True)
class Reading:
    """What one sync read: ``t`` (epoch s), ``lag`` (messages), and the ``surplus``, the lag below which it wants fewer pods."""

    t: float
    lag: float
    surplus: float

    @property
    def asks(self) -> bool:
        """Whether the sync asked for the pods that there were, at least."""
        return self.lag >= self.surplus


@dataclass(frozen=True)
class Burst:
    """Burst ``number`` of a profile from its first quarter's end on (epoch s): what the HPA read, and ``lag`` [t, lag]."""

    number: int
    start: float
    end: float
    read: tuple[Reading, ...]
    lag: pd.DataFrame

    @property
    def below(self) -> float:
        """The share of the sampled lag that is below the surplus: how often a sync at any moment would want fewer pods."""
        return float((self.lag["lag"] < min(one.surplus for one in self.read)).mean())

    @property
    def renews(self) -> bool:
        """Whether a reading asks for the pods that there are, so that the scale-down window begins anew."""
        return any(one.asks for one in self.read)


def bursts(record: Record) -> list[Burst]:
    """The bursts that began with all pods of the ceiling Ready, with FEWEST readings at least; none without such.

    A burst in which pods are taken away counts up to then: afterwards lag is a backlog.
    """
    ceiling, curve, lag, phases = record.policy.max_replicas, record.replicas, record.lag, record.phases
    read = [one for sync in record.hpa_syncs if (one := reading(sync)) is not None]
    found = []
    spans = phases[phases["label"] == BURST][["start", "end"]].itertuples(index=False, name=None)
    for number, (start, over) in enumerate(spans, 1):
        if record.ready_at(start) != ceiling:
            continue
        begin = start + (over - start) * SETTLED
        end = curve[(curve["t"] > start) & (curve["ready"] < ceiling)]["t"].min()
        end = over if pd.isna(end) else min(over, float(end))
        within = tuple(one for one in read if begin <= one.t <= end)
        there = lag[lag["t"].between(begin, end)]
        if len(within) >= FEWEST and there["lag"].max() > there["lag"].min():
            found.append(Burst(number, begin, end, within, there))
    return found


@measure
def readings(record: Record) -> Readings:
    """Measure the bursts; no data without one that began with all pods of the ceiling Ready."""
    if not (found := bursts(record)):
        raise NoData("no burst that all pods of the ceiling took, with three syncs in it")
    rate = max(step.rate for step in record.profile.steps if step.phase == BURST)
    highest = [max(one.lag for one in burst.read) for burst in found]
    lowest = [min(one.lag for one in burst.read) for burst in found]
    ranges = [float(burst.lag["lag"].max() - burst.lag["lag"].min()) for burst in found]
    shares = [(high - low) / there for high, low, there in zip(highest, lowest, ranges, strict=True)]
    return Readings(bursts=len(found), share=median(shares), renewing_s=min(highest) / rate)


def reading(sync: Sync) -> Reading | None:
    """What ``sync`` read of its first metric on lag; None where it has none, or where its values can't be known.

    A sync keeps the pods that there are as long as lag over lagThreshold is above them by no less than the tolerance allows:
    source: ``replica_calculator.go`` and ``--horizontal-pod-autoscaler-tolerance`` of Kubernetes 1.36.
    """
    place = next((index for index, metric in enumerate(sync.spec.metrics) if _ON_LAG.match(metric.name)), None)
    seen = sync.seen[0] if sync.seen else None
    if place is None or seen is None or seen.observed is None or not isinstance(values := seen.observed[place], tuple):
        return None
    held = sync.spec.metrics[place].amount / 1000 * seen.existing  # an HPA counts in thousandths
    own = sync.spec.behavior.down.tolerance if sync.spec.behavior else None
    return Reading(sync.at, sum(values) / 1000, (1 - (DEFAULTS.tolerance if own is None else own)) * held)
