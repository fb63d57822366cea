"""Zipf-distributed entity ids, deterministic by seed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from lab.spec.profile import ZIPF

ENTITIES = 5_000_000
BLOCK = 65_536


class Entities:
    """An endless sequence of entity ids; the id of event ``seq`` depends on the seed alone, not on when it is asked for.

    Rank k is drawn with probability proportional to k^-s (inverse transform over the cumulative weights), and ranks are
    spread over the ids by a seeded affine bijection, so that which partitions are hot depends on the seed.
    """

    def __init__(self, seed: int, entities: int = ENTITIES, exponent: float = ZIPF) -> None:
        weights = np.arange(1, entities + 1, dtype=np.float64) ** -exponent
        self._cumulative = np.cumsum(weights)
        self._cumulative /= self._cumulative[-1]
        self._random = np.random.Generator(np.random.PCG64(seed))
        self._entities = entities
        self._shift = int(self._random.integers(entities))
        self._stride = next(
            stride
            for stride in map(int, self._random.integers(1, max(2, entities), size=1000))
            if math.gcd(stride, entities) == 1
        )
        self._block = np.empty(0, dtype=np.uint64)

    def ids_of_ranks(self, ranks: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
        """The entity ids that stand at ``ranks`` (0 is the hottest)."""
        return ((ranks * self._stride + self._shift) % self._entities).astype(np.uint64)

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next ``count`` ids. Drawn in fixed blocks, so the sequence does not depend on the sizes asked for."""
        while len(self._block) < count:
            ranks = np.searchsorted(self._cumulative, self._random.random(BLOCK)).astype(np.int64)
            self._block = np.concatenate((self._block, self.ids_of_ranks(ranks)))
        taken, self._block = self._block[:count], self._block[count:]
        return taken
