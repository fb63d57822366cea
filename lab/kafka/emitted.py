"""The layout of an emitted message: the 256 bytes of the event, and behind them its place among what the group consumes.

Big-endian like the event itself (:mod:`lab.kafka.event`), so that Spark's SQL reads both alike.

256  partition  u32   of the event there; of several topics the trial's number (:mod:`lab.kafka.numbering`)
260  offset     u64   likewise: both together name the event, so a reader can tell a repeated one
268  processed  i64   the time at which its processing ended, ns since the epoch
"""

from __future__ import annotations

import struct

from lab.kafka import event

TRAILER = struct.Struct(">IQq")
SIZE = event.SIZE + TRAILER.size


def encode(value: bytes, partition: int, offset: int, processed: float) -> bytes:
    """The emitted message of the event ``value``; ``processed`` is in epoch s. Raises ``struct.error`` out of range."""
    return value + TRAILER.pack(partition, offset, round(processed * 1e9))
