"""Hold: where the group comes to rest while a spike is held, and whether it comes to rest at all."""

from __future__ import annotations

from lab.judge.measure import Measure, measure, number
from lab.measure.timeline import peak_lag, slope
from lab.record.store import Record

LAST = 1 / 3  # the part of the spike that is judged: the group has had the rest of it to react


class Hold(Measure):
    """Over the last third of the spike, but for ``peak_lag``, which is the trial's.

    ``growth`` is the slope of lag (least squares). ``behind_s`` is lag / arrival rate (Little's law).
    """

    growth = number("messages/s", "growth of lag over the last third of the spike")
    behind_s = number("s", "median time by which the group is behind")
    replicas = number("pods", "replicas wanted at the spike's end")
    peak_lag = number("messages", "peak lag")


@measure
def hold(record: Record) -> Hold:
    """Measure the spike's last third; no data when there was no spike or hardly a sample of lag in it."""
    start, end = record.span("spike")
    seen = record.lag_within(end - (end - start) * LAST, end)
    rate = max(step.rate for step in record.profile.steps)
    curve = record.replicas
    wanted = curve[curve["t"] <= end]["desired"]
    return Hold(
        growth=slope(seen),
        behind_s=float(seen["lag"].median()) / rate,
        replicas=int(wanted.iloc[-1]),
        peak_lag=peak_lag(record).number,
    )
