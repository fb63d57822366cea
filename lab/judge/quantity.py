"""A quantity: a measured number with its unit and its name, or the reason why there is none.

Arithmetic carries a missing number on, and a comparison with a bound is no truth value but a :class:`Comparison`, which a test
hands to ``claim``. So a test writes ``claim(hold(lag).growth <= 50, "the lag trigger brings growth to an end")``, and a record
that holds too little makes that claim "no data" and never a pass.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from lab.errors import NoData

HOLDS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    ">=": operator.ge,
    ">": operator.gt,
}


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

    @property
    def holds(self) -> bool | None:
        """Whether the number stands in that relation to the bound; None when there is no number."""
        value = self.quantity.value
        return None if value is None else HOLDS[self.operator](value, self.bound)

    def __bool__(self) -> NoReturn:
        """Refuse: an ``if`` or ``assert`` on a comparison would treat "no data" as a pass. Raises ``TypeError``."""
        raise TypeError(f"a comparison of {self.quantity.name!r} is neither true nor false: hand it to claim(), or use .number")


@dataclass(frozen=True, eq=False)
class Quantity:
    """``value`` in ``unit``, or None and ``why``; ``name`` says in words what was measured.

    Beside a value, ``why`` says what could not be measured of it.
    """

    name: str
    unit: str
    value: float | None
    why: str = ""

    @property
    def number(self) -> float:
        """The number. Raises :class:`NoData` with the reason when there is none."""
        if self.value is None:
            raise NoData(self.why or f"no {self.name}")
        return self.value

    def named(self, name: str, unit: str | None = None) -> Quantity:
        """The same number under another name, and in words of another unit."""
        return Quantity(name, self.unit if unit is None else unit, self.value, self.why)

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
        return Quantity(self.name, self.unit, None if self.value is None else abs(self.value), self.why)

    def __mul__(self, factor: float) -> Quantity:
        return Quantity(self.name, self.unit, None if self.value is None else self.value * factor, self.why)

    def __truediv__(self, other: Quantity | float) -> Quantity:
        unit = "x" if not isinstance(other, Quantity) or other.unit == self.unit else f"{self.unit} / {other.unit}"
        return _combined(self, other, _ratio, "over", unit)


def _ratio(value: float, divisor: float) -> float:
    if divisor == 0:
        raise NoData("the divisor is 0")
    return value / divisor


def _combined(
    one: Quantity, other: Quantity | float, combine: Callable[[float, float], float], word: str, unit: str
) -> Quantity:
    """``one`` combined with ``other``; missing when either is."""
    name = f"{one.name} {word} {other.name if isinstance(other, Quantity) else format(other, 'g')}"
    try:
        return Quantity(name, unit, combine(one.number, other.number if isinstance(other, Quantity) else other))
    except NoData as missing:
        return Quantity(name, unit, None, str(missing))
