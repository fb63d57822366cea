"""Signal: the metric as the HPA and KEDA saw it, and the times between its changes."""

from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate, pairwise
from statistics import median

from lab.errors import NoData
from lab.inputs.scaledobject import ScaledObject
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.model import hpa_log
from lab.record.hpas import EXTERNAL, RESOURCE
from lab.record.store import Record

Seen = tuple[float, dict[str, float]]


class Signal(Measure):
    """The HPA's metric in its own status: external (lag, messages) or resource (percent of the request).

    ``refreshes`` counts changes of the value from the spike's start to the profile's end. The status changes only with the
    value, so a sync that sees the same value is not counted. ``highest`` is the largest value at any time. Utilization is
    measured under load, and each value counts for as long as it was in force.
    """

    kind = detail(str, "external or resource")
    refreshes = number("changes", "changes of the metric that the HPA saw")
    median_refresh_s = number("s", "median time between changes of the metric that the HPA saw")
    longest_refresh_s = number("s", "longest time between changes of the metric that the HPA saw")
    highest = number("in the metric's unit", "largest value of the metric")
    utilization = number("% of request", "median CPU utilization under load")
    highest_utilization = number("% of request", "highest CPU utilization under load")


@measure
def signal(record: Record) -> Signal:
    """Follow the HPA's current metrics. There is no data when it never had any."""
    for kind in (EXTERNAL, RESOURCE):  # beside an external metric, CPU is only a guard
        if seen := _seen(record, kind):
            break
    else:
        raise NoData("no HPA ever had a metric")
    start, end = record.zero, float(record.phases["end"].iloc[-1])
    changes = [t for (_, earlier), (t, later) in pairwise(seen) if _differs(earlier, later) and start <= t <= end]
    gaps = [later - earlier for earlier, later in pairwise(changes)]
    utilization, highest = _utilization(seen, start, end) if kind == RESOURCE else (None, None)
    return Signal(
        kind=kind,
        refreshes=len(changes),
        median_refresh_s=median(gaps) if gaps else None,
        longest_refresh_s=max(gaps, default=None),
        highest=max(max(values.values()) for _, values in seen),
        utilization=utilization,
        highest_utilization=highest,
    )


@quantity("syncs", "syncs of the HPA without a metric")
def syncs_without_metric(record: Record) -> int:
    """The syncs from the profile's start to the trial's end in which the HPA got no metric, so that it decided nothing.

    There is no data when it had no sync at all.
    """
    start, end = record.profile_start, record.end
    outcomes = [
        line.words for line in record.hpa_lines if line.words in (*hpa_log.DECIDED, hpa_log.FAILED) and start <= line.t < end
    ]
    if not outcomes:
        raise NoData("no sync of an HPA in the record")
    return outcomes.count(hpa_log.FAILED)


@quantity("polling intervals", "time for which KEDA's own metric showed the value")
def intervals_showing(record: Record, value: float) -> float:
    """From the first to the last sample of KEDA's own metric with ``value`` before another one, in polling intervals.

    KEDA sets the metric at each poll, and nothing counts its polls: this is a time, the longest one without another value.
    There is no data when it never showed the value, and when the policy is not KEDA's.
    """
    samples = record.samples
    shown = samples[samples["metric"] == "keda_scaler_metrics_value"].sort_values("t", kind="stable")
    is_it = shown["value"] == value
    if not is_it.any():
        raise NoData(f"KEDA's metric never showed {value:g}")
    if not isinstance(record.policy, ScaledObject):
        raise NoData("the policy is not KEDA's")
    runs = shown[is_it].groupby((is_it != is_it.shift()).cumsum()[is_it])["t"]
    return float((runs.max() - runs.min()).max()) / record.policy.polling_s


def _seen(record: Record, kind: str) -> list[Seen]:
    """(time, value of each metric of ``kind``) of every status of the HPA that has one."""
    found = []
    for status in record.hpa_statuses:
        totals = {one.name: one.total(status.current) for one in status.metrics if one.kind == kind}
        if values := {name: value for name, value in totals.items() if value is not None}:
            found.append((status.t, values))
    return found


def _differs(earlier: dict[str, float], later: dict[str, float]) -> bool:
    """Whether a value changed by more than the rounding of an average, a thousandth a replica. Lag is in whole messages."""
    return earlier.keys() != later.keys() or any(abs(later[name] - earlier[name]) > 0.5 for name in later)


def _utilization(seen: list[Seen], start: float, end: float) -> tuple[float, float] | tuple[None, None]:
    """(median, highest) in percent. Each value counts for as long as it was in force, since a steady one is reported once."""
    ends = [*(t for t, _ in seen[1:]), end]
    spans = [(max(values.values()), min(until, end) - max(t, start)) for (t, values), until in zip(seen, ends, strict=True)]
    under_load = sorted((value, seconds) for value, seconds in spans if seconds > 0)
    if not under_load:
        return None, None
    passed = list(accumulate(seconds for _, seconds in under_load))
    middle = bisect_left(passed, passed[-1] / 2)
    return under_load[middle][0], under_load[-1][0]
