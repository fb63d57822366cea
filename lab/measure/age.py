"""Age: how old events are when they are processed, and how old the oldest is that waits; each event by its own receipt."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.record.store import Record

Floats = npt.NDArray[np.float64]
STEP_S = 0.01  # the age of the oldest waiting event is read at moments so far apart, where a median of it is asked for


@dataclass(frozen=True)
class Waiting:
    """The events of a record in order of their time ``at``, and when each was ``done``, epoch s; infinity where it never was.

    An event waits from its time to its first receipt or, of a message that was given up, to its dead letter.
    """

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


def waiting(record: Record) -> Waiting:
    """The events of ``record``. Raises :class:`NoData` without a ledger that has their times, and without receipts."""
    events = births(record)
    done = processed_at(events, record.receipts)
    done = np.fmin(done, _buried_at(record, events))
    return Waiting(events["at"].to_numpy(), np.where(np.isnan(done), np.inf, done))


@quantity("s", "greatest age that an event reached")
def oldest(record: Record) -> float:
    """The greatest age that an event reached, at its receipt or, without one, at the record's end; no data without a ledger."""
    events = waiting(record)
    return float((np.minimum(events.done, record.end) - events.at).max())


@quantity("s", "age of the first event at its receipt")
def first(record: Record) -> float:
    """The age of the very first event when its receipt came; no data when it has none."""
    events = births(record).head(1)
    done = float(processed_at(events, record.receipts)[0])
    if np.isnan(done):
        raise NoData("the first event was never processed")
    return done - float(events["at"].iloc[0])


def births(record: Record) -> pd.DataFrame:
    """The events as produced, in order of time: partition, offset and ``at``, epoch s. Raises :class:`NoData` for none."""
    events = record.births
    if events.empty:
        raise NoData("nothing was produced")
    return events


def processed_at(events: pd.DataFrame, receipts: pd.DataFrame) -> Floats:
    """When each of ``events`` (partition, offset) first had a receipt, epoch s; NaN for one that has none."""
    found = np.full(len(events), np.nan)
    partitions, offsets = events["partition"].to_numpy(), events["offset"].to_numpy()
    for partition, own in receipts.sort_values(["first", "end"], kind="stable").groupby("partition"):
        places = np.flatnonzero(partitions == partition)
        first, last, ends = (own[name].to_numpy() for name in ("first", "last", "end"))
        if bool((first[1:] <= np.maximum.accumulate(last)[:-1]).any()):
            # Where work was repeated receipts overlap: of all that cover an offset the earliest end counts.
            for at, lower, upper in zip(ends, first, last, strict=True):
                covered = places[(offsets[places] >= lower) & (offsets[places] <= upper)]
                found[covered] = np.fmin(found[covered], at)
        else:
            index = np.searchsorted(first, offsets[places], side="right") - 1
            within = (index >= 0) & (offsets[places] <= last[np.maximum(index, 0)])
            found[places[within]] = ends[index[within]]
    return found


def _buried_at(record: Record, events: pd.DataFrame) -> Floats:
    """When each of ``events`` became a dead letter, epoch s; NaN for one that did not."""
    try:
        letters = record.dead_letters
    except NoData:  # a trial without a dead-letter topic
        return np.full(len(events), np.nan)
    when = letters.groupby(["partition", "offset"])["failed"].min()
    places = pd.MultiIndex.from_frame(events[["partition", "offset"]])
    return when.reindex(places).to_numpy(dtype=float)
