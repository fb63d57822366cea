"""Whole messages: what Kafka's offsets, which are integers, show of the fluid. Arrays are messages by partition. Pure."""

from __future__ import annotations

import functools
import math

import numpy as np

from lab.foresee.group import Floats

ROUNDING = 1e-6  # messages: a sum that lacks less than this to a whole number is that number
GOLDEN = (math.sqrt(5) - 1) / 2


def total(amounts: Floats) -> int:
    """All ``amounts`` together in whole messages: what is not a whole message has not come yet."""
    return int(totals(amounts))


def totals(amounts: Floats) -> Floats:
    """:func:`total` of each row of ``amounts``, which are by policy and partition."""
    found: Floats = np.floor(amounts.sum(axis=-1) + ROUNDING)
    return found


def by_partition(amounts: Floats) -> Floats:
    """Each of ``amounts`` rounded up or down to whole messages, so that their sum is their :func:`total`.

    A partition of its own (:func:`_offsets`) rounds up sooner than others: of a tenth of a message on each of ten partitions
    one holds a whole message. As amounts grow, a message that has come to a partition stays there, but for some at the edge.
    """
    found: Floats = np.floor(amounts)
    part = amounts - found
    missing = total(amounts) - int(found.sum())
    if missing:
        first = np.where(part > ROUNDING, part + _offsets(len(part)), 0.0)
        found[np.argpartition(first, -missing)[-missing:]] += 1
    return found


def counts(amounts: Floats) -> Floats:
    """Whole messages of ``amounts`` that only grow: no count ever falls. Their sum may be off by some."""
    found: Floats = np.floor(amounts + _offsets(len(amounts)) + ROUNDING)
    return found


@functools.lru_cache(maxsize=64)
def _offsets(partitions: int) -> Floats:
    """How much each of the ``partitions`` is ahead of whole numbers, 0 to 1: evenly spread, also over any few in a row."""
    found: Floats = np.arange(1, partitions + 1, dtype=np.float64) * GOLDEN % 1.0
    found.setflags(write=False)
    return found
