"""The partitions of a simulated group that one trigger counts. Pure."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from lab.foresee.group import Floats, Ints


@dataclass(frozen=True)
class Part:
    """The partitions of the topic at ``place`` of ``topics``, or of all (None); ``only`` are those by number that count, None
    for all."""

    place: int | None = None
    topics: int = 1
    only: frozenset[int] | None = None

    def numbers(self, partitions: int) -> Ints:
        """Their numbers in a group that has so many ``partitions`` on all of its topics."""
        return _numbers(self, partitions)

    def of(self, values: Floats) -> Floats:
        """Those of the ``values`` by partition that count."""
        whole = self.only is None and (self.place is None or self.topics == 1)
        return values if whole else values[self.numbers(len(values))]


@functools.lru_cache(maxsize=64)
def _numbers(part: Part, partitions: int) -> Ints:
    each = partitions if part.place is None else partitions // part.topics
    own = range(each) if part.only is None else (number for number in sorted(part.only) if number < each)
    return np.fromiter(own, np.int64) + (part.place or 0) * each
