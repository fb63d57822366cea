"""The evening and the batch: when a group first went up, what it caught up with, and how it came back to zero."""

from __future__ import annotations

from collections.abc import Sequence

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.judge.origin import UNSCALED
from lab.measure.lag import moment
from lab.record.store import Record


@quantity("s", "first step up after T+0, at real time", UNSCALED)
def first_step(record: Record) -> float:
    """From the profile's leaving its baseline to the first step up from then on, times the scale's compression.

    There is no data without a step.
    """
    steps = [step.t for step in record.scalings if step.after > step.before and step.t >= record.zero]
    if not steps:
        raise NoData("the group was never scaled up")
    return (steps[0] - record.zero) * record.scale.time


@quantity("x", "lag over what the floor may hold")
def lag_over_floor(record: Record, at: float) -> float:
    """The lag ``at`` s after T+0 in real time over lagThreshold times the floor; no data after the record's end."""
    return moment(record, at).lag.number / (record.lag_threshold * record.policy.min_replicas)


@quantity("pods", "replicas wanted that are furthest off those of the rows")
def off_rows(record: Record, rows: Sequence[tuple[float, float]]) -> float:
    """The largest difference over ``rows``: (s after T+0 at real time, replicas). No data for one after the record's end."""
    return max(abs(moment(record, at).wanted.number - replicas) for at, replicas in rows)


@quantity("pods", "replicas given back in the last step to zero")
def last_step_to_zero(record: Record) -> int:
    """The replicas before the last step; no data when it did not lead to zero."""
    steps = record.scalings
    if not steps or steps[-1].after != 0:
        raise NoData("the group did not come back to zero")
    return steps[-1].before
