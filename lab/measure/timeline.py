"""A timeline: rate, lag and replicas at given moments after traffic left its baseline, as a runbook's table has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.foresee.curve import Curve
from lab.record.store import Record

RATE_S = 1.0  # a rate is counted over the last second, as seen


@dataclass(frozen=True)
class Moment:
    """``at`` s after the start in real time. ``rate`` in events/s over the last second as seen (or since the start, if that is
    less), ``lag`` in messages as seen and ``real_lag`` times the scale's compression; replicas ``wanted`` and ``ready``."""

    at: float
    rate: float
    lag: float
    real_lag: float
    wanted: int
    ready: int


def moments(record: Record, at: Sequence[float]) -> list[Moment]:
    """The record at each of ``at``, s after :attr:`Record.zero` in real time.

    A scale divides times and leaves rates, so what a deficit piles up is divided with the time: lag is stretched back by
    the same factor (docs/decisions/04). Raises :class:`NoData` for a moment outside of the record.
    """
    zero, factor = record.zero, record.scale.time
    lag, replicas = record.lag, record.replicas
    rates = record.rates
    fine = rates[(rates["bin_s"] == rates["bin_s"].min()) & (rates["series"] == "produced") & (rates["pod"] == "")]
    width = float(fine["bin_s"].iloc[0]) if len(fine) else 0.0
    end = record.end
    found = []
    for real in at:
        t = zero + real / factor
        if t > end:
            raise NoData(f"the record ends {(end - zero) * factor:.0f} s (real) after the start; asked for {real:g} s")
        begin = max(t - RATE_S, zero) if real > 0 else t - RATE_S
        begin = min(begin, t - width)
        share = np.clip((np.minimum(fine["t"] + width, t) - np.maximum(fine["t"], begin)) / width, 0, 1) if width else 0.0
        seen = float(np.interp(t, lag["t"], lag["lag"]))
        before = replicas[replicas["t"] <= t]
        if before.empty:
            raise NoData(f"the consumer Deployment was not seen by {real:g} s")
        row = before.iloc[-1]
        rate = float((fine["messages"] * share).sum()) / (t - begin) if width else 0.0
        found.append(Moment(real, rate, seen, seen * factor, int(row["desired"]), int(row["ready"])))
    return found


def foretold(curve: Curve, start: float, at: Sequence[float], rates: Callable[[float], float]) -> list[Moment]:
    """A simulated ``curve`` at each of ``at``, s after its ``start``; all times are real. ``rates``: what is due, events/s."""
    index = [max(0, int(np.searchsorted(curve.t, start + real, side="right")) - 1) for real in at]
    lags = [float(np.interp(start + real, curve.t, curve.lag)) for real in at]
    return [
        Moment(real, rates(start + real), lag, lag, int(curve.replicas[one]), int(curve.working[one]))
        for real, lag, one in zip(at, lags, index, strict=True)
    ]


def slope(seen: pd.DataFrame) -> float:
    """How fast lag grows over the samples ``seen`` (columns t, lag), messages/s (least squares)."""
    return float(np.polyfit(seen["t"] - seen["t"].iloc[0], seen["lag"], 1)[0])


def growth(record: Record, phase: str, last: float = 1.0) -> float:
    """How fast lag grows in the ``last`` part (0 to 1) of the profile's ``phase``, messages/s (least squares).

    Raises :class:`NoData` for fewer than three samples.
    """
    start, end = record.span(phase)
    return slope(record.lag_within(end - last * (end - start), end))
