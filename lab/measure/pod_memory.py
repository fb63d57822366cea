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

    ``lag_over_baseline`` is the lag at the same times, at its largest. An HPA on memory proposes its replicas times ``growth``,
    and within its tolerance of 10 % it proposes none.
    """

    baseline_mb = number("MB", "memory of a pod in the baseline", UNSCALED)
    late_mb = number("MB", "memory of a pod in the spike's last third", UNSCALED)
    growth = number("x", "memory of a pod in the spike's last third over that in the baseline", UNSCALED)
    lag_over_baseline = number("x", "largest lag in the spike's last third over that in the baseline", UNSCALED)


@measure
def pod_memory(record: Record) -> PodMemory:
    """Compare the baseline with the last third of the spike. There is no data where Prometheus had no pod's memory in one."""
    start, end = record.span("spike")
    before, late = record.span("baseline"), (end - (end - start) * LAST, end)
    held_before, held_late = _held(record, before), _held(record, late)
    lags = [float(record.lag_within(*span)["lag"].max()) for span in (before, late)]
    return PodMemory(
        baseline_mb=held_before / 1e6,
        late_mb=held_late / 1e6,
        growth=held_late / held_before,
        lag_over_baseline=lags[1] / lags[0] if lags[0] > 0 else None,
    )


def _held(record: Record, span: tuple[float, float]) -> float:
    samples = record.samples
    mine = samples[(samples["metric"] == RESIDENT) & samples["pod"].isin(list(record.pods)) & samples["t"].between(*span)]
    if mine.empty:
        raise NoData(f"no memory of a consumer from {span[0]:.0f} to {span[1]:.0f}")
    return float(mine.groupby("pod")["value"].median().median())
