"""The event's binary layout: 256 bytes, big-endian, so that Spark's SQL can read the fields without a decoder.

0   entity_id  u64   the entity that the event is about; also the record's key
8   seq        u64   0, 1, 2 … in the order of the schedule
16  ts         i64   its time in the schedule, ns since the epoch (so latency is free of coordinated omission)
24  payload    232 B

An emitted message is the event and behind it its place among what the group consumes:

256  partition  u32   of the event there; of several topics the trial's number (:mod:`lab.kafka.numbering`)
260  offset     u64   likewise: both together name the event, so a reader can tell a repeated one
268  processed  i64   the time at which its processing ended, ns since the epoch
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from typing import NamedTuple

SIZE = 256
HEADER = struct.Struct(">QQq")
PAYLOAD = SIZE - HEADER.size
KEY = struct.Struct(">Q")
TRAILER = struct.Struct(">IQq")  # of an emitted message
_SEQ = struct.Struct(">8xQ")


class Event(NamedTuple):
    """A decoded event."""

    entity_id: int
    seq: int
    ts: int
    payload: bytes


def encode(entity_id: int, seq: int, ts: int, payload: bytes) -> bytes:
    """The event's 256 bytes. Raises ``ValueError`` when ``payload`` is not 232 bytes, ``struct.error`` out of range."""
    if len(payload) != PAYLOAD:
        raise ValueError(f"payload has {len(payload)} bytes; an event's has {PAYLOAD}")
    return HEADER.pack(entity_id, seq, ts) + payload


def emitted(value: bytes, partition: int, offset: int, processed: float) -> bytes:
    """The emitted message of the event ``value``; ``processed`` is in epoch s. Raises ``struct.error`` out of range."""
    return value + TRAILER.pack(partition, offset, round(processed * 1e9))


def decode(value: bytes) -> Event:
    """The event in ``value``. Raises ``ValueError`` when it is not 256 bytes."""
    if len(value) != SIZE:
        raise ValueError(f"an event has {SIZE} bytes; this has {len(value)}")
    entity_id, seq, ts = HEADER.unpack_from(value)
    return Event(entity_id, seq, ts, value[HEADER.size :])


def seqs(values: Iterable[bytes]) -> list[int]:
    """The seq of each event in ``values``, decoded in one pass. Raises ``struct.error`` when one ends before its seq does."""
    return [seq for (seq,) in map(_SEQ.unpack_from, values)]


# CRC-32 of the whole event, which one message adds to its receipt's checksum; Spark's ``crc32`` gives the same. It is the
# library's own function, and no Python around it, because it is called once a message.
check = zlib.crc32
