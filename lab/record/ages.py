"""How long events waited: each from its own time to its first receipt, in passes over the events that hold a part of them.

Held are the receipts and the events that no earlier one outlasts, at most one a receipt: the oldest that waits is among
these. A row for each of the hundred million events of an hour's trial took 10 GB.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

Floats = npt.NDArray[np.float64]
Longs = npt.NDArray[np.int64]
Events = tuple[Longs, ...]  # partition, offset, time in ns since the epoch
Lives = tuple[Floats, Floats]  # when an event began to wait and when it was done, epoch s
STEP_S = 0.01  # the age of the oldest waiting event is read at moments so far apart, where a median of it is asked for
PARTITION = 2**43  # a partition's share of the keys: more offsets than a log has
MOST_LIVES = 4_000_000  # that are held before those are left out that another outlasts


@dataclass(frozen=True)
class Coverage:
    """When each offset was first processed: from each key of ``starts`` to the next at ``ends``, epoch s, or infinity."""

    starts: Longs
    ends: Floats

    @classmethod
    def of(cls, receipts: pd.DataFrame) -> Coverage:
        """The coverage by ``receipts`` (partition, first, last, end): of all that cover an offset the earliest end counts."""
        partition, first, last = (receipts[name].to_numpy(np.int64) for name in ("partition", "first", "last"))
        opens, closes = _keys(partition, first), _keys(partition, last) + 1
        starts = np.unique(np.concatenate(([np.iinfo(np.int64).min], opens, closes)))
        low, high = np.searchsorted(starts, opens), np.searchsorted(starts, closes)
        # A receipt covers one stretch, and more of them where work was repeated.
        stretches = high - low
        places = np.arange(stretches.sum()) + np.repeat(low - (np.cumsum(stretches) - stretches), stretches)
        ends = np.full(len(starts), np.inf)
        np.fmin.at(ends, places, np.repeat(receipts["end"].to_numpy(np.float64), stretches))
        return cls(starts, ends)

    def at(self, partition: Longs, offset: Longs) -> Floats:
        """When these offsets were done, epoch s."""
        ends: Floats = self.ends[np.searchsorted(self.starts, _keys(partition, offset), side="right") - 1]
        return ends


@dataclass(frozen=True)
class Waiting:
    """Events by their time ``at``, and when each was ``done`` by a receipt or dead letter, epoch s; infinity for never."""

    at: Floats
    done: Floats

    def oldest(self, times: Floats) -> Floats:
        """The age of the oldest event that waits at each of ``times``, s; 0 where none does."""
        # The oldest that waits at t is the first by time that is done after t, so the first where the maximum so far is.
        first = np.searchsorted(np.maximum.accumulate(self.done), times, side="right")
        born = np.append(self.at, np.inf)[first]
        ages: Floats = np.maximum(0.0, times - born)
        return ages

    def late(self, objective_s: float, start: float, end: float) -> float:
        """The seconds from ``start`` to ``end`` in which an event waits that is older than ``objective_s``."""
        until = np.maximum.accumulate(self.done)
        since = np.maximum(np.concatenate(([-np.inf], until[:-1])), self.at + objective_s)
        return float(np.maximum(0.0, np.clip(until, start, end) - np.clip(since, start, end)).sum())

    def median(self, start: float, end: float) -> float:
        """The median over time of the age of the oldest event that waits, from ``start`` to ``end``, s."""
        return float(np.median(self.oldest(np.arange(start, end, STEP_S))))

    def outlasting(self) -> Waiting:
        """Those of the events that none before them outlasts; whatever the others ask, they give the same answer."""
        lasting = self.done > np.concatenate(([-np.inf], np.maximum.accumulate(self.done)[:-1]))
        return Waiting(self.at[lasting], self.done[lasting])


def lives(parts: Iterable[Events], coverage: Coverage) -> Iterator[Lives]:
    """When the events of each of ``parts`` began to wait and when they were done, in order of their times within a part."""
    for partition, offset, ns in parts:
        order = np.argsort(ns, kind="stable")
        yield ns[order].astype(np.float64) / 1e9, coverage.at(partition, offset)[order]


def waiting(parts: Iterable[Lives]) -> Waiting:
    """The events of all ``parts`` that no earlier one outlasts."""
    whole, held, count = _together([]), [], 0
    for at, done in parts:
        held.append(Waiting(at, done).outlasting())
        count += len(held[-1].at)
        if count > MOST_LIVES:
            whole, held, count = _together([whole, *held]), [], 0
    return _together([whole, *held])


def _together(parts: list[Waiting]) -> Waiting:
    at, done = (np.concatenate([np.empty(0), *(getattr(one, name) for one in parts)]) for name in ("at", "done"))
    order = np.argsort(at, kind="stable")
    return Waiting(at[order], done[order]).outlasting()


def _keys(partition: Longs, offset: Longs) -> Longs:
    keys: Longs = partition.astype(np.int64) * PARTITION + offset
    return keys
