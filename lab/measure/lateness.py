"""Lateness: for how long the group was late by more than an objective, and by how much at the end of a spike.

Late is an event that waits: each event counts from its own time to its own receipt, whatever its partition.
"""

from __future__ import annotations

from lab.judge.measure import quantity
from lab.measure.age import waiting
from lab.measure.lag import LAST
from lab.record.store import Record


@quantity("s", "time late by more than the objective")
def behind(record: Record, objective_s: float) -> float:
    """The seconds, from the profile's start to the trial's end, in which an event waits that is older than ``objective_s``.

    Each event waits for its own receipt, so one partition that stands still is late while all others keep up. The simulator
    knows no single event: what it calls late is of all partitions together (:func:`lab.foresee.curve.late`) and is less. There
    is no data without a ledger.
    """
    return waiting(record).late(objective_s, record.profile_start, record.end)


@quantity("s", "median age of the oldest event that waits, late in the spike")
def time_behind(record: Record) -> float:
    """The median over the spike's last third of the age of the oldest event that waits; 0 while none does.

    It is no lag over rate: where one partition is served slower than the others, its oldest event counts. There is no data
    without a spike, and without a ledger.
    """
    start, end = record.span("spike")
    return waiting(record).median(end - (end - start) * LAST, end)
