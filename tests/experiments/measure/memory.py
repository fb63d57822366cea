"""Memory: how fast the lab's own processes grow, which bounds a trial's length; and what a consumer holds as lag grows."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

import numpy as np

from lab.errors import NoData
from lab.inputs.faults import KILL
from lab.judge.measure import Measure, detail, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.lag import LAST
from lab.record.store import Record
from tests.experiments.measure.cores import RESIDENT

FEWEST = 20  # readings in half a trial: one takes some ten seconds
FEWEST_TRIALS = 3  # in a third of a session
CONSUMERS = "lab.programs.consumer"
BYTES_PER_GIB = 2**30
HOUR_S = 3600.0


class MemoryGrowth(Measure):
    """The growth of the resident memory of one kind of process, in the second half of the trial, over the machine's memory.

    The slope is that of least squares over the readings of a kind, divided by the number of its processes at each, and is
    multiplied by the last number. The kind that grows fastest counts. In the first half programs fill their caches, and pods
    are still being added.
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
        str(name): float(np.polyfit(rows["t"] - middle, rows["rss_bytes"] / rows["count"], 1)[0] * rows["count"].iloc[-1])
        * HOUR_S
        for name, rows in late.groupby("process")
        if len(rows) == readings
    }
    if not slopes:
        raise NoData("no process was there in all of the second half of the trial")
    fastest = max(slopes, key=slopes.__getitem__)
    return MemoryGrowth(share_an_hour=slopes[fastest] / (record.trial.machine.memory_gib * BYTES_PER_GIB), process=fastest)


def growth_over(records: Sequence[Record]) -> dict[str, float]:
    """How many times the memory, and the number, of a kind's processes is in the last third what it is in the middle third.

    The records are of one session, in the order of time: in the first third programs fill their caches. Of each there is the
    median over the second half of its readings: Spark's workers of the trial before live for a minute into it, which is about
    half of a short one. A kind counts that is in all of both thirds; of pods, whose number a policy decides, the memory alone.
    A trial in which a component was killed does not count for it, as it began anew: the API server has half of its memory then.
    Raises :class:`NoData` for fewer than FEWEST_TRIALS in a third, for a third of which none counts for a component, and for a
    record without a reading.
    """
    third = len(records) // 3
    if third < FEWEST_TRIALS:
        raise NoData(f"{len(records)} trials, fewer than {3 * FEWEST_TRIALS}")
    recent = records[-2 * third :]
    held, killed = [_held_by(one) for one in recent], [_killed(one) for one in recent]
    kinds = set[str].intersection(*({*one, *anew} for one, anew in zip(held, killed, strict=True)))
    found = {}
    for name in sorted(kinds & set[str].union(*map(set, held))):
        whole = [None if name in anew else one[name] for one, anew in zip(held, killed, strict=True)]
        before, after = ([one for one in some if one is not None] for some in (whole[:third], whole[third:]))
        if not before or not after:
            raise NoData(f"{name} was killed in each trial of a third")
        found[name] = median(after) / median(before)
    return found


def _killed(record: Record) -> set[str]:
    """The components that a fault killed, and the names of their numbers."""
    names = {one.component for one in record.trial.faults if one.fault == KILL and not one.skipped}
    return names | {f"{name}, number" for name in names}


def _held_by(record: Record) -> dict[str, float]:
    """The resident memory of a process of each kind, bytes, and their number; none of what had ended when it was read."""
    seen = record.memory[record.memory["rss_bytes"] > 0]
    seen = seen[seen["t"] >= (seen["t"].min() + seen["t"].max()) / 2]
    each = (seen["rss_bytes"] / seen["count"]).groupby(seen["process"]).median()
    numbers = seen[seen["process"] != CONSUMERS].groupby("process")["count"].median()
    return {str(name): float(size) for name, size in each.items()} | {
        f"{name}, number": float(n) for name, n in numbers.items()
    }


class PodMemory(Measure):
    """The resident memory of a consumer: the median over the pods of each one's median.

    ``lag_over_baseline`` and ``lag_over_middle`` are the lag at the same times, at its largest. An HPA on memory proposes its
    replicas times ``growth``, and within its tolerance of 10 % it proposes none.
    """

    baseline_mb = number("MB", "memory of a pod in the baseline", UNSCALED)
    late_mb = number("MB", "memory of a pod in the spike's last third", UNSCALED)
    growth = number("x", "memory of a pod in the spike's last third over that in the baseline", UNSCALED)
    lag_over_baseline = number("x", "largest lag in the spike's last third over that in the baseline", UNSCALED)
    late_growth = number("x", "memory of a pod in the spike's last third over that in its middle third", UNSCALED)
    lag_over_middle = number("x", "largest lag in the spike's last third over that in its middle third", UNSCALED)


@measure
def pod_memory(record: Record) -> PodMemory:
    """Compare the last third of the spike with the baseline and with its middle third.

    There is no data where Prometheus had no pod's memory in one of them.
    """
    start, end = record.span("spike")
    third = (end - start) * LAST
    spans = record.span("baseline"), (end - 2 * third, end - third), (end - third, end)
    held_before, held_middle, held_late = (_held(record, span) for span in spans)
    before, middle, late = (float(record.lag_within(*span)["lag"].max()) for span in spans)
    return PodMemory(
        baseline_mb=held_before / 1e6,
        late_mb=held_late / 1e6,
        growth=held_late / held_before,
        lag_over_baseline=late / before if before > 0 else None,
        late_growth=held_late / held_middle,
        lag_over_middle=late / middle if middle > 0 else None,
    )


def _held(record: Record, span: tuple[float, float]) -> float:
    samples = record.samples
    mine = samples[(samples["metric"] == RESIDENT) & samples["pod"].isin(list(record.pods)) & samples["t"].between(*span)]
    if mine.empty:
        raise NoData(f"no memory of a consumer from {span[0]:.0f} to {span[1]:.0f}")
    return float(mine.groupby("pod")["value"].median().median())
