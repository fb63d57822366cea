"""Commits of a group, as its lag exporter read them: each offset was the committed one at some moment of its scrape."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from lab.errors import NoData
from lab.measure.throughput import Array
from lab.record.store import Record
from lab.record.views import COMMITTED

READ_S = 1.0  # a scrape is over by its timeout: its offsets were read at most so long after its time


@dataclass(frozen=True)
class Commits:
    """The ``offsets`` that the group had committed of a partition, read within READ_S after each of ``times`` (epoch s)."""

    times: Array
    offsets: Array

    def within(self, begin: float, end: float) -> int:
        """The offset that the group had surely committed at some moment from ``begin`` to ``end`` (epoch s), 0 for none."""
        seen = self.offsets[(self.times > begin) & (self.times + READ_S <= end)]
        return int(seen.max(initial=0))

    @property
    def fallen(self) -> int:
        """By how many messages at most an offset was below one that was read before it. One scrape ends before the next."""
        return int((np.maximum.accumulate(self.offsets) - self.offsets).max(initial=0))


def commits(record: Record) -> dict[int, Commits]:
    """Those of each partition with messages that were processed more than once; no data like :func:`commits_of`."""
    partitions = {one.partition for one in record.reconciliation.doubled}
    return commits_of(record, partitions) if partitions else {}


def commits_of(record: Record, partitions: Collection[int]) -> dict[int, Commits]:
    """Those of each of ``partitions``; no data where no committed offset was scraped at all."""
    seen = record.committed
    if seen.empty:
        raise NoData(f"no sample of {COMMITTED}")
    rows = {number: seen[seen["partition"] == number] for number in partitions}
    return {number: Commits(own["t"].to_numpy(), own["offset"].to_numpy()) for number, own in rows.items()}
