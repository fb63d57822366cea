"""A quantity: a measured number with its unit and its name, or the reason why there is none.

Arithmetic carries a missing number on, and a comparison with a bound is no truth value but a :class:`Comparison`, which a test
hands to ``claim``. So a test writes ``claim(hold(lag).growth <= 50, "the lag trigger brings growth to an end")``, and a record
that holds too little makes that claim "no data" and never a pass.

A quantity of a trial that was repeated has ``runs``: itself in each run, in the order of the blocks. Arithmetic of two such
quantities is done block by block, and a bound is held only where it is held in every run.
"""

from __future__ import annotations

import math
import operator
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NoReturn

from lab.errors import NoData
from lab.judge.origin import UNKNOWN, Origin

HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}
NO_REASON = "no reason is given"
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}  # an operator as it is shown, where not as it is written


class Bound(float):
    """A bound that several tests share: a number with its ``source``, the text or the rule that it comes from."""

    source: str

    def __new__(cls, value: float, source: str) -> Bound:
        """The bound ``value``."""
        bound = super().__new__(cls, value)
        bound.source = source
        return bound

    def __getnewargs__(self) -> tuple[float, str]:  # type: ignore[override]
        """What a copy of the bound is made of."""
        return float(self), self.source


@dataclass(frozen=True)
class Comparison:
    """A ``quantity`` beside a ``bound`` in the quantity's unit; ``operator`` is one of < <= == >= >."""

    quantity: Quantity
    operator: str
    bound: float

    def __post_init__(self) -> None:
        """Refuse a bound that may be missing. Raises ``TypeError`` for a quantity."""
        if isinstance(self.bound, Quantity):
            raise TypeError(f"{self.quantity.name!r} is compared with {self.bound.name!r}: compare their difference with 0")

    @property
    def holds(self) -> bool | None:
        """Whether the number stands in that relation to the bound; None when there is no number.

        Of several runs: False when one breaches it, else None when one has no number.
        """
        each = self.each
        return False if False in each else None if None in each else True

    @property
    def each(self) -> tuple[bool | None, ...]:
        """:attr:`holds` of each run; of a quantity that was not repeated, its own."""
        values = [one.value for one in self.quantity.runs or (self.quantity,)]
        return tuple(None if value is None else HOLDS[self.operator](value, self.bound) for value in values)

    def __bool__(self) -> NoReturn:
        """Refuse: an ``if`` or ``assert`` on a comparison would treat "no data" as a pass. Raises ``TypeError``."""
        raise TypeError(f"a comparison of {self.quantity.name!r} is neither true nor false: hand it to claim(), or use .number")


@dataclass(frozen=True, eq=False)
class Quantity:
    """``value`` in ``unit``, or None and ``why``; ``name`` says in words what was measured.

    Beside a value, ``why`` says what could not be measured of it. Of a repeated trial ``runs`` has the quantity of each run and
    ``value`` is their median: :func:`repeated` makes it. ``origin`` has the measures that it is made of.
    """

    name: str
    unit: str
    value: float | None
    why: str = ""
    runs: tuple[Quantity, ...] = ()
    origin: Origin = UNKNOWN

    @property
    def number(self) -> float:
        """The number. Raises :class:`NoData` with the reason when there is none."""
        if self.value is None:
            raise NoData(self.why or f"no {self.name}")
        return self.value

    def named(self, name: str, unit: str | None = None) -> Quantity:
        """The same number under another name, and in words of another unit."""
        runs = tuple(one.named(name, unit) for one in self.runs)
        return Quantity(name, self.unit if unit is None else unit, self.value, self.why, runs, self.origin)

    def __float__(self) -> float:
        return float(self.number)

    def __int__(self) -> int:
        return int(self.number)

    def __format__(self, spec: str) -> str:
        return "no data" if self.value is None else format(self.value, spec)

    def __str__(self) -> str:
        return f"{self.name}: no data ({self.why})" if self.value is None else f"{self.name}: {self.value:g} {self.unit}"

    def __lt__(self, bound: float) -> Comparison:
        return Comparison(self, "<", bound)

    def __le__(self, bound: float) -> Comparison:
        return Comparison(self, "<=", bound)

    def __eq__(self, bound: float) -> Comparison:  # type: ignore[override]
        return Comparison(self, "==", bound)

    def __ge__(self, bound: float) -> Comparison:
        return Comparison(self, ">=", bound)

    def __gt__(self, bound: float) -> Comparison:
        return Comparison(self, ">", bound)

    __hash__ = None  # type: ignore[assignment]

    def __sub__(self, other: Quantity | float) -> Quantity:
        return _combined(self, other, operator.sub, "less", self.unit)

    def __add__(self, other: Quantity | float) -> Quantity:
        return _combined(self, other, operator.add, "and", self.unit)

    def __abs__(self) -> Quantity:
        if self.runs:
            return repeated(map(abs, self.runs))
        return replace(self, value=None if self.value is None else abs(self.value))

    def __mul__(self, factor: float) -> Quantity:
        if self.runs:
            return repeated(one * factor for one in self.runs)
        return replace(self, value=None if self.value is None else self.value * factor)

    def __truediv__(self, other: Quantity | float) -> Quantity:
        unit = "x" if not isinstance(other, Quantity) or other.unit == self.unit else f"{self.unit} / {other.unit}"
        return _combined(self, other, _ratio, "over", unit)


