"""One quantity made of several: their total, the largest, the smallest or the median.

It has the unit and the name of the first. It is missing when there are none, or when any of them is missing. Quantities of
repeated trials are aggregated block by block.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable

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
    missing = next((one for one in several if one.value is None), None)
    if missing is not None:
        return Quantity(name, unit, None, missing.why or f"no {missing.name}")
    return Quantity(name, unit, combine([one.number for one in several]))
