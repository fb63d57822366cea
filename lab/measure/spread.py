"""Spread: what repetitions say of a median, without assuming a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

WANTED = 0.95


@dataclass(frozen=True)
class Spread:
    """The median of ``n`` independent values, and an interval that holds the true median with ``confidence`` (0 to 1)."""

    n: int
    median: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        size = abs(self.median) or max(abs(self.low), abs(self.high))
        digits = max(0, 1 - math.floor(math.log10(size))) if size and math.isfinite(size) else 0
        middle, low, high = (f"{value:,.{digits}f}" for value in (self.median, self.low, self.high))
        return f"{middle} ({low}-{high}, n = {self.n}, {self.confidence:.0%})".replace("%", " %")


def spread(values: Sequence[float]) -> Spread:
    """The median and its interval between two order statistics. Raises ``ValueError`` for no value or a NaN.

    Each value lies below the true median with probability 1/2, so the k-th smallest and the k-th largest enclose it
    unless fewer than k lie on one side: a binomial, exact for any continuous distribution and safe with ties. k is the
    largest that leaves 95 %; below 9 values that is 1, and the interval of [min, max] holds with 1 - 2^(1-n). Tails are
    equal, and k depends on n alone: an interval chosen by its looks would hold less often than it says.
    """
    if not len(values) or any(math.isnan(value) for value in values):
        raise ValueError(f"spread: needs at least one value and no NaN, got {list(values)}")
    ordered = sorted(map(float, values))
    n = len(ordered)
    k = 1
    while 2 * (k + 1) <= n and _confidence(n, k + 1) >= WANTED:
        k += 1
    return Spread(n, median(ordered), ordered[k - 1], ordered[n - k], _confidence(n, k))


def _confidence(n: int, k: int) -> float:
    """That at least ``k`` of ``n`` values lie on either side of the median."""
    return max(0.0, 1 - 2 * sum(math.comb(n, below) for below in range(k)) / (1 << n))
