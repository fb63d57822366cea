"""Two independent samples: by how much one is off the other, without assuming a distribution.

The estimate is that of Hodges and Lehmann: the median of all comparisons of a value of the one with a value of the other. Its
interval lies between two of them, counted from the null distribution of Mann and Whitney's U. It is exact where both samples
have one continuous distribution but for a shift, or a factor where ratios are compared.
Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 4.1 to 4.3 (Moses' interval).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from lab.judge.aggregate import enclosing


@dataclass(frozen=True)
class Offset:
    """The ``estimate`` of a difference or relative error; ``low`` to ``high`` has the true one with ``confidence`` (0 to 1)."""

    estimate: float
    low: float
    high: float
    confidence: float


def differences(sample: Sequence[float], reference: Sequence[float]) -> Offset:
    """By how much ``sample`` is above ``reference``, in their unit. Raises ``ValueError`` for an empty one."""
    return _offset([one - other for one in sample for other in reference], len(sample), len(reference))


def relative_errors(sample: Sequence[float], reference: Sequence[float]) -> Offset:
    """By which part of itself ``reference`` is below ``sample``: 0.1 for 10 % more.

    Raises ``ValueError`` for an empty one, and for a value that is not above 0.
    """
    if any(one <= 0 for one in (*sample, *reference)):
        raise ValueError("relative errors are of values above 0")
    return _offset([one / other - 1 for one in sample for other in reference], len(sample), len(reference))


def _offset(comparisons: Sequence[float], m: int, n: int) -> Offset:
    if not comparisons or any(map(math.isnan, comparisons)):
        raise ValueError(f"{m} values and {n} can't be compared, or one is no number")
    return Offset(statistics.median(comparisons), *enclosing(sorted(comparisons), mann_whitney(m, n)))


@cache
def mann_whitney(m: int, n: int) -> tuple[int, ...]:
    """Of all orders of ``m`` values and ``n`` others, how many have 0 to mn pairs in which the former is above."""
    if not (m and n):
        return (1,)
    # The largest value is one of the m, above all n others, or one of the n, above none.
    first, second = (0,) * n + mann_whitney(m - 1, n), mann_whitney(m, n - 1)
    second += (0,) * (len(first) - len(second))
    return tuple(a + b for a, b in zip(first, second, strict=True))
