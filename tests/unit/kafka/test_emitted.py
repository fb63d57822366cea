"""An emitted message is the event with its place behind it."""

import struct

import pytest

from lab.kafka import emitted, event

VALUE = event.encode(7, 3, 1_000, bytes(event.PAYLOAD))


def test_the_place_is_behind_the_event():
    """The event's own bytes are as they were, so a reader of events reads them."""
    message = emitted.encode(VALUE, 19, 2**40, 1.5)
    assert len(message) == emitted.SIZE == event.SIZE + 20
    assert event.decode(message[: event.SIZE]) == event.decode(VALUE)
    assert struct.unpack(">IQq", message[event.SIZE :]) == (19, 2**40, 1_500_000_000)


def test_a_place_out_of_range_is_refused():
    """No partition is negative."""
    with pytest.raises(struct.error):
        emitted.encode(VALUE, -1, 0, 0.0)
