"""What waits for another attempt: order, offsets and other partitions, whatever fails when."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.failures import Backoff, Failures, Place
from lab.programs.consumer.retries import Retries

from .messages import Message

DELAYS = Backoff((1000, 2000, 4000))


class Consumer:
    """The consumer's loop around :class:`Retries`, with a log for a broker and a clock that is told."""

    def __init__(self, failures, backoff=DELAYS, dead_letters=True):
        self.retries = Retries(failures, backoff, dead_letters)
        self.now = 0.0
        self.processed, self.dead, self.order = {}, {}, {}
        self.recovered, self.attempts = [], {}

    def turn(self, fetched, size=3):
        """One turn of the loop. Nothing of a partition that stands still may be fetched: it is paused."""
        ready = self.retries.take(fetched, self.now)
        for at in range(0, len(ready), size):
            tried: Any = self.retries.attempt(ready[at : at + size])
            for message in tried.good:
                self._through(message, self.processed)
            self.recovered += [(message.at, attempts) for message, attempts in tried.recovered]
            for message in tried.bad:
                failed = self.retries.failed(message, self.now, 100 + self.now)
                self.attempts[message.number, message.at] = failed.attempts
                if failed.retry_in_s is None:
                    self._through(message, self.dead)
                    self.retries.buried(message, self.now)

    def _through(self, message, into):
        into.setdefault(message.number, []).append(message.at)
        self.order.setdefault(message.number, []).append(message.at)


@given(
    st.lists(st.integers(0, 3), max_size=60),
    st.integers(0, 10_000),
    st.lists(st.tuples(st.integers(1, 9), st.floats(0, 3)), min_size=1, max_size=30),
    st.integers(1, 5),
)
def test_every_message_is_through_once_and_in_order(partitions, seed, turns, size):
    """Processed or dead, as injected, each partition by offset, nothing skipped; however the turns fall."""
    failures = Failures(seed, 0.3, 0.2, None, 3)
    log, ends = [], {}
    for number in partitions:
        log.append(Message(number, ends.get(number, 0), seq=len(log)))
        ends[number] = ends.get(number, 0) + 1
    consumer, left = Consumer(failures), list(log)
    for count, seconds in [*turns, *[(9, 8.0)] * 400]:
        paused = consumer.retries.stalled
        fetched = [message for message in left if message.number not in paused][:count]
        left = [message for message in left if message not in fetched]
        consumer.turn(fetched, size)
        assert consumer.retries.wait_s(consumer.now, 10) <= 10
        consumer.now += seconds
        if not left and not consumer.retries.stalled:
            break
    assert consumer.order == {number: list(range(end)) for number, end in ends.items()}
    poison = {(one.number, one.at) for one in log if failures.never(one.number, one.at, one.seq)}
    assert {(number, at) for number, offsets in consumer.dead.items() for at in offsets} == poison
    transient = {(one.number, one.at): failures.transient(one.seq) for one in log}
    assert consumer.attempts == dict.fromkeys(poison, 4) | {place: n for place, n in transient.items() if n}


def test_a_poison_message_takes_its_delays_and_is_dead_after_the_last():
    """Attempts at 0, 1, 3 and 7 s; then it is dead, and what lay behind it is processed."""
    consumer = Consumer(Failures(poison=Place(0, 1)))
    consumer.turn([Message(0, offset) for offset in range(4)])
    for now, due in ((0, 1), (1, 3), (3, 7)):
        consumer.now = now + 0.5
        consumer.turn([])
        assert consumer.retries.stalled == {0}
        assert consumer.retries.wait_s(now, 100) == pytest.approx(due - now)
        consumer.now = due
        consumer.turn([])
    assert consumer.dead == {0: [1]}
    consumer.turn([])
    assert consumer.processed == {0: [0, 2, 3]}
    assert not consumer.retries.stalled


def test_other_partitions_go_on():
    """While one partition's head waits, the others' messages are handed out at once; its own wait behind it."""
    consumer = Consumer(Failures(poison=Place(0, 0)))
    consumer.turn([Message(0, 0), Message(1, 0), Message(0, 1), Message(1, 1)])
    consumer.turn([Message(1, 2), Message(0, 2)])
    assert consumer.processed == {1: [0, 1, 2]}
    assert consumer.retries.stalled == {0}


def test_without_dead_letters_a_poison_message_is_tried_for_ever():
    """At the last delay; its partition stands still, and nothing is dead."""
    consumer = Consumer(Failures(poison=Place(0, 0)), dead_letters=False)
    consumer.turn([Message(0, 0), Message(0, 1)])
    for _ in range(50):
        consumer.now += 4
        consumer.turn([])
    assert consumer.attempts == {(0, 0): 51}
    assert consumer.order == {}
    assert consumer.retries.wait_s(consumer.now, 100) == pytest.approx(4)


def test_the_next_owner_begins_anew():
    """A partition that was taken away mid-retry is forgotten: its head's next attempt, by whomever, is the first."""
    consumer = Consumer(Failures(poison=Place(0, 0)))
    consumer.turn([Message(0, 0), Message(0, 1)])
    consumer.now = 1
    consumer.turn([])
    assert consumer.attempts == {(0, 0): 2}
    consumer.retries.forget([0])
    assert not consumer.retries.stalled
    consumer.turn([Message(0, 0)])
    assert consumer.attempts == {(0, 0): 1}


def test_nothing_injected_costs_nothing():
    """Fetched messages pass through as they are."""
    retries = Retries(Failures(), DELAYS, dead_letters=True)
    fetched = [Message(0, 0), Message(1, 0)]
    assert retries.take(fetched, 0) is fetched
    assert retries.attempt(fetched).good == fetched
    assert retries.wait_s(0, 0.05) == 0.05


def test_a_backoff_is_compressed_and_jittered():
    """Each delay divided, written as the flag takes it; jitter moves it within its share and no further."""
    assert str(Backoff.parse("1000,2000,4000").compressed(30)) == "33.3333,66.6667,133.333"
    assert Backoff.parse(str(DELAYS)) == DELAYS
    jittered = Backoff((1000,), jitter=0.25)
    assert [jittered.after_s(attempt, drawn) for attempt, drawn in ((1, -1), (1, 0), (9, 1))] == [0.75, 1.0, 1.25]


@pytest.mark.parametrize("text", ["", "1,,2", "-1", "600001", "soon", "nan", ",".join(["1"] * 21)])
def test_a_backoff_that_makes_no_sense_is_refused(text):
    """No delay, a negative, too long or unreadable one, or too many."""
    with pytest.raises(ValueError, match=r".*"):
        Backoff.parse(text)
