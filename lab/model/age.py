"""The age of the oldest uncommitted record of a partition, from the samples of the log's end. Pure; times in s.

The record at the committed offset was written when the log's end passed that offset, and the samples have seen the end. So no
record is fetched, no producer's clock is trusted, and no request is made beyond those for the lag in messages.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right


class Ends:
    """The log's end of one partition over the last ``horizon_s`` seconds."""

    __slots__ = ("_ends", "_horizon", "_times")

    def __init__(self, horizon_s: float) -> None:
        self._horizon = horizon_s
        self._times, self._ends = array("d"), array("q")

    def __len__(self) -> int:
        return len(self._times)

    def add(self, at: float, end: int) -> None:
        """Take a sample. An end before the last one is of another log: the samples of the old log are dropped."""
        if self._times and at <= self._times[-1]:
            return
        if self._ends and end < self._ends[-1]:
            del self._times[:], self._ends[:]
        self._times.append(at)
        self._ends.append(end)
        spent = bisect_right(self._times, at - self._horizon) - 1
        if spent > 0:
            del self._times[:spent], self._ends[:spent]

    def adopt(self, other: Ends) -> None:
        """Begin with the samples of ``other``, which may have another horizon."""
        for at, end in zip(other._times, other._ends, strict=True):
            self.add(at, end)

    def age(self, committed: int) -> float:
        """The age at the last sample of the record at ``committed``, s; 0 when there is no such record yet.

        Between two samples the log is assumed to have grown evenly. A record from before the first sample is as old as that
        sample, and as much older as the log needs to grow by the difference at its mean rate; without growth, no older. Raises
        ``IndexError`` without any sample.
        """
        now, end = self._times[-1], self._ends[-1]
        if committed >= end:
            return 0.0
        index = bisect_right(self._ends, committed)
        if index:
            before, after = self._ends[index - 1], self._ends[index]
            begin, over = self._times[index - 1], self._times[index]
            return now - (begin + (over - begin) * (committed - before) / (after - before))
        seen, grown = now - self._times[0], end - self._ends[0]
        return seen + ((self._ends[0] - committed) * seen / grown if grown else 0.0)
