"""Lateness: for how long the group was late by more than an objective."""

from __future__ import annotations

from lab.judge.measure import quantity
from lab.measure.age import waiting
from lab.record.store import Record


@quantity("s", "time late by more than the objective")
def behind(record: Record, objective_s: float) -> float:
    """The seconds, from the profile's start to the trial's end, in which an event waits that is older than ``objective_s``.

    Each event waits for its own receipt, so one partition that stands still is late while all others keep up. The simulator
    knows no single event: what it calls late is of all partitions together (:mod:`lab.foresee.lateness`) and is less. No data
    without a ledger.
    """
    return waiting(record).late(objective_s, record.profile_start, record.end)
