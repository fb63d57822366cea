"""Paired differences: what duets say of two sides, without assuming a distribution, and what no duet can tell.

The estimate is that of Hodges and Lehmann: the median of the Walsh averages, which are the means of every two differences, each
also with itself. Its interval lies between two of them, counted from the null distribution of Wilcoxon's signed rank, which is
exact for any continuous distribution that is symmetric about its centre.
Source: Hollander, Wolfe and Chicken, Nonparametric Statistical Methods, 3.1 to 3.4.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import NoData
from lab.judge.aggregate import enclosing, largest
from lab.judge.quantity import Quantity, Undecided
from lab.number_format import many

FEWEST = 6  # pairs whose interval has that confidence


@dataclass(frozen=True)
class Pairs:
    """How sure the difference of ``n`` pairs is: ``low`` to ``high`` holds it with ``confidence`` (0 to 1).

    ``n_same`` A/A pairs of the same session differ by up to ``noise``. All but the counts have the difference's unit.
    """

    n: int
    low: float
    high: float
    confidence: float
    n_same: int
    noise: float

    def __str__(self) -> str:
        interval = f"{_signed(self.low)} to {_signed(self.high)} ({self.confidence:.0%})".replace("%", " %")
        noise = _signed(self.noise).removeprefix("+")
        return f"{interval}, n = {self.n} pairs; {self.n_same} A/A pairs differ by up to {noise}"


@dataclass(frozen=True, eq=False)
class Difference(Quantity):
    """A quantity made of pairs, with how sure it is; ``pairs`` has the A/A noise beside it."""

    pairs: Pairs | None = None


@dataclass(frozen=True)
class Paired:
    """The ``differences`` of ``n`` pairs, first side less second, and what they come to.

    ``estimate`` is the Hodges-Lehmann estimate; ``low`` to ``high`` holds the true difference with ``confidence`` (0 to 1).
    ``above`` and ``below`` count the pairs in which the first side is above or below the second; ``p`` is that of the exact
    two-sided sign test. None of the quantities has a number when any pair lacks one.
    """

    differences: tuple[Quantity, ...]
    estimate: Quantity
    low: Quantity
    high: Quantity
    confidence: float
    above: int
    below: int
    p: float

    @property
    def n(self) -> int:
        """How many pairs there are."""
        return len(self.differences)

    def __str__(self) -> str:
        if self.estimate.value is None:
            return f"no data ({self.estimate.why})"
        interval = f"{_signed(self.low.number)} to {_signed(self.high.number)}, n = {self.n}"
        return f"{_signed(self.estimate.number)} {self.estimate.unit} ({interval}, {100 * self.confidence:.0f} %)"

    def figures(self) -> dict[str, float | Quantity]:
        """The comparison as figures of a report: ``evidence.report(name, paired(…).figures())``."""
        of = f"({self.estimate.unit})" if self.estimate.unit else ""
        return {
            f"difference {of}".strip(): self.estimate,
            f"at least {of}".strip(): self.low,
            f"at most {of}".strip(): self.high,
            "confidence": self.confidence,
            "pairs": self.n,
            "pairs above": self.above,
            "pairs below": self.below,
            "sign test, p": self.p,
        }


def paired(first: Quantity | Sequence[Quantity], second: Quantity | Sequence[Quantity]) -> Paired:
    """The differences of two sides of duets, ``first`` less ``second``, pair by pair.

    A side is a quantity of its runs, or one quantity for each. Raises ``ValueError`` for no pair, or sides of unequal length.
    """
    one, other = _runs(first), _runs(second)
    if not one or len(one) != len(other):
        raise ValueError(f"paired: {len(one)} runs of the first side and {len(other)} of the second are no pairs")
    name = f"{one[0].name}, first less second"
    differences = tuple((mine - theirs).named(name) for mine, theirs in zip(one, other, strict=True))
    unit, origin = differences[0].unit, differences[0].origin
    values = [each.value for each in differences if each.value is not None]
    lacking = [f"pair {n}: {each.why}" for n, each in enumerate(differences, 1) if each.value is None]
    if lacking or any(map(math.isnan, walsh_averages(values))):  # infinities of both signs have no middle either
        nothing = Quantity(name, unit, None, next(iter(lacking), "not a number"), origin=origin)
        return Paired(differences, nothing, nothing, nothing, 0.0, 0, 0, 1.0)
    low, high, confidence = interval(values)
    above, below = sum(value > 0 for value in values), sum(value < 0 for value in values)
    middle = statistics.median(walsh_averages(values))
    estimate, least, most = (Quantity(name, unit, value, origin=origin) for value in (middle, low, high))
    return Paired(differences, estimate, least, most, confidence, above, below, sign_test(above, below))


def walsh_averages(differences: Sequence[float]) -> list[float]:
    """The mean of every two ``differences``, each also with itself, in ascending order."""
    return sorted((mine + other) / 2 for n, mine in enumerate(differences) for other in differences[n:])


def interval(differences: Sequence[float]) -> tuple[float, float, float]:
    """(low, high, confidence) of the centre of ``differences``: the narrowest with 95 %, or the widest there is below 6."""
    return enclosing(walsh_averages(differences), signed_rank(len(differences)))


def signed_rank(n: int) -> list[int]:
    """How many of the 2^n signs of the ranks 1 to n give each sum of positive ranks, from 0 to n (n + 1) / 2."""
    counts = [1]
    for rank in range(1, n + 1):
        shifted = [0] * rank + counts
        counts = [a + b for a, b in zip(counts + [0] * rank, shifted, strict=True)]
    return counts


def sign_test(above: int, below: int) -> float:
    """The exact two-sided probability of signs at least as uneven, were both as likely; a pair without one is left out."""
    n, fewer = above + below, min(above, below)
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / (1 << n))


def least_difference(same: Paired) -> Quantity:
    """The least difference that can be told: the largest of A/A duets, whose sides are the ``same``, in either direction.

    One further A/A difference is larger with a probability of 1 / (n + 1).
    """
    most = largest(abs(one) for one in same.differences)
    return Quantity(f"least difference that can be told (A/A, n = {same.n})", most.unit, most.value, most.why)


def discern(difference: Paired, same: Paired) -> Quantity:
    """The estimate of ``difference``, or no data where it can't be told from the noise that A/A duets (``same``) show.

    It can't where it is no larger than :func:`least_difference`, and where its interval holds 0. So a claim on it is "no data"
    with the reason, never held by noise. Fewer than FEWEST pairs of either leave it :class:`Undecided`. A :class:`Difference`
    has its interval, number of pairs, and that least difference.
    """
    least, estimate = least_difference(same), difference.estimate
    name, unit, origin = estimate.name, estimate.unit, estimate.origin
    try:
        value, low, high, floor = (one.number for one in (difference.estimate, difference.low, difference.high, least))
    except NoData as missing:
        return Quantity(name, unit, None, str(missing), origin=origin)
    noise = f"A/A differ by up to {_signed(floor).removeprefix('+')}, n = {same.n}"
    if (fewest := min(difference.n, same.n)) < FEWEST:
        why = f"{many(fewest, 'pair')}: a difference is claimed from {FEWEST} on (--repeat {FEWEST}); {difference}; {noise}"
        return Undecided(name, unit, None, why, origin=origin)
    if abs(value) <= floor:
        return Quantity(name, unit, None, f"{difference} is within the noise: {noise}", origin=origin)
    if low <= 0 <= high:
        return Quantity(name, unit, None, f"{difference} may be 0; {noise}", origin=origin)
    pairs = Pairs(difference.n, low, high, difference.confidence, same.n, floor)
    return Difference(name, unit, value, origin=origin, pairs=pairs)


def over_noise(difference: Paired, same: Paired) -> Quantity:
    """The size of the estimate of ``difference`` over :func:`least_difference` of ``same``: at most 1 where noise does as much.

    It says that no difference can be told, and not that there is none: one that is smaller than the noise has no way to show.
    The interval of its :class:`Difference` is that of the estimate with its sign, over the same number.
    Fewer than FEWEST pairs of either leave it :class:`Undecided`. There is no data where A/A duets differ by nothing.
    """
    least, name = least_difference(same), "size of the difference over the largest of A/A"
    try:
        size, floor = abs(difference.estimate.number), least.number
    except NoData as missing:
        return Quantity(name, "x", None, str(missing))
    if (fewest := min(difference.n, same.n)) < FEWEST:
        why = f"{fewest} of {FEWEST} pairs (--repeat {FEWEST}); {difference}; A/A differ by up to {floor:.3g}"
        return Undecided(name, "x", None, why)
    if not floor:
        return Quantity(name, "x", None, f"{difference}; A/A do not differ")
    low, high = difference.low.number / floor, difference.high.number / floor
    return Difference(name, "x", size / floor, pairs=Pairs(difference.n, low, high, difference.confidence, same.n, 1.0))


def _signed(value: float) -> str:
    """A difference with its sign: three significant digits, and never a power of ten."""
    return f"{value:+,.0f}" if abs(float(f"{value:.3g}")) >= 1000 else f"{value:+.3g}"


def _runs(side: Quantity | Sequence[Quantity]) -> Sequence[Quantity]:
    return (side.runs or (side,)) if isinstance(side, Quantity) else side
