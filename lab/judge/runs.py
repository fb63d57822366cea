"""The runs of one trial that was repeated. A measure takes them like a single record, and measures each.

cpu = trials.blocks({"CPU": …})["CPU"]        # six records
claim(hold(cpu).growth > 500, "…")            # held only where it holds in each of the six
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, TypeVar

from lab.judge.quantity import Quantity, repeated

T = TypeVar("T")


class Runs(tuple[T, ...]):
    """What each run left, in the order of the blocks: records, or what was measured of them."""


def first(found: T | Runs[T]) -> T:
    """A single record as it is, and the first of several: for what all runs have in common, as their policy."""
    return found[0] if isinstance(found, Runs) else found


def every(found: T | Runs[T]) -> tuple[T, ...]:
    """All runs; a single record is one."""
    return found if isinstance(found, Runs) else (found,)


class Several(Generic[T]):
    """What was measured of several runs: ``growth`` of it is the quantity in each run, made by :func:`repeated`.

    Anything else that the runs have is a :class:`Runs` of it, and a method is called of each.
    """

    def __init__(self, each: tuple[T, ...]) -> None:
        self.each = each

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _together([getattr(one, name) for one in self.each])


def count(given: Sequence[Any], named: Mapping[str, Any]) -> int:
    """How many runs there are among the arguments of a measure; 0 where no argument is :class:`Runs`.

    Raises ``ValueError`` for runs that are not as many in each.
    """
    lengths = {len(one) for one in (*given, *named.values()) if isinstance(one, Runs)}
    if len(lengths) > 1 or 0 in lengths:
        raise ValueError(f"the runs to measure are {' and '.join(map(str, sorted(lengths)))} in number: they must be as many")
    return next(iter(lengths), 0)


def each(compute: Callable[..., Any], runs: int, given: Sequence[Any], named: Mapping[str, Any]) -> Any:
    """What ``compute`` measures in each of so many ``runs``, together: a quantity of all, or :class:`Several`."""
    results = []
    for number in range(runs):
        one = [value[number] if isinstance(value, Runs) else value for value in given]
        more = {name: value[number] if isinstance(value, Runs) else value for name, value in named.items()}
        results.append(compute(*one, **more))
    return _together(results)


def _together(results: list[Any]) -> Any:
    if all(isinstance(one, Quantity) for one in results):
        return repeated(results)
    if all(callable(one) for one in results):
        return lambda *given, **named: _together([one(*given, **named) for one in results])
    if all(isinstance(one, str | int | float | tuple | list | dict | None) for one in results):
        return Runs(results)
    return Several(tuple(results))
