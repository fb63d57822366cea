"""What waits for another attempt: order, offsets and other partitions, whatever fails when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.failures import Backoff, Failures, Place
from lab.programs.consumer.retries import Retries

from .messages import message, place

DELAYS = Backoff((1000, 2000, 4000))


class Consumer:
    """The consumer's loop around :class:`Retries`, with a log for a broker and a clock that is told."""

    def __init__(self, failures, dead_letters=True):
        self.retries = Retries(failures, DELAYS, dead_letters)
        self.now = 0.0
        self.processed, self.dead, self.through, self.attempts = [], [], {}, {}

    def turn(self, *fetched, size=3):
        """One turn of the loop. Nothing of a partition that stands still may be fetched: it is paused."""
        ready = self.retries.take(fetched, self.now)
        for at in range(0, len(ready), size):
            tried = self.retries.attempt(ready[at : at + size])
            self._done(tried.good, self.processed)
            for one in tried.bad:
                failed = self.retries.failed(one, self.now, 100 + self.now)
                self.attempts[place(one)] = failed.attempts
                if failed.retry_in_s is None:
                    self._done([one], self.dead)
                    self.retries.buried(one, self.now)

    def _done(self, messages, into):
        into += map(place, messages)
        for one in messages:
            self.through.setdefault(one.partition(), []).append(one.offset())


@given(
    st.lists(st.integers(0, 3), max_size=60),
    st.integers(0, 10_000),
    st.lists(st.tuples(st.integers(1, 9), st.floats(0, 3)), min_size=1, max_size=30),
    st.integers(1, 5),
)
def test_every_message_is_through_once_and_in_order(partitions, seed, turns, size):
    """Processed or dead, as injected, each partition by offset, nothing skipped; however the turns fall."""
    failures = Failures(seed, 0.3, 0.2, None, 3)
    seqs, ends = {}, {}
    for seq, number in enumerate(partitions):
        seqs[number, ends.setdefault(number, 0)] = seq
        ends[number] += 1
    consumer, left = Consumer(failures), [message(*at, seq) for at, seq in seqs.items()]
    for count, seconds in [*turns, *[(9, 8.0)] * 400]:
        fetched = [one for one in left if one.partition() not in consumer.retries.stalled][:count]
        left = [one for one in left if one not in fetched]
        consumer.turn(*fetched, size=size)
        assert consumer.retries.wait_s(consumer.now, 10) <= 10
        consumer.now += seconds
        if not left and not consumer.retries.stalled:
            break
    assert consumer.through == {number: list(range(end)) for number, end in ends.items()}
    poison = {at for at, seq in seqs.items() if failures.never(*at, seq)}
    assert set(consumer.dead) == poison
    transient = {at: failures.transient(seq) for at, seq in seqs.items()}
    assert consumer.attempts == dict.fromkeys(poison, 4) | {at: n for at, n in transient.items() if n}


def test_a_poison_message_takes_its_delays_and_is_dead_after_the_last():
    """Attempts at 0, 1, 3 and 7 s; then it is dead, and what lay behind it is processed."""
    consumer = Consumer(Failures(poison=Place(0, 1)))
    consumer.turn(*(message(0, offset) for offset in range(4)))
    for now, due in ((0, 1), (1, 3), (3, 7)):
        consumer.now = now + 0.5
        consumer.turn()
        assert consumer.retries.stalled == {0}
        assert consumer.retries.wait_s(now, 100) == pytest.approx(due - now)
        consumer.now = due
        consumer.turn()
    assert consumer.dead == [(0, 1)]
    consumer.turn()
    assert consumer.processed == [(0, 0), (0, 2), (0, 3)]
    assert not consumer.retries.stalled


def test_other_partitions_go_on():
    """While one partition's head waits, the others' messages are handed out at once; its own wait behind it."""
    consumer = Consumer(Failures(poison=Place(0, 0)))
    consumer.turn(message(0, 0), message(1, 0), message(0, 1), message(1, 1))
    consumer.turn(message(1, 2), message(0, 2))
    assert consumer.processed == [(1, 0), (1, 1), (1, 2)]
    assert consumer.retries.stalled == {0}


def test_without_dead_letters_a_poison_message_is_tried_for_ever():
    """At the last delay, and nothing is dead, until its partition is taken away: its next owner begins anew."""
    consumer = Consumer(Failures(poison=Place(0, 0)), dead_letters=False)
    consumer.turn(message(0, 0), message(0, 1))
    for _ in range(50):
        consumer.now += 4
        consumer.turn()
    assert (consumer.attempts, consumer.through) == ({(0, 0): 51}, {})
    assert consumer.retries.wait_s(consumer.now, 100) == pytest.approx(4)
    consumer.retries.forget([0])
    assert not consumer.retries.stalled
    consumer.turn(message(0, 0))
    assert consumer.attempts == {(0, 0): 1}


def test_nothing_injected_costs_nothing():
    """Fetched messages pass through as they are."""
    retries = Retries(Failures(), DELAYS, dead_letters=True)
    fetched = [message(0, 0), message(1, 0)]
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
