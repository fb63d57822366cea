"""Which partition a key goes to, and so what share of a profile's traffic each partition gets."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lab.spec.profile import Profile
from lab.spec.zipf import BLOCK, ENTITIES, Entities

_SEED, _MULTIPLIER, _SHIFT = 0x9747B28C, np.uint32(0x5BD1E995), np.uint32(24)
MOST_DRAWN = 2_000_000  # of a longer profile's events the first so many tell the shares


def partitions_of(ids: npt.NDArray[np.uint64], count: int) -> npt.NDArray[np.int64]:
    """The partition, of ``count``, of each entity id as a key of 8 bytes, big-endian.

    Source: ``Utils.murmur2`` and ``BuiltInPartitioner.partitionForKey`` of Kafka's Java client; librdkafka's
    ``murmur2_random`` places keys alike.
    """
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
    return (hashed & np.uint32(0x7FFFFFFF)).astype(np.int64) % count


def shares(profile: Profile, seed: int, partitions: int, entities: int = ENTITIES) -> npt.NDArray[np.float64]:
    """Each partition's share of the events that a producer sends for ``profile``, ``seed`` and ``entities``; their sum is 1."""
    wanted = max(1, min(profile.total, MOST_DRAWN))
    keys = Entities(seed, entities, profile.zipf)
    counts = np.zeros(partitions)
    for begin in range(0, wanted, BLOCK):
        ids = keys.take(min(BLOCK, wanted - begin))
        counts += np.bincount(partitions_of(ids, partitions), minlength=partitions)
    share: npt.NDArray[np.float64] = counts / counts.sum()
    return share
