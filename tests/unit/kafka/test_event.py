"""Messages: what goes into an event comes out, at the offsets its docstring promises; a dead letter tells what was stamped."""

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason
from tests.unit.programs.consumer.messages import reason_of

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


own = st.lists(
    st.tuples(st.text(max_size=8).filter(lambda name: not name.startswith("dlq.")), st.none() | st.binary(max_size=8))
)
reasons = st.builds(
    Reason,
    st.text(max_size=40),
    st.integers(1, 100),
    st.text(min_size=1, max_size=20),
    st.integers(0, 10_000),
    st.integers(0, 2**62),
    st.floats(0, 4e9).map(lambda value: round(value, 6)),
    st.floats(0, 4e9).map(lambda value: round(value, 6)),
    st.integers(0, 50),
)


@given(own, reasons, reasons)
def test_what_is_stamped_is_read(headers, reason, later):
    """The message's own headers stay, first; a second death replaces the first's reason."""
    stamped = deadletter.stamped(headers, reason)
    assert reason_of(stamped[len(headers) :]) == reason
    assert stamped[: len(headers)] == headers
    again = deadletter.stamped(stamped, later)
    assert reason_of(again[len(headers) :]) == later
    assert len(again) - len(headers) in (7, 8)


def test_headers_that_anyone_may_write_are_no_crash():
    """A count of replays that is no number counts as none."""
    assert deadletter.replays([("dlq.replays", b"\xff")]) == 0
