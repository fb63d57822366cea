"""Memory: how fast the lab's own processes grow, which says how long a trial may last."""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.record.store import Record

FEWEST = 20  # readings in half a trial: one takes some ten seconds
BYTES_PER_GIB = 2**30
HOUR_S = 3600.0


class MemoryGrowth(Measure):
    """The growth of the resident memory of one process, in the second half of the trial, over the machine's memory.

    The slope is that of least squares over the readings of one kind of process, divided by their number. The kind that grows
    fastest counts. In the first half programs fill their caches, and pods are still being added.
    """

    share_an_hour = number("1/h", "growth of the fastest growing process, as a share of the machine's memory", UNSCALED)
    process = detail(str, "the process that grows fastest")


@measure
def memory_growth(record: Record) -> MemoryGrowth:
    """Measure the growth. There is no data for a kind that was not there all the time, and for a trial of a few minutes."""
    seen = record.memory
    seen = seen[seen["t"].between(record.driven, record.end)]
    if seen.empty:
        raise NoData("no reading of the memory while the trial was driven")
    middle = (record.driven + record.end) / 2
    late = seen[seen["t"] >= middle]
    readings = late["t"].nunique()
    if readings < FEWEST:
        raise NoData(f"{readings} readings of the memory in the second half of the trial, fewer than {FEWEST}")
    slopes = {
        str(name): float(np.polyfit(rows["t"] - middle, rows["rss_bytes"] / rows["count"], 1)[0]) * HOUR_S
        for name, rows in late.groupby("process")
        if len(rows) == readings
    }
    if not slopes:
        raise NoData("no process was there in all of the second half of the trial")
    fastest = max(slopes, key=slopes.__getitem__)
    return MemoryGrowth(share_an_hour=slopes[fastest] / (record.trial.machine.memory_gib * BYTES_PER_GIB), process=fastest)
