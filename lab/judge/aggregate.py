"""One quantity made of several: ``total``, ``largest``, ``smallest`` or ``median``, and the interval of a median.

Each has the unit and the name of the first quantity. It is missing when there are no quantities, and when any of them is
missing or not a number. Quantities of repeated trials are aggregated block by block.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from itertools import pairwise

from lab.judge.origin import Origin
from lab.judge.quantity import Quantity, in_blocks, repeated


def _aggregate(combine: Callable[[list[float]], float], quantities: Iterable[Quantity]) -> Quantity:
    several = list(quantities)
    if not several:
        return Quantity("aggregate of no quantities", "", None, "there is no quantity to aggregate")
    if any(one.runs for one in several):
        return repeated(_aggregate(combine, block) for block in zip(*in_blocks(several), strict=True))
    name, unit = several[0].name, several[0].unit
    origin = reduce(Origin.sum, (one.origin for one in several))
    for one in several:
        if one.value is None:
            return Quantity(name, unit, None, one.why or f"no {one.name}", origin=origin)
        if math.isnan(one.value):  # the largest of numbers with one would depend on their order
            return Quantity(name, unit, None, f"{one.name} is not a number", origin=origin)
    return Quantity(name, unit, combine([one.number for one in several]), origin=origin)


total, largest, smallest = partial(_aggregate, sum), partial(_aggregate, max), partial(_aggregate, min)
median = partial(_aggregate, statistics.median)

WANTED = 0.95


def enclosing(ordered: Sequence[float], outcomes: Sequence[int]) -> tuple[float, float, float]:
    """(low, high, confidence) of the narrowest interval that holds the true value with 95 %, or of the widest there is.

    It lies between the k-th smallest and the k-th largest of ``ordered``. ``outcomes`` counts the equally likely outcomes by
    rank, from 0 on. The interval misses where the rank is below k or above its greatest value less k. Ties make it hold at
    least as often. k depends on ``outcomes`` alone: an interval that is chosen after the values are known holds less often.
    """
    k = 1
    while confidence(outcomes, k + 1) >= WANTED:
        k += 1
    return ordered[k - 1], ordered[-k], confidence(outcomes, k)


def confidence(outcomes: Sequence[int], k: int) -> float:
    """The probability (0 to 1) that the rank is neither below ``k`` nor above its greatest value less ``k``."""
    return max(0.0, 1 - 2 * sum(outcomes[:k]) / sum(outcomes))


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

    Each value lies below the true median with probability 1/2. So the number of values below it is a binomial, exact for any
    continuous distribution. Below 9 values the interval is [min, max], which holds with 1 - 2^(1-n).
    """
    several = [one if isinstance(one, Quantity) else Quantity("value", "", float(one)) for one in values]
    ordered = sorted(one.value for one in several if one.value is not None)
    if not several or any(map(math.isnan, ordered)):
        raise ValueError(f"spread: needs at least one value and no NaN, got {ordered}")
    n, middle = len(several), median(several)
    if middle.value is None:
        return Spread(n, middle, middle, middle, 0.0)
    low, high, sure = enclosing(ordered, [math.comb(n, below) for below in range(n + 1)])
    return Spread(n, middle, Quantity(middle.name, middle.unit, low), Quantity(middle.name, middle.unit, high), sure)


def interval(values: Sequence[Quantity]) -> tuple[float | None, float | None, float | None]:
    """(low, high, confidence) of :func:`spread`; None for each where a value is missing or is not a number."""
    numbers = [one.value for one in values]
    if any(value is None or math.isnan(value) for value in numbers):
        return None, None, None
    wide = spread(values)
    return wide.low.value, wide.high.value, wide.confidence


def count_flips(ups: Iterable[bool]) -> int:
    """The scale-ups that follow a scale-down, of a sequence of changes that are each up or not."""
    return sum(later and not earlier for earlier, later in pairwise(ups))
