"""Time lag: how long after its time each message was processed, s; what an SLO of "within so many seconds" speaks of."""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
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
    begin, over = end - (end - start) * LAST, record.end
    late, covered = [np.empty(0)], 0  # 8 bytes for each of these messages: a percentile needs them all
    for at, done in record.lives_of_events():
        chosen = (at >= begin) & (at < end)
        late.append(np.minimum(done[chosen], over) - at[chosen])
        covered += int(np.isfinite(done[chosen]).sum())
    ages = np.concatenate(late)
    if not len(ages):
        raise NoData("no message was due in the spike's last third")
    worst = float(ages.max())
    median, p95 = (float(value) for value in np.percentile(ages, [50, 95], overwrite_input=True))
    return TimeLag(messages=len(ages), median_s=median, p95_s=p95, worst_s=worst, share=covered / len(ages))
