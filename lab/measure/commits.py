"""Commits of a group by what was scraped: the log's end then, less its lag. Bounds, as both were read at some moment.

Where that tells nothing, a member's commits are bounded by when they are due.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.inputs.events import KillBroker, StartBrokers
from lab.inputs.faults import BROKER, STORE
from lab.measure.delivery import tallied
from lab.measure.throughput import Array
from lab.record.store import Record

READ_S = 1.0  # a scrape is over by its timeout: its offsets were read at most so long after its time
STORED_S = 1.0  # a message is in the log so long after it was handed over; without faults of the broker it takes some ms
BACK_S = 15.0  # by which a component that was struck works again: it starts in 3 s on a quiet machine
ANSWER_S = 2.0  # a receipt is durable, and a commit answered, so long after it was sent; without a fault it takes some ms


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


def between_s(record: Record) -> float:
    """The longest time from one commit of a member to its next, s: an interval, and until it is through with what it took.

    A store that all pods share works the slower for each the more of them there are.
    """
    work, pods = record.inputs.workload, max(1, record.policy.max_replicas)
    slower = work.rate * pods / work.group_rate(pods)
    return work.commit_interval_at(record.scale.time) + slower * (work.batch_ms + work.poll_ms) / 1000


def uncommitted_since(record: Record, pod: str, t: float) -> float:
    """From when on (epoch s) what ``pod`` had done by ``t`` may not be committed, in a trial with brokers of its own.

    Of its last two commits the one may be under way. While a broker is away none is answered, as it may coordinate the group,
    and none is asked for while a batch waits for the store. Nothing came of one that was refused. It is minus infinity where
    lag tells what was committed (:func:`commits`), and for your own consumer, of which nobody knows when it commits.
    """
    if not record.inputs.brokers or record.inputs.workload.own:
        return -math.inf
    last_s = 2 * between_s(record) + ANSWER_S
    struck = (one for one in record.trial.faults if one.component in (BROKER, STORE) and not one.skipped)
    without = [(one.t, (one.until or one.t) + BACK_S) for one in struck]
    moved = (row for row in record.trial.events if row["event"] in (KillBroker.name, StartBrokers.name))
    without += [(float(row["t"]), float(row["until"]) + BACK_S) for row in moved]
    without += [(one.t - one.seconds, one.t) for one in record.reports("commit_failed") if one.pod == pod]
    since = t - last_s
    for begun, over in sorted(without, reverse=True):
        if begun <= t and over >= since:
            since = min(since, begun - last_s)
    return since
