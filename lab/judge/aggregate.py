"""One quantity made of several: their total, the largest, the smallest or the median, and the interval of a median.

A total, extreme or median has the unit and the name of the first quantity. It is missing when there are no quantities, and when
any of them is missing. Quantities of repeated trials are aggregated block by block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise

from lab.judge.origin import Origin
from lab.judge.quantity import Quantity, in_blocks, repeated


def total(quantities: Iterable[Quantity]) -> Quantity:
    """The sum of ``quantities``."""
    return _aggregate(sum, quantities)


def largest(quantities: Iterable[Quantity]) -> Quantity:
    """The largest of ``quantities``."""
    return _aggregate(max, quantities)


def smallest(quantities: Iterable[Quantity]) -> Quantity:
    """The smallest of ``quantities``."""
    return _aggregate(min, quantities)


def median(quantities: Iterable[Quantity]) -> Quantity:
    """The median of ``quantities``."""
    return _aggregate(statistics.median, quantities)


def _aggregate(combine: Callable[[list[float]], float], quantities: Iterable[Quantity]) -> Quantity:
    several = list(quantities)
    if not several:
        return Quantity("aggregate of no quantities", "", None, "there is no quantity to aggregate")
    if any(one.runs for one in several):
        return repeated(_aggregate(combine, block) for block in zip(*in_blocks(several), strict=True))
    name, unit = several[0].name, several[0].unit
    origin = reduce(Origin.sum, (one.origin for one in several))
    missing = next((one for one in several if one.value is None), None)
    if missing is not None:
        return Quantity(name, unit, None, missing.why or f"no {missing.name}", origin=origin)
    return Quantity(name, unit, combine([one.number for one in several]), origin=origin)


WANTED = 0.95


@dataclass(frozen=True)
class Spread:
    """The median of ``n`` independent values, and an interval that holds the true median with ``confidence`` (0 to 1).

    ``median``, ``low`` and ``high`` have the name and the unit of the first value. If any value has no number, all three have
    none.
    """

    n: int
    median: Quantity
    low: Quantity
    high: Quantity
    confidence: float

    def __str__(self) -> str:
        if self.median.value is None:
            return f"no data ({self.median.why})"
        size = abs(self.median.number) or max(abs(self.low.number), abs(self.high.number))
        digits = max(0, 1 - math.floor(math.log10(size))) if size and math.isfinite(size) else 0
        middle, low, high = (f"{value:,.{digits}f}" for value in (self.median, self.low, self.high))
        return f"{middle} ({low}-{high}, n = {self.n}, {self.confidence:.0%})".replace("%", " %")


def spread(values: Sequence[Quantity | float]) -> Spread:
    """The median and its interval between two order statistics. Raises ``ValueError`` for no value or a NaN.

    A plain number counts as a value without a unit.

    Each value lies below the true median with probability 1/2. So the k-th smallest and the k-th largest value enclose the
    median unless fewer than k values lie on one side. That probability is a binomial, exact for any continuous distribution and
    safe with ties. k is the largest that leaves 95 %. Below 9 values k is 1, and [min, max] holds with 1 - 2^(1-n). Both tails
    are equal, and k depends on n alone, since an interval that is chosen after the values are known holds less often.
    """
    several = [one if isinstance(one, Quantity) else Quantity("value", "", float(one)) for one in values]
    ordered = sorted(one.value for one in several if one.value is not None)
    if not several or any(map(math.isnan, ordered)):
        raise ValueError(f"spread: needs at least one value and no NaN, got {ordered}")
    n, middle = len(several), median(several)
    k = 1
    while 2 * (k + 1) <= n and _confidence(n, k + 1) >= WANTED:
        k += 1
    low, high = (None, None) if middle.value is None else (ordered[k - 1], ordered[n - k])
    least, most = (Quantity(middle.name, middle.unit, end, middle.why) for end in (low, high))
    return Spread(n, middle, least, most, _confidence(n, k))


def interval(values: Sequence[Quantity]) -> tuple[float | None, float | None, float | None]:
    """(low, high, confidence) of :func:`spread`; None for each where a value is missing or is not a number."""
    numbers = [one.value for one in values]
    if any(value is None or math.isnan(value) for value in numbers):
        return None, None, None
    wide = spread(values)
    return wide.low.value, wide.high.value, wide.confidence


def _confidence(n: int, k: int) -> float:
    """The probability that at least ``k`` of ``n`` values lie on either side of the median."""
    return max(0.0, 1 - 2 * sum(math.comb(n, below) for below in range(k)) / (1 << n))


def count_flips(ups: Iterable[bool]) -> int:
    """The scale-ups that follow a scale-down, of a sequence of changes that are each up or not."""
    return sum(later and not earlier for earlier, later in pairwise(ups))
