"""Commits of a group by what was scraped: the log's end then, less its lag. Bounds, as both were read at some moment."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.measure.delivery import tallied
from lab.measure.throughput import Array
from lab.record.store import Record

READ_S = 1.0  # a scrape is over by its timeout: its offsets were read at most so long after its time
STORED_S = 1.0  # a message is in the log so long after it was handed over; without faults of the broker it takes some ms


@dataclass(frozen=True)
class Commits:
    """The ``least`` and ``most`` that the group had committed of a partition, read within READ_S after each of ``times``.

    These are offsets, and epoch s.
    """

    times: Array
    least: Array
    most: Array

    def within(self, begin: float, end: float) -> int:
        """The offset that the group had surely committed at some moment from ``begin`` to ``end`` (epoch s), 0 for none."""
        seen = self.least[(self.times > begin) & (self.times + READ_S <= end)]
        return int(seen.max(initial=0))

    @property
    def fallen(self) -> int:
        """By how many messages at least what was committed fell from an earlier reading to a later one."""
        highest = np.concatenate([[0.0], np.maximum.accumulate(self.least)])
        earlier = highest[np.searchsorted(self.times + READ_S, self.times, side="right")]
        return int((earlier - self.most).max(initial=0))


def commits(record: Record) -> dict[int, Commits]:
    """Those of each partition with messages that were processed more than once; none where they are not known."""
    partitions = {one.partition for one in record.reconciliation.doubled}
    try:
        return commits_of(record, partitions) if partitions else {}
    except NoData:
        return {}


def commits_of(record: Record, partitions: Collection[int]) -> dict[int, Commits]:
    """Those of each of ``partitions``: all events are read for them.

    The log's end is counted from the times of its messages, those that were in it by then. So there are no data without a
    ledger of events or a producer's tally, and with brokers of the trial's own: a message may be stored much later in them.
    """
    if record.inputs.brokers:
        raise NoData("a broker of the trial's own may store a message much later than it was handed over")
    (late_ms,) = tallied(record, "late_max_ms")
    handed: dict[int, list[Array]] = {number: [np.array([])] for number in partitions}
    for numbers, times in record.event_parts("partition", "ts"):  # ns
        for number, own in handed.items():
            own.append(times[numbers == number] / 1e9)
    lag, late_s = record.partition_lag, STORED_S + max(late_ms) / 1000
    parts = {number: np.sort(np.concatenate(own)) for number, own in handed.items()}
    return {number: _commits(lag[lag["partition"] == number], own, late_s) for number, own in parts.items()}


def _commits(rows: pd.DataFrame, handed: Array, late_s: float) -> Commits:
    """By samples of lag, and the times (epoch s) at which messages were ``handed`` over, in order; each was in the log soon."""
    times, lag = rows["t"].to_numpy(dtype=np.float64), rows["lag"].to_numpy(dtype=np.float64)
    least = np.searchsorted(handed + late_s, times, side="right") - lag
    return Commits(times, least, np.searchsorted(handed, times + READ_S, side="right") - lag)
