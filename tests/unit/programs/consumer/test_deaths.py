"""Consumers that die with a message: what they leave in their commits finds it, and only it."""

from hypothesis import given
from hypothesis import strategies as st

from lab.programs.consumer.deaths import Deaths, Mark

from .messages import message, place


@given(st.integers(0, 10**12), st.integers(0, 99) | st.none())
def test_a_mark_is_read_as_it_was_written_and_other_metadata_is_none(last, deaths):
    """Other programs may write what they like into a commit."""
    assert Mark.parse(str(Mark(last, deaths))) == Mark(last, deaths)
    for text in ("", None, "x", "7", ":", ":3", "-1:0", "7:3:1", "seven:3"):
        assert Mark.parse(text) is None


class Broker:
    """Partitions of ``count`` messages and what a group has committed there; ``poison`` ends each consumer that tries it."""

    def __init__(self, count, poison=(), partitions=1):
        self.count, self.poison = count, set(poison)
        self.committed = dict.fromkeys(range(partitions), (0, ""))
        self.dead, self.processed, self.deaths = [], [], 0

    def live(self, most, size):
        """One consumer's life: from the committed offsets until it dies (False) or all is through (True).

        It fetches ``size`` messages of each partition at a time. Its own last word is in the marks alone, as between two
        commits.
        """
        deaths, done = Deaths(most), {partition: offset for partition, (offset, _) in self.committed.items()}
        while any(offset < self.count for offset in done.values()):
            ahead = {partition: range(at, min(at + size, self.count)) for partition, at in done.items()}
            messages = [message(partition, offset) for partition, offsets in ahead.items() for offset in offsets]
            for partition in deaths.unknown(messages):
                deaths.learn(partition, *self.committed[partition])
            for unit in deaths.units(messages):
                marks = {partition: (offset, str(mark)) for partition, (offset, mark) in unit.marks.items()}
                self.committed |= {partition: (offset, "") for partition, offset in done.items()} | marks
                taken = [place(one) for one in unit.messages]
                if unit.dead:
                    self.dead += taken
                elif self.poison.intersection(taken):
                    self.deaths += 1
                    return False
                else:
                    self.processed += taken
                done |= {partition: offset + 1 for partition, offset in taken}
        return True


@given(
    st.integers(1, 40),
    st.integers(1, 3),
    st.sets(st.tuples(st.integers(0, 2), st.integers(0, 39)), max_size=4),
    st.integers(1, 4),
    st.lists(st.integers(1, 9), min_size=1, max_size=9),
)
def test_what_kills_is_a_dead_letter_and_nothing_else_is(count, partitions, poison, most, sizes):
    """Whatever is fetched at a time: one death for the batch, ``most`` for the message alone, and all others are processed."""
    broker = Broker(count, poison, partitions)
    while not any(broker.live(most, size) for size in sizes):
        pass
    every = {(partition, offset) for partition in range(partitions) for offset in range(count)}
    there = poison & every
    assert sorted(broker.dead) == sorted(there)
    assert sorted(broker.processed) == sorted(every - there)
    assert broker.deaths <= len(there) * (most + 1)


def test_a_death_that_was_no_ones_fault_costs_no_message():
    """A pod that is killed marks what it had: its successor takes that one at a time, and goes on."""
    broker = Broker(10)
    broker.committed[0] = (2, str(Mark(5)))
    assert broker.live(1, 4)
    assert (broker.dead, broker.processed) == ([], [(0, offset) for offset in range(2, 10)])


def test_partitions_are_told_apart_and_forgotten_with_their_owner():
    """A suspect of one partition is none of another; one that comes back is asked for again."""
    deaths = Deaths(1)
    messages = [message(0, 5), message(1, 5), message(0, 6), message(1, 6)]
    assert deaths.unknown(messages) == {0, 1}
    deaths.learn(0, 5, "5:0")
    deaths.learn(1, 5, None)
    first, rest = deaths.units(messages)
    assert (first.dead, first.deaths, [one.offset() for one in first.messages]) == (True, 1, [5])
    assert [place(one) for one in rest.messages] == [(1, 5), (0, 6), (1, 6)]
    assert rest.marks == {0: (6, Mark(6)), 1: (5, Mark(6))}
    deaths.forget([0])
    assert deaths.unknown(messages) == {0}
