"""The keys of events: Zipf-distributed entity ids, deterministic by seed, and the partition that each key goes to."""

from __future__ import annotations

import functools
import math
import threading

import numpy as np
import numpy.typing as npt

from lab.inputs.profile import ZIPF, Profile

ENTITIES = 5_000_000
BLOCK = 65_536


class Entities:
    """An endless sequence of entity ids; the id of event ``seq`` depends on the seed alone, not on when it is asked for.

    Rank k is drawn with probability proportional to k^-s (inverse transform over the cumulative weights), and ranks are
    spread over the ids by a seeded affine bijection, so that which partitions are hot depends on the seed.
    """

    def __init__(self, seed: int, entities: int = ENTITIES, exponent: float = ZIPF) -> None:
        weights = np.arange(1, entities + 1, dtype=np.float64)
        weights **= -exponent  # in place, as what follows: an array of 40 MB takes a moment to be had
        self._cumulative = np.cumsum(weights, out=weights)
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

    def block(self) -> npt.NDArray[np.uint64]:
        """The next BLOCK ids. They are looked up in the order of size, which is three times as fast, and put back."""
        drawn = self._random.random(BLOCK)
        places = np.argsort(drawn)
        ranks = np.empty(BLOCK, dtype=np.int64)
        ranks[places] = np.searchsorted(self._cumulative, drawn[places])
        return self.ids_of_ranks(ranks)

    def take(self, count: int) -> npt.NDArray[np.uint64]:
        """The next ``count`` ids. Drawn in fixed blocks, so the sequence does not depend on the sizes asked for."""
        while len(self._block) < count:
            self._block = np.concatenate((self._block, self.block()))
        taken, self._block = self._block[:count], self._block[count:]
        return taken


_SEED, _MULTIPLIER, _SHIFT = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
MOST_DRAWN = 2_000_000  # of a longer profile's events the first so many tell the shares


def partitions_of(ids: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.int64]:
    """The partition, of ``count``, of each entity id as a key of 8 bytes, big-endian. Source: ``Utils.murmur2`` and
    ``BuiltInPartitioner.partitionForKey`` of Kafka's Java client; librdkafka's ``murmur2_random`` places keys alike."""
    return _hashed(ids).astype(np.int64) % count


def _hashed(ids: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint32]:
    """What the partitioner takes the remainder of, from 0 to 2^31 - 1."""
    words = ids.astype(">u8").view("<u4").reshape(-1, 2)
    hashed = np.full(len(ids), _SEED ^ 8, dtype=np.uint32)
    with np.errstate(over="ignore"):
        for word in words.T:
            mixed = word * _MULTIPLIER
            mixed ^= mixed >> _SHIFT
            hashed = (hashed * _MULTIPLIER) ^ (mixed * _MULTIPLIER)
        hashed ^= hashed >> np.uint32(13)
        hashed *= _MULTIPLIER
        hashed ^= hashed >> np.uint32(15)
    found: npt.NDArray[np.uint32] = hashed & np.uint32(0x7FFFFFFF)
    return found


@functools.lru_cache(maxsize=32)
def shares(profile: Profile, seed: int, partitions: int, entities: int = ENTITIES) -> npt.NDArray[np.float64]:
    """Each partition's share of the events of ``profile``, ``seed`` and ``entities``; their sum is 1. It is kept: read-only."""
    drawn = _drawn(profile.zipf, seed, entities).first(max(1, min(profile.total, MOST_DRAWN)))
    counts = np.bincount(drawn % np.uint32(partitions), minlength=partitions).astype(np.float64)
    share: npt.NDArray[np.float64] = counts / counts.sum()
    share.setflags(write=False)
    return share


def draw(zipf: float, seed: int, entities: int = ENTITIES) -> None:
    """Draw all that :func:`shares` takes of any profile with the exponent ``zipf``: whoever asks later waits for no draw."""
    _drawn(zipf, seed, entities).first(MOST_DRAWN)


class _Drawn:
    """:func:`_hashed` of the keys in their order, of which as many are drawn as were asked for, and kept."""

    def __init__(self, zipf: float, seed: int, entities: int) -> None:
        self._make = functools.partial(Entities, seed, entities, zipf)  # of 40 MB, and so not kept
        self._kept: npt.NDArray[np.uint32] = np.empty(0, dtype=np.uint32)
        self._lock = threading.Lock()

    def first(self, count: int) -> npt.NDArray[np.uint32]:
        """The first ``count``. Who asks for more than before asks again: then all are drawn that are ever asked for."""
        with self._lock:
            if len(self._kept) < count:
                keys, wanted = self._make(), MOST_DRAWN if len(self._kept) else count
                self._kept = np.concatenate([_hashed(keys.block()) for _ in range(0, wanted, BLOCK)])
            return self._kept[:count]


_drawn = functools.lru_cache(maxsize=8)(_Drawn)  # of 8 MB each at most
