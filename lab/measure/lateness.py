"""Lateness: for how long the group was behind by more than an objective."""

from __future__ import annotations

from lab.foresee.curve import Arrivals, late
from lab.judge.measure import quantity
from lab.measure.prediction import recorded
from lab.record.store import Record


@quantity("s", "time behind by more than the objective")
def behind(record: Record, objective_s: float) -> float:
    """Seconds of the profile in which the oldest unprocessed event was older than ``objective_s``.

    By the lag of all partitions together, so the hottest partition's may be longer. No data without samples.
    """
    return late(recorded(record), Arrivals(record.profile), objective_s)
