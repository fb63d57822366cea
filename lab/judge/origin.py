"""The origin of a quantity: the measures that it is made of, and how a scale changes it.

A scale divides times and multiplies rates, so it changes a measured number by its dimension. A measure declares its dimension
where it declares its unit: by the unit (:data:`OF_UNIT`), or by an argument where the unit does not say it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Dimension(NamedTuple):
    """The exponents of time and of rate in a number: messages are a rate times a time."""

    time: int
    rate: int

    def at_real_time(self, value: float, time: float, rate: float) -> float:
        """What ``value`` stands for at real time, where it was measured with times over ``time`` and rates times ``rate``."""
        return value * time**self.time / rate**self.rate


# UNSCALED: shares and counts of steps, pods and partitions. Also times that no scale compresses, as those of Kafka, of a pod's
# start and of its shutdown; and figures that a measure has stretched to real time already.
UNSCALED = Dimension(0, 0)
TIME = Dimension(1, 0)
RATE = Dimension(0, 1)
MESSAGES = Dimension(1, 1)

OF_UNIT = {
    **dict.fromkeys(("s", "ms", "pod-minutes"), TIME),
    **dict.fromkeys(("messages", "events", "offsets", "requests"), MESSAGES),
    **dict.fromkeys(("messages/s", "events/s", "requests/s"), RATE),
}


@dataclass(frozen=True)
class Origin:
    """The full names of the ``measures`` that a number is made of; none where no measure returned it.

    ``compared`` says that it sets the same measures of two trials against each other, as a difference or a ratio.
    """

    measures: tuple[str, ...] = ()
    dimension: Dimension = UNSCALED
    compared: bool = False

    def sum(self, other: Origin) -> Origin:
        """The origin of a sum, and of a difference of different measures."""
        return Origin(self._with(other), self.dimension, self.compared and other.compared)

    def difference(self, other: Origin) -> Origin:
        """The origin of this less the ``other``."""
        return Origin(self._with(other), self.dimension, self._against(other))

    def ratio(self, other: Origin) -> Origin:
        """The origin of this over the ``other``."""
        mine, theirs = self.dimension, other.dimension
        left = Dimension(mine.time - theirs.time, mine.rate - theirs.rate)
        return Origin(self._with(other), left, self._against(other))

    def _with(self, other: Origin) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*self.measures, *other.measures)))

    def _against(self, other: Origin) -> bool:
        return (bool(self.measures) and set(self.measures) == set(other.measures)) or (self.compared and other.compared)


UNKNOWN = Origin()


def origin(of: object, attribute: str, unit: str, dimension: Dimension | None) -> Origin:
    """The origin of a number of the measure ``of``, a class or a function; ``attribute`` is its name in a class."""
    name = ".".join(filter(None, [of.__module__, getattr(of, "__qualname__", ""), attribute]))
    return Origin((name,), OF_UNIT.get(unit, UNSCALED) if dimension is None else dimension)
