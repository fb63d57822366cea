"""A dead letter's headers: what is written is read, and a message's own stay."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import deadletter
from lab.kafka.deadletter import Reason

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
    assert deadletter.read(stamped) == reason
    assert stamped[: len(headers)] == headers
    assert deadletter.read(deadletter.stamped(stamped, later)) == later
    assert len(deadletter.stamped(stamped, later)) - len(headers) in (7, 8)


@pytest.mark.parametrize("missing", ["dlq.error", "dlq.attempts", "dlq.topic", "dlq.partition", "dlq.offset", "dlq.time"])
def test_a_message_that_is_no_dead_letter_is_named(missing):
    """The first header that lacks is in the error; without any it is dlq.error."""
    stamped = deadletter.stamped(None, Reason("x", 4, "events", 3, 1000, 1.0, 2.0))
    with pytest.raises(ValueError, match=f"no header {missing}"):
        deadletter.read([one for one in stamped if one[0] != missing])
    with pytest.raises(ValueError, match=r"no header dlq\.error"):
        deadletter.read(None)


def test_headers_that_anyone_may_write_are_no_crash():
    """A count of replays that is no number counts as none; one of attempts is refused where it is read."""
    assert deadletter.replays([("dlq.replays", b"\xff")]) == 0
    stamped = deadletter.stamped(None, Reason("x", 4, "events", 3, 1000, 1.0, 2.0))
    with pytest.raises(ValueError, match="no number"):
        deadletter.read([*stamped, ("dlq.attempts", b"many")])
