"""Time lag: how long after its time each message was processed, s; what an SLO of "within so many seconds" speaks of."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.measure.age import ledger
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
    events = ledger(record)
    chosen = events[(events["at"] >= end - (end - start) * LAST) & (events["at"] < end)]
    if chosen.empty:
        raise NoData("no message was due in the spike's last third")
    done = processed_at(chosen, record.receipts)
    waiting = np.isnan(done)
    late = np.where(waiting, record.end, done) - chosen["at"].to_numpy()
    median, p95 = (float(value) for value in np.percentile(late, [50, 95]))
    share = 1 - float(waiting.mean())
    return TimeLag(messages=len(late), median_s=median, p95_s=p95, worst_s=float(late.max()), share=share)


def processed_at(events: pd.DataFrame, receipts: pd.DataFrame) -> npt.NDArray[np.float64]:
    """When each of ``events`` (partition, offset) first had a receipt, epoch s; NaN for one that has none."""
    found = np.full(len(events), np.nan)
    partitions, offsets = events["partition"].to_numpy(), events["offset"].to_numpy()
    for partition, own in receipts.sort_values(["first", "end"], kind="stable").groupby("partition"):
        places = np.flatnonzero(partitions == partition)
        first, last, ends = (own[name].to_numpy() for name in ("first", "last", "end"))
        if bool((first[1:] <= np.maximum.accumulate(last)[:-1]).any()):
            # Where work was repeated receipts overlap: of all that cover an offset the earliest end counts.
            for at, lower, upper in zip(ends, first, last, strict=True):
                covered = places[(offsets[places] >= lower) & (offsets[places] <= upper)]
                found[covered] = np.fmin(found[covered], at)
        else:
            index = np.searchsorted(first, offsets[places], side="right") - 1
            within = (index >= 0) & (offsets[places] <= last[np.maximum(index, 0)])
            found[places[within]] = ends[index[within]]
    return found
