"""Pod memory: what a consumer holds while lag grows, beside what it held before."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.lag import LAST
from lab.record.store import Record

RESIDENT = "process_resident_memory_bytes"


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
