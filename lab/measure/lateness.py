"""Lateness: for how long the group was late by more than an objective, and by how much at the end of a spike.

Late is an event that waits: each event counts from its own time to its own receipt, whatever its partition.
"""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.measure.lag import LAST
from lab.record.store import Record


@quantity("s", "time late by more than the objective")
def behind(record: Record, objective_s: float) -> float:
    """The seconds, from the profile's start to the trial's end, in which an event waits that is older than ``objective_s``.

    Each event waits for its own receipt, so one partition that stands still is late while all others keep up. The simulator
    knows no single event: what it calls late is of all partitions together (:func:`lab.foresee.curve.late`) and is less. There
    is no data without a ledger.
    """
    return record.waiting.late(objective_s, record.profile_start, record.end)


@quantity("s", "median age of the oldest event that waits, late in the spike")
def time_behind(record: Record) -> float:
    """The median over the spike's last third of the age of the oldest event that waits; 0 while none does.

    It is no lag over rate: where one partition is served slower than the others, its oldest event counts. There is no data
    without a spike, and without a ledger.
    """
    start, end = record.span("spike")
    return record.waiting.median(end - (end - start) * LAST, end)


@quantity("of all events", "share of events that were done in time")
def share_in_time(record: Record, objective_s: float) -> float:
    """The share of all events whose receipt, or dead letter, came within ``objective_s`` of their own time (0 to 1).

    An event that has none is not in time. There is no data without a ledger.
    """
    events = in_time = 0
    for at, done in record.lives_of_events():
        events += len(at)
        in_time += int(np.count_nonzero(done - at <= objective_s))
    if not events:
        raise NoData("nothing was produced")
    return in_time / events
