"""Lag: its peak, its growth, its swing between commits, its level at the end of a spike, and its value at given moments."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.judge.gates import SCRAPE_GAP
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.throughput import Array
from lab.record.store import Record
from lab.record.views import FEWEST

RATE_S = 1.0  # a rate is counted over the last second of compressed time


class Moment(Measure):
    """Rate, lag and replicas ``at`` s after the start in real time.

    ``rate`` is over the last second of compressed time, or since the start if that is less. A scale divides times and leaves
    rates as they are, so it divides the lag of a deficit too. ``real_lag`` is the lag times that factor (docs/decisions/01).
    """

    at = detail(float, "s after the start, in real time")
    rate = number("events/s", "rate of arrival")
    lag = number("messages", "lag")
    real_lag = number("messages", "lag at real time", UNSCALED)
    wanted = number("pods", "replicas wanted")
    ready = number("pods", "replicas ready")


def moments(record: Record, at: Sequence[float]) -> list[Moment]:
    """The record at each of ``at``, s after :attr:`Record.zero` in real time."""
    return [moment(record, real) for real in at]


@measure
def moment(record: Record, at: float) -> Moment:
    """Read the record ``at`` s after :attr:`Record.zero` in real time.

    There is no data for a moment outside of the record, and where lag was not seen around it.
    """
    zero, factor = record.zero, record.scale.time
    t, end = zero + at / factor, record.end
    if t > end:
        raise NoData(f"the record ends {(end - zero) * factor:.0f} s (real) after the start; asked for {at:g} s")
    seen = _lag_at(record, t)
    return Moment(
        at=at,
        rate=_rate(record, t, max(t - RATE_S, zero) if at > 0 else t - RATE_S),
        lag=seen,
        real_lag=seen * factor,
        wanted=record.wanted_at(t),
        ready=record.ready_at(t),
    )


def _lag_at(record: Record, t: float) -> float:
    """Lag at ``t`` (epoch s), between the samples around it. Raises :class:`NoData` where these are too far apart.

    Before the first sample and after the last one the distance to that counts.
    """
    lag = record.lag
    times = np.unique(lag["t"].to_numpy(dtype=np.float64))
    around = [*times[times <= t][-1:], t, *times[times >= t][:1]]
    if (gap := (around[-1] - around[0]) / _usual_gap(times)) > SCRAPE_GAP:
        raise NoData(f"lag was not seen around the moment for {gap:.0f} times as long as between two samples")
    return float(np.interp(t, lag["t"], lag["lag"]))


def _rate(record: Record, t: float, begin: float) -> float:
    """Events/s produced from ``begin`` to ``t`` (epoch s), over at least one bin of the record's rates."""
    rates = record.rates
    fine = rates[(rates["bin_s"] == rates["bin_s"].min()) & (rates["series"] == "produced") & (rates["pod"] == "")]
    if fine.empty:
        return 0.0
    width = float(fine["bin_s"].iloc[0])
    begin = min(begin, t - width)
    share = np.clip((np.minimum(fine["t"] + width, t) - np.maximum(fine["t"], begin)) / width, 0, 1)
    return float((fine["messages"] * share).sum()) / (t - begin)


def slope(seen: pd.DataFrame) -> float:
    """The growth of lag over the samples ``seen`` (columns t, lag), in messages/s (least squares)."""
    return float(np.polyfit(seen["t"] - seen["t"].iloc[0], seen["lag"], 1)[0])


def longest_gap(record: Record, begin: float, end: float) -> float:
    """The longest time without a sample of lag from ``begin`` to ``end`` (epoch s) over the median one between two samples.

    There is no data for fewer than three times between two.
    """
    times = np.unique(record.lag_within(begin, end)["t"].to_numpy(dtype=np.float64))
    usual = _usual_gap(times)
    return float(max(np.diff(times).max(), times[0] - begin, end - times[-1]) / usual)


def _usual_gap(times: Array) -> float:
    """The median time between two of ``times``. Raises :class:`NoData` for fewer than three times between two."""
    gaps = np.diff(times)
    if len(gaps) < FEWEST:
        raise NoData(f"{len(gaps)} gaps between samples of lag")
    return float(np.median(gaps))


def require_samples(record: Record, begin: float, end: float) -> None:
    """Raise :class:`NoData` where faults kept lag from being seen from ``begin`` to ``end`` (epoch s): a peak may be missed."""
    if record.inputs.faults and (gap := longest_gap(record, begin, end)) > SCRAPE_GAP:
        raise NoData(f"lag was not seen for {gap:.0f} times as long as between two samples, under faults")


@quantity("messages", "peak lag")
def peak_lag(record: Record) -> int:
    """The trial's highest total lag. There is no data without a sample, and where faults kept it from being seen."""
    require_samples(record, record.driven, record.end)
    return int(record.lag["lag"].max())


@quantity("messages/s", "growth of lag")
def growth(record: Record, phase: str, last: float = 1.0) -> float:
    """The growth of lag in the ``last`` part (0 to 1) of the profile's ``phase`` (least squares).

    There is no data for fewer than three samples, where faults kept lag from being seen, and without such a phase.
    """
    start, end = record.span(phase)
    require_samples(record, begin := end - last * (end - start), end)
    return slope(record.lag_within(begin, end))


@quantity("s", "highest less lowest lag at the baseline, over the rate of arrival")
def swing(record: Record) -> float:
    """How much a steady group's lag goes up and down, in s of traffic: it rises until the next commit.

    Of the baseline's second half, as in the first one consumers may still begin to commit. There is no data for fewer than
    three samples, and without traffic.
    """
    phase = record.phases.iloc[0]
    seen = record.lag_within((phase["start"] + phase["end"]) / 2, phase["end"])["lag"]
    if (rate := record.profile.steps[0].rate) <= 0:
        raise NoData("no traffic at the baseline")
    return float(seen.max() - seen.min()) / rate


LAST = 1 / 3  # the part of the spike that is judged; in the rest of it the group may react


class Hold(Measure):
    """Lag and replicas over the last third of the spike. ``peak_lag`` is of the whole trial.

    ``growth`` is the slope of lag (least squares). How late the group is then is :func:`lab.measure.lateness.time_behind`.
    """

    growth = number("messages/s", "growth of lag over the last third of the spike")
    replicas = number("pods", "replicas wanted at the spike's end")
    peak_lag = number("messages", "peak lag")


@measure
def hold(record: Record) -> Hold:
    """Measure the spike's last third. There is no data without a spike, and none of the growth like :func:`growth`."""
    rise = growth(record, "spike", LAST).number
    return Hold(growth=rise, replicas=record.wanted_at(record.span("spike")[1]), peak_lag=peak_lag(record).number)
