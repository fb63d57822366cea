"""Time lag: how long after its time each message was processed, s; what an SLO of "within so many seconds" speaks of."""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.age import waiting
from lab.measure.lag import LAST
from lab.record.store import Record


class TimeLag(Measure):
    """From a message's own time to its first durable receipt, for the messages due in the last third of the spike.

    A message without a receipt counts with its age at the trial's end, which is a lower bound.
    """

    messages = number("messages", "messages due in the last third of the spike")
    median_s = number("s", "median age when processed")
    p95_s = number("s", "95th percentile of age when processed")
    worst_s = number("s", "largest age when processed")
    share = number("of messages", "share of the messages with a receipt")


@measure
def timelag(record: Record) -> TimeLag:
    """Measure the spike's last third; no data when there was no spike, or nothing due in it."""
    start, end = record.span("spike")
    events = waiting(record)
    chosen = (events.at >= end - (end - start) * LAST) & (events.at < end)
    if not chosen.any():
        raise NoData("no message was due in the spike's last third")
    at, done = events.at[chosen], events.done[chosen]
    late = np.minimum(done, record.end) - at
    median, p95 = (float(value) for value in np.percentile(late, [50, 95]))
    share = float(np.isfinite(done).mean())
    return TimeLag(messages=len(late), median_s=median, p95_s=p95, worst_s=float(late.max()), share=share)
