"""Hold: where the group comes to rest while a spike is held, and whether it comes to rest at all."""

from __future__ import annotations

from dataclasses import dataclass

from lab.measure.timeline import slope
from lab.record.store import Record

LAST = 1 / 3  # the part of the spike that is judged: the group has had the rest of it to react


@dataclass(frozen=True)
class Hold:
    """Over the last third of the spike: ``growth`` of lag in messages/s (least squares); ``behind_s``, the median time by
    which the group is behind, lag / arrival rate (Little's law); ``replicas`` wanted at its end. ``peak_lag``: of the trial."""

    growth: float
    behind_s: float
    replicas: int
    peak_lag: int


def hold(record: Record) -> Hold:
    """Measure the spike's last third. Raises :class:`NoData` when there was no spike or hardly a sample of lag in it."""
    start, end = record.span("spike")
    seen = record.lag_within(end - (end - start) * LAST, end)
    rate = max(step.rate for step in record.profile.steps)
    curve = record.replicas
    wanted = curve[curve["t"] <= end]["desired"]
    return Hold(
        growth=slope(seen),
        behind_s=float(seen["lag"].median()) / rate,
        replicas=int(wanted.iloc[-1]),
        peak_lag=record.peak_lag,
    )
