"""What a measure returns: its quantities under names that a test can read, or the one reason why there are none.

A measure is declared as a class and computed by a function:

    class Hold(Measure):
        growth = number("messages/s", "growth of lag over the last third of the spike")

    @measure
    def hold(record: Record) -> Hold:
        return Hold(growth=...)  # a float, or None where there is none

Where the function raises :class:`NoData`, ``hold(record).growth`` is a quantity without a value that says why. Of the runs of a
repeated trial, ``hold(runs).growth`` is the quantity of each run, and a claim on it held only where it holds in each. What a
measure computes from its own quantities is then of each run too; a method that reads its details says so by
:attr:`Measure.runs`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, Self, TypeVar, get_type_hints, overload

from lab.errors import NoData
from lab.judge.origin import UNKNOWN, Dimension, origin
from lab.judge.quantity import Quantity, repeated

T = TypeVar("T")
P = ParamSpec("P")


class Runs(tuple[T, ...]):
    """What each run of one trial left, in the order of the blocks: records, or what was measured of them."""


class Number:
    """One quantity of a measure, in ``unit``; ``name`` is what reports call it.

    ``dimension`` says how a scale changes it, where its unit does not. Its ``origin`` is known once its class is.
    """

    def __init__(self, unit: str, name: str, dimension: Dimension | None = None) -> None:
        self.unit, self.name, self._dimension, self.origin = unit, name, dimension, UNKNOWN

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute
        self.origin = origin(owner, attribute, self.unit, self._dimension)

    @overload
    def __get__(self, measured: None, owner: type) -> Self: ...
    @overload
    def __get__(self, measured: Measure, owner: type) -> Quantity: ...
    def __get__(self, measured: Measure | None, owner: type) -> Self | Quantity:
        if measured is None:
            return self
        if measured.runs:
            return repeated(self.__get__(one, owner) for one in measured.runs)
        value = measured.values.get(self.attribute)
        why = "" if value is not None else measured.why or f"no {self.name}"
        return Quantity(self.name, self.unit, value, why, origin=self.origin)


class Detail(Generic[T]):
    """What a measure says beside its numbers, of type ``kind``. Reading it raises :class:`NoData` where there is no measure.

    Of several runs it is the :class:`Runs` of what each says.
    """

    def __init__(self, kind: type[T], name: str) -> None:
        self.name = name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self.attribute = attribute

    @overload
    def __get__(self, measured: None, owner: type) -> Self: ...
    @overload
    def __get__(self, measured: Measure, owner: type) -> T: ...
    def __get__(self, measured: Measure | None, owner: type) -> Self | T:
        if measured is None:
            return self
        if measured.runs:
            several: Any = Runs(self.__get__(one, owner) for one in measured.runs)
            return several  # type: ignore[no-any-return]
        if measured.why:
            raise NoData(measured.why)
        content: T = measured.values[self.attribute]
        return content


number, detail = Number, Detail


class Measure:
    """The quantities of one measure of one record. Raises ``TypeError`` unless exactly its numbers and details are given.

    Of a trial that was repeated ``runs`` has the measure of each run.
    """

    runs: tuple[Self, ...] = ()

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

    def quantities(self) -> list[Quantity]:
        """Each of its numbers, in the order of their declaration."""
        return [getattr(self, name) for name, item in self.declared().items() if isinstance(item, Number)]

    @classmethod
    def missing(cls, why: str) -> Self:
        """The measure of a record that does not hold what it needs, and ``why``."""
        made = cls.__new__(cls)
        made.values, made.why = {}, why
        return made

    @classmethod
    def of_runs(cls, each: Sequence[Self]) -> Self:
        """The measure of several runs; of a single one it is that run's."""
        if len(each) == 1:
            return each[0]
        made = cls.missing(next((one.why for one in each if one.why), ""))
        made.runs = tuple(each)
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

    of_one: Callable[..., M] = compute

    def once(*given: Any, **named: Any) -> M:
        try:
            return of_one(*given, **named)
        except NoData as missing:
            kind: type[M] = get_type_hints(compute)["return"]
            return kind.missing(str(missing))

    @functools.wraps(compute)
    def measured(*given: P.args, **named: P.kwargs) -> M:
        each = _each(once, given, named)
        return type(each[0]).of_runs(each)

    return measured


def quantity(unit: str, name: str, dimension: Dimension | None = None) -> Callable[[Callable[P, float]], Callable[P, Quantity]]:
    """Make a function that returns one number, or raises :class:`NoData`, return a :class:`Quantity`.

    ``dimension`` is that of :func:`number`.
    """

    def decorate(compute: Callable[P, float]) -> Callable[P, Quantity]:
        made = origin(compute, "", unit, dimension)
        of_one: Callable[..., float] = compute

        def once(*given: Any, **named: Any) -> Quantity:
            try:
                return Quantity(name, unit, of_one(*given, **named), origin=made)
            except NoData as missing:
                return Quantity(name, unit, None, str(missing), origin=made)

        @functools.wraps(compute)
        def measured(*given: P.args, **named: P.kwargs) -> Quantity:
            return repeated(_each(once, given, named))

        return measured

    return decorate


def _each(compute: Callable[..., T], given: Sequence[Any], named: Mapping[str, Any]) -> list[T]:
    """What ``compute`` returns for each run of the arguments that are :class:`Runs`; a single result where none is.

    Raises ``ValueError`` for runs that are not as many in each.
    """
    lengths = {len(one) for one in (*given, *named.values()) if isinstance(one, Runs)}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(f"the runs to measure are {' and '.join(map(str, sorted(lengths)))} in number: they must be as many")

    def of(value: Any, number: int) -> Any:
        return value[number] if isinstance(value, Runs) else value

    return [
        compute(*(of(value, number) for value in given), **{name: of(value, number) for name, value in named.items()})
        for number in range(next(iter(lengths), 1))
    ]
