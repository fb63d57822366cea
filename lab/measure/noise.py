"""Noise: what A/A duets differ by, which is the least difference of each measure that can be told here. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lab.judge.pairs import least_difference, paired
from lab.judge.quantity import Quantity
from lab.measure.overview import numbers
from lab.record.store import Record


def least_differences(
    one: Sequence[Record], other: Sequence[Record], measures: Callable[[Record], Mapping[str, Quantity]] = numbers
) -> dict[str, Quantity]:
    """The least difference that can be told, by the name of each of ``measures``, from the sides of A/A duets, pair by pair.

    A measure that a record has no data for has none, and says in which pair. Raises ``ValueError`` for sides that are no pairs.
    """
    sides = [[measures(record) for record in side] for side in (one, other)]
    names = list(dict.fromkeys(name for side in sides for found in side for name in found))
    return {name: least_difference(paired(*([found[name] for found in side] for side in sides))) for name in names}