class Undecided(Quantity):
    """A quantity without a number because the session has too few runs of it, by the choice of its ``--repeat``.

    A claim on it is no data. It is shown, and does not fail its test: nothing is wrong with any record.
    """


def absence(figure: Quantity | float | None) -> str:
    """Why a ``figure`` has no data; "" where it has a number."""
    value = figure.value if isinstance(figure, Quantity) else figure
    if value is not None and not math.isnan(value):
        return ""
    return (figure.why if isinstance(figure, Quantity) else "") or NO_REASON


def _ratio(value: float, divisor: float) -> float:
    if divisor == 0:
        raise NoData("the divisor is 0")
    return value / divisor


def _combined(
    one: Quantity, other: Quantity | float, combine: Callable[[float, float], float], word: str, unit: str
) -> Quantity:
    """``one`` combined with ``other``, run by run where they were repeated; missing when either is."""
    if not isinstance(other, Quantity):
        other = Quantity(format(other, "g"), one.unit, other)
    if one.runs or other.runs:
        blocks = zip(*in_blocks([one, other]), strict=True)
        return repeated(_combined(mine, theirs, combine, word, unit) for mine, theirs in blocks)
    name, origin = f"{one.name} {word} {other.name}", one.origin
    if other.origin.measures:  # a number that nobody measured leaves it as it is
        origin = {"and": origin.sum, "less": origin.difference, "over": origin.ratio}[word](other.origin)
    try:
        return Quantity(name, unit, combine(one.number, other.number), origin=origin)
    except NoData as missing:
        return Quantity(name, unit, None, str(missing), origin=origin)


def repeated(quantities: Iterable[Quantity]) -> Quantity:
    """One quantity of the same in each run: its value is the median. It is missing when it is missing in any run.

    It has the name and the unit of the first; of a single run it is that run's. Raises ``ValueError`` for no run.
    """
    runs = tuple(quantities)
    if not runs:
        raise ValueError("repeated: there is no run")
    first, *others = runs
    if not others:
        return first
    name, unit, origin = first.name, first.unit, first.origin
    for number, one in enumerate(runs, 1):
        if one.value is None:
            return Quantity(name, unit, None, f"run {number} of {len(runs)}: {one.why or f'no {one.name}'}", runs, origin)
    return Quantity(name, unit, statistics.median(one.number for one in runs), "", runs, origin)


def in_blocks(quantities: Iterable[Quantity]) -> list[tuple[Quantity, ...]]:
    """The runs of each of ``quantities``, which were repeated equally often; one that was not is the same in every block.

    Raises ``ValueError`` for quantities of different numbers of runs.
    """
    several = list(quantities)
    lengths = {len(one.runs) for one in several if one.runs}
    if len(lengths) > 1:
        raise ValueError(f"quantities of {' and '.join(map(str, sorted(lengths)))} runs have no blocks in common")
    length = next(iter(lengths), 1)
    return [one.runs or (one,) * length for one in several]
