"""A dead letter's headers: what is written is read, and a message's own stay."""

from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import deadletter
from lab.kafka.deadletter import Reason
from tests.unit.programs.consumer.messages import reason_of

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
