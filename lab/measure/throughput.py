"""Throughput: how many messages the group processed by when, and how fast."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.record.store import Record

GRID_S = 0.05
LEAST_S = 1.0  # a mean over less says nothing: batches take 50 ms, and lag is sampled twice a second

Array = npt.NDArray[np.float64]
Span = tuple[float, float]


class Throughput:
    """The number of messages processed by any time. Raises :class:`NoData` without receipts.

    Each receipt's count is spread evenly from its start to its end. The sum is one broken line whose slope changes where a
    receipt starts or ends, so any number of rates costs one sort.
    """

    def __init__(self, receipts: pd.DataFrame) -> None:
        if receipts.empty:
            raise NoData("no receipts")
        start, end, count = (receipts[name].to_numpy(dtype=np.float64) for name in ("start", "end", "count"))
        self._zero = float(start.min())  # epoch seconds have 0.2 µs of precision, so times count from here
        lasting = end - start > 1e-6
        speed = count[lasting] / (end - start)[lasting]
        edges = np.concatenate([start[lasting], end[lasting]]) - self._zero
        order = np.argsort(edges)
        self._edges = edges[order]
        slopes = np.cumsum(np.concatenate([speed, -speed])[order])
        self._line = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(self._edges))])
        order = np.argsort(start[~lasting])
        self._moments = start[~lasting][order] - self._zero
        self._jumps = np.concatenate([[0.0], np.cumsum(count[~lasting][order])])

    def by(self, t: Array) -> Array:
        """Messages processed until each of ``t`` (epoch s)."""
        since = t - self._zero
        line = np.interp(since, self._edges, self._line) if len(self._edges) else np.zeros_like(since)
        return np.asarray(line + self._jumps[np.searchsorted(self._moments, since, side="right")], dtype=np.float64)

    def between(self, start: float, end: float) -> float:
        """Messages processed from ``start`` to ``end`` (epoch s)."""
        first, last = self.by(np.array([start, end]))
        return float(last - first)

    def rate(self, start: float, end: float) -> float:
        """Mean messages/s from ``start`` to ``end`` (epoch s); NaN for no time at all."""
        return self.between(start, end) / (end - start) if end > start else math.nan

    def rolling(self, start: float, end: float, window: float) -> tuple[Array, Array]:
        """(starts, messages/s) of every window of ``window`` s on the grid that lies wholly from ``start`` to ``end``."""
        within = (end - start - window) / GRID_S + 1e-4  # an epoch time is known to some 0.2 µs: 5e-6 of the grid
        windows = max(0, math.floor(within) + 1)
        starts: Array = start + GRID_S * np.arange(windows, dtype=np.float64)
        return starts, (self.by(starts + window) - self.by(starts)) / window


def lagging_spans(record: Record, least: float = 0) -> list[Span]:
    """The times in which the total lag was above ``least`` messages: a sample holds until the next one."""
    lag = record.lag
    times, above = lag["t"].to_numpy(dtype=float), lag["lag"].to_numpy()[:-1] > least
    edges = np.flatnonzero(np.diff(above, prepend=False, append=False))
    return [(float(times[first]), float(times[last])) for first, last in zip(edges[::2], edges[1::2], strict=True)]


def clip(spans: Iterable[Span], within: Span) -> list[Span]:
    """The parts of ``spans`` that lie in the span ``within``."""
    cut = ((max(start, within[0]), min(end, within[1])) for start, end in spans)
    return [(start, end) for start, end in cut if start < end]


def mean_rate(done: Throughput, spans: list[Span]) -> float | None:
    """Mean messages/s over all of ``spans`` together, None when they last under 1 s."""
    seconds = sum(end - start for start, end in spans)
    if seconds < LEAST_S:
        return None
    edges = done.by(np.array(spans, dtype=np.float64))
    return float((edges[:, 1] - edges[:, 0]).sum()) / seconds


def peak_rate(record: Record) -> float:
    """The most messages that the group processed in one second. Raises :class:`NoData` when nothing was consumed."""
    rates = record.rates
    chosen = rates[(rates["bin_s"] == 1) & (rates["series"] == "consumed") & (rates["pod"] == "")]
    if chosen.empty:
        raise NoData("nothing was consumed")
    return float(chosen["messages"].max())
