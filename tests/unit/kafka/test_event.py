"""The event's layout: what goes in comes out, at the offsets the docstring promises."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import event

u64 = st.integers(0, 2**64 - 1)
payloads = st.binary(min_size=232, max_size=232)


@given(u64, u64, st.integers(-(2**63), 2**63 - 1), payloads)
def test_an_event_survives_the_round_trip_and_stands_where_spark_reads_it(entity_id, seq, ts, payload):
    """decode(encode(x)) == x, in exactly 256 bytes, big-endian, each field at its place; Spark's crc32 of it is the check."""
    value = event.encode(entity_id, seq, ts, payload)
    assert value == struct.pack(">QQq", entity_id, seq, ts) + payload
    assert event.decode(value) == (entity_id, seq, ts, payload)
    assert event.seqs([value]) == [seq]
    assert event.check(value) == zlib.crc32(value)


@given(st.binary(max_size=300).filter(lambda value: len(value) != 256))
def test_another_length_is_no_event(value):
    """Anything but 256 bytes is refused."""
    with pytest.raises(ValueError, match="256 bytes"):
        event.decode(value)


def test_an_emitted_message_has_its_place_behind_the_event():
    """The event's own bytes are as they were, so a reader of events reads them. No partition is negative."""
    value = event.encode(7, 3, 1_000, bytes(event.PAYLOAD))
    message = event.emitted(value, 19, 2**40, 1.5)
    assert message[: event.SIZE] == value
    assert struct.unpack(">IQq", message[event.SIZE :]) == (19, 2**40, 1_500_000_000)
    with pytest.raises(struct.error):
        event.emitted(value, -1, 0, 0.0)
