"""What a measure returns: its quantities under names that a test can read, or the one reason why there are none.

A measure is declared as a class and computed by a function:

    class Hold(Measure):
        growth = number("messages/s", "growth of lag over the last third of the spike")

    @measure
    def hold(record: Record) -> Hold:
        return Hold(growth=...)  # a float, or None where there is none

Where the function raises :class:`NoData`, ``hold(record).growth`` is a quantity without a value that says why. Of the runs of a
repeated trial, ``hold(runs).growth`` is the quantity of each run (:mod:`lab.judge.runs`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Generic, ParamSpec, Self, TypeVar, cast, get_type_hints, overload

from lab.errors import NoData
from lab.judge import runs
from lab.judge.origin import UNKNOWN, Dimension, origin
from lab.judge.quantity import Quantity

T = TypeVar("T")
P = ParamSpec("P")


class Declared:
    """An attribute that a measure declares; ``name`` says in words what it is."""

    def __init__(self, name: str) -> None:
        self.name, self.attribute = name, ""

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute


class Number(Declared):
    """One quantity of a measure, in ``unit``; its ``origin`` is known once its class is."""

    def __init__(self, unit: str, name: str, dimension: Dimension | None = None) -> None:
        super().__init__(name)
        self.unit, self._dimension, self.origin = unit, dimension, UNKNOWN

    def __set_name__(self, owner: type, attribute: str) -> None:
        super().__set_name__(owner, attribute)
        self.origin = origin(owner, attribute, self.unit, self._dimension)

    @overload
    def __get__(self, measured: None, owner: type) -> Self: ...
    @overload
    def __get__(self, measured: Measure, owner: type) -> Quantity: ...
    def __get__(self, measured: Measure | None, owner: type) -> Self | Quantity:
        if measured is None:
            return self
        value = measured.values.get(self.attribute)
        why = "" if value is not None else measured.why or f"no {self.name}"
        return Quantity(self.name, self.unit, value, why, origin=self.origin)


class Detail(Declared, Generic[T]):
    """What a measure says beside its numbers: names, tables. Reading it raises :class:`NoData` where there is no measure."""

    @overload
    def __get__(self, measured: None, owner: type) -> Self: ...
    @overload
    def __get__(self, measured: Measure, owner: type) -> T: ...
    def __get__(self, measured: Measure | None, owner: type) -> Self | T:
        if measured is None:
            return self
        if measured.why:
            raise NoData(measured.why)
        content: T = measured.values[self.attribute]
        return content


def number(unit: str, name: str, dimension: Dimension | None = None) -> Number:
    """A quantity of a measure in ``unit``; ``name`` is what reports call it.

    ``dimension`` says how a scale changes it, where its unit does not.
    """
    return Number(unit, name, dimension)


def detail(kind: type[T], name: str) -> Detail[T]:
    """What a measure says beside its numbers, of type ``kind``."""
    return Detail(name)


class Measure:
    """The quantities of one measure of one record. Raises ``TypeError`` unless exactly its numbers and details are given.

    A number or detail may not have the name of anything below, so that none hides it.
    """

    def __init_subclass__(cls) -> None:
        if hidden := sorted(
            name for name in vars(cls).keys() & vars(Measure).keys() if isinstance(vars(cls)[name], Number | Detail)
        ):
            raise TypeError(f"{cls.__name__} has {', '.join(hidden)}, which every measure has already: choose another name")

    def __init__(self, **values: Any) -> None:
        declared = self.declared()
        if values.keys() != declared.keys():
            odd = sorted(values.keys() ^ declared.keys())
            raise TypeError(f"{type(self).__name__} has {', '.join(declared)}; not as declared: {', '.join(odd)}")
        self.values: dict[str, Any] = values
        self.why = ""

    @classmethod
    def declared(cls) -> dict[str, Number | Detail[Any]]:
        """Each number and detail by its name, in the order of their declaration."""
        return {
            name: item
            for owner in reversed(cls.__mro__)
            for name, item in vars(owner).items()
            if isinstance(item, Number | Detail)
        }

    @classmethod
    def missing(cls, why: str) -> Self:
        """The measure of a record that does not hold what it needs, and ``why``."""
        made = cls.__new__(cls)
        made.values, made.why = {}, why
        return made

    def to_dict(self) -> dict[str, Any]:
        """The values as plain data, or ``{"no data": reason}``."""
        return {"no data": self.why} if self.why else dict(self.values)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and (self.values, self.why) == (other.values, other.why)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"


M = TypeVar("M", bound=Measure)


def measure(compute: Callable[P, M]) -> Callable[P, M]:
    """Make the :class:`NoData` that ``compute`` raises the reason of a measure without values."""

    @functools.wraps(compute)
    def measured(*given: P.args, **named: P.kwargs) -> M:
        if count := runs.count(given, named):
            return cast(M, runs.each(measured, count, given, named))
        try:
            return compute(*given, **named)
        except NoData as missing:
            kind: type[M] = get_type_hints(compute)["return"]
            return kind.missing(str(missing))

    return measured


def quantity(unit: str, name: str, dimension: Dimension | None = None) -> Callable[[Callable[P, float]], Callable[P, Quantity]]:
    """Make a function that returns one number, or raises :class:`NoData`, return a :class:`Quantity`.

    ``dimension`` is that of :func:`number`.
    """

    def decorate(compute: Callable[P, float]) -> Callable[P, Quantity]:
        made = origin(compute, "", unit, dimension)

        @functools.wraps(compute)
        def measured(*given: P.args, **named: P.kwargs) -> Quantity:
            if count := runs.count(given, named):
                return cast(Quantity, runs.each(measured, count, given, named))
            try:
                return Quantity(name, unit, compute(*given, **named), origin=made)
            except NoData as missing:
                return Quantity(name, unit, None, str(missing), origin=made)

        return measured

    return decorate
