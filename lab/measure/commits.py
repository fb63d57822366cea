"""Commits of a group by what was scraped: the log's end then, less its lag. They are bounds from below, and no more."""

from __future__ import annotations

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
    """The ``least`` offset that the group had committed of a partition, read within READ_S after each of ``times``, epoch s."""

    times: Array
    least: Array

    def within(self, begin: float, end: float) -> int:
        """The offset that the group had surely committed at some moment from ``begin`` to ``end`` (epoch s), 0 for none."""
        seen = self.least[(self.times > begin) & (self.times + READ_S <= end)]
        return int(seen.max(initial=0))


def commits(record: Record) -> dict[int, Commits]:
    """Those of each partition with messages that were processed more than once: all events are read for them.

    The log's end is counted from the times of its messages, those that were in it by then. So there are none without a ledger
    of events or a producer's tally, and where brokers of the trial's own are struck: a message may then be stored much later.
    """
    partitions = {one.partition for one in record.reconciliation.doubled}
    if record.inputs.brokers or not partitions:
        return {}
    try:
        late_s = max(tallied(record, "late_max_ms")[0]) / 1000
        stored: dict[int, list[Array]] = {number: [] for number in partitions}
        for numbers, times in record.event_parts("partition", "ts"):  # ns
            for number, own in stored.items():
                own.append(times[numbers == number] / 1e9)
        lag = record.partition_lag
    except NoData:
        return {}
    ends = {number: np.sort(np.concatenate([*own, np.empty(0)])) + STORED_S + late_s for number, own in stored.items()}
    return {number: _commits(lag[lag["partition"] == number], stored) for number, stored in ends.items()}


def _commits(rows: pd.DataFrame, stored: Array) -> Commits:
    """By samples of lag, and the times (epoch s) by which each message was ``stored``, in order."""
    times = rows["t"].to_numpy(dtype=np.float64)
    return Commits(times, np.searchsorted(stored, times, side="right") - rows["lag"].to_numpy(dtype=np.float64))
