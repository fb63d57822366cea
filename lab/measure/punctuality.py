"""Punctuality: how late the producer handed its events to its client; whether the load that was offered is the profile's."""

from __future__ import annotations

from lab.errors import NoData
from lab.inputs.inputs import PRODUCER
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.delivery import tallied
from lab.record.store import Record


class Punctuality(Measure):
    """How long after its due time the oldest event of a tick was handed over, over the ticks of 5 ms; of the worst producer.

    The producer is an open loop: it catches up with a late send and skips none. It is a gate of validity, and no claim about
    the group: where the 99th percentile comes near the times that a trial measures, the trial did not offer its profile.
    """

    median_ms = number("ms", "median lateness of the producer", UNSCALED)
    p99_ms = number("ms", "99th percentile of the producer's lateness", UNSCALED)
    worst_ms = number("ms", "largest lateness of the producer", UNSCALED)


@measure
def punctuality(record: Record) -> Punctuality:
    """Read the producer's tally; no data without one, or where another program than the lab's producer drove the traffic."""
    if (driver := record.inputs.driver) != PRODUCER:
        raise NoData(f"{driver} drove the traffic, and keeps no schedule")
    median, p99, worst = map(max, tallied(record, "late_p50_ms", "late_p99_ms", "late_max_ms"))
    return Punctuality(median_ms=median, p99_ms=p99, worst_ms=worst)
