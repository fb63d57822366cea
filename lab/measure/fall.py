"""Falls of a group's rate: each rolling second beside the best one just before it, as :mod:`lab.measure.dip` defines it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.foresee.in_flight import InFlight
from lab.measure.throughput import GRID_S, Array, Throughput
from lab.record.course import ENDED
from lab.record.store import Record

SECOND_S = 1.0
LOOKBACK_S = 3.0
LEAVING_S = 1.0  # a pod that was told to go is not Ready from then on, and ends the work in hand
BACK = 0.95  # of the reference: the rate is below, or back
_SECOND, _LOOKBACK = round(SECOND_S / GRID_S), round(LOOKBACK_S / GRID_S)

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Seconds:
    """The rolling seconds of a record, on a grid of 50 ms; all arrays have one length.

    A second begins at ``starts`` (epoch s) with ``rates`` messages/s of ``working`` pods. ``gone_before`` and ``gone_after``
    count the pods that were Ready no more by a second before its start, and by its end.
    """

    starts: Array
    rates: Array
    working: Array
    gone_before: Array
    gone_after: Array

    def able(self, places: Places | int, references: Places | int) -> Array:
        """What the pods of the seconds at ``references`` that are still there in those at ``places`` can do, messages/s."""
        gone = self.gone_after[places] - self.gone_before[references]
        share = np.clip(1 - gone / np.maximum(self.working[references], 1), 0, 1)
        return np.asarray(self.rates[references] * share, dtype=np.float64)


@dataclass(frozen=True)
class Falls:
    """Each of the ``seconds`` beside its reference.

    ``judged`` are those with a reference and with work for every partition, ``dry`` those in which one is seen without work.
    Where a sample is missing before or after a second it is neither. ``begun`` is the place of the second in which the
    fall began that a second is in, its own place if it is in none. ``references`` are the places of their references.
    """

    seconds: Seconds
    judged: Flags
    dry: Flags
    begun: Places
    references: Places

    @property
    def shown(self) -> Array:
        """When each second is over, epoch s: what happens at its end is the least that it shows."""
        return self.seconds.starts + SECOND_S

    def able(self, reference: int | None = None) -> Array:
        """What each second's pods can do, messages/s: by its own reference, or by that of the second at ``reference``."""
        places = np.arange(len(self.begun))
        return self.seconds.able(places, self.references if reference is None else np.full_like(places, reference))


def falls(record: Record) -> Falls:
    """Read them. Raises :class:`NoData` without receipts, and without samples of each partition's lag."""
    lag = record.partition_lag
    if lag.empty:
        raise NoData("no sample of kafka_consumergroup_lag: what work there was is not known")
    first, last = float(lag["t"].min()) - LOOKBACK_S, min(float(lag["t"].max()), record.trial.times.get(ENDED, math.inf))
    starts, rates = Throughput(record.receipts).rolling(first, last, SECOND_S)
    if not len(starts):
        raise NoData("no sample of kafka_consumergroup_lag while the trial lasted")
    seconds = Seconds(
        starts=starts,
        rates=rates,
        working=_working(record.receipts, starts),
        gone_before=_gone(record, starts - LEAVING_S),
        gone_after=_gone(record, starts + SECOND_S),
    )
    best, able = _best(seconds)
    seen, dry = _work(record, starts)
    judged = (able > 0) & seen & ~dry
    return Falls(seconds, judged, dry, *_hold(seconds, best, able, judged))


def _working(receipts: pd.DataFrame, starts: Array) -> Array:
    """The pods that processed anything in the second from each of ``starts``."""
    each = [Throughput(own) for _, own in receipts.groupby("pod")]
    return np.asarray(np.sum([pod.by(starts + SECOND_S) > pod.by(starts) for pod in each], axis=0), dtype=np.float64)


def _gone(record: Record, times: Array) -> Array:
    """How many pods that a partition feeds were Ready no more by each of ``times``; a decreed step takes its pods at once."""
    if steps := record.trial.steps:
        at, ready = [-math.inf, *(step.t for step in steps)], [steps[0].before, *(step.after for step in steps)]
    else:
        at, ready = record.replicas["t"].tolist(), record.replicas["ready"].tolist()
    fed = np.minimum(ready, max(record.inputs.partitions, record.inputs.partitions_after or 0))
    gone = np.cumsum(np.maximum(0, -np.diff(fed, prepend=0)))
    return np.asarray(np.concatenate([[0.0], gone])[np.searchsorted(at, times, side="right")], dtype=np.float64)


def _best(seconds: Seconds) -> tuple[Places, Array]:
    """Of each second the one in its look-back by which its pods can do most, and how much; itself and 0 where it has none."""
    own = np.arange(len(seconds.starts), dtype=np.intp)
    best, able = own.copy(), np.zeros(len(own))
    for back in range(_SECOND, _LOOKBACK + 1):
        later = own[back:]
        found = seconds.able(later, later - back)
        better = later[found > able[later]]
        best[better], able[better] = better - back, found[found > able[later]]
    return best, able


def _work(record: Record, starts: Array) -> tuple[Flags, Flags]:
    """Of the second from each of ``starts``: whether all partitions have samples around it, and whether one has no work."""
    receipts, uncommitted_s = record.receipts, InFlight.of(record.inputs.workload, record.inputs.scale.time).most_s
    seen, dry = np.ones(len(starts), dtype=bool), np.zeros(len(starts), dtype=bool)
    for partition, rows in record.partition_lag.groupby("partition"):
        own = receipts[receipts["partition"] == partition]
        if own.empty:
            continue
        done, t = Throughput(own), rows["t"].to_numpy(dtype=np.float64)
        left = rows["lag"].to_numpy(dtype=np.float64) - (done.by(t) - done.by(t - uncommitted_s))
        without = np.concatenate([[0], np.cumsum(left <= 0)])
        first, last = np.searchsorted(t, starts, side="right") - 1, np.searchsorted(t, starts + SECOND_S, side="left")
        begun = starts + SECOND_S > own["start"].min()
        seen &= ~begun | ((first >= 0) & (last < len(t)))
        dry |= begun & (without[np.minimum(last, len(t) - 1) + 1] > without[np.maximum(first, 0)])
    return seen, dry


def _hold(seconds: Seconds, best: Places, able: Array, judged: Flags) -> tuple[Places, Places]:
    """Where the fall of each second began, and where its reference is.

    A reference is held until the rate is back at it, or a higher one is seen, or no second was judged for 3 s.
    """
    begun, references = np.arange(len(best), dtype=np.intp), best.copy()
    held: int | None = None
    first = last = 0
    for place in np.flatnonzero(judged).tolist():
        if place - last > _LOOKBACK:
            held = None
        last, own = place, int(best[place])
        if held is None:
            first, held = place, own
        elif able[place] > seconds.able(place, held):
            held = own
        if seconds.rates[place] < BACK * (able[place] if held == own else seconds.able(place, held)):
            begun[place], references[place] = first, held
        else:
            held = None
    return begun, references
