"""Counts how many consumers died with a message in their hands, in the metadata of the group's committed offsets. Pure.

Before a consumer begins with messages of a partition it commits their first offset with a mark: the last offset that it takes,
and for a message that is taken alone, how many died with it before. The same commit takes the marks from all other partitions
that it was through with. A consumer that goes on, or leaves in order, commits without a mark. So a mark that the partition's
next owner finds says that its owner died, or was put out of the group, with these messages: suspects. They are taken one at a
time, each with a mark of its own, and a message with which ``most`` consumers died alone is not tried again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from lab.programs.consumer.retries import Consumed


@dataclass(frozen=True)
class Mark:
    """The ``last`` offset taken, and how many consumers died with this message alone; None where it is not alone."""

    last: int
    deaths: int | None = None

    def __str__(self) -> str:
        return f"{self.last}:{'' if self.deaths is None else self.deaths}"

    @staticmethod
    def parse(text: str | None) -> Mark | None:
        """The mark in a commit's metadata; None where there is none, or what another program wrote."""
        last, colon, deaths = (text or "").partition(":")
        if not (colon and last.isdecimal() and (deaths.isdecimal() or not deaths)):
            return None
        return Mark(int(last), int(deaths) if deaths else None)


@dataclass
class Unit:
    """Messages taken together, the mark to commit by partition, and a single one's ``deaths``; not to be tried if ``dead``."""

    messages: Sequence[Consumed]
    marks: dict[int, tuple[int, Mark]] = field(default_factory=dict)
    deaths: int = 0
    dead: bool = False


class Deaths:
    """What is known of the partitions of one consumer; ``most`` consumers may die with a message."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._known: dict[int, tuple[int, Mark] | None] = {}  # by partition: the mark that was found, and its offset

    def unknown(self, messages: Sequence[Consumed]) -> set[int]:
        """The partitions of ``messages`` whose mark was not asked for since they were assigned."""
        return {message.partition() for message in messages} - self._known.keys()

    def learn(self, partition: int, offset: int, metadata: str | None) -> None:
        """Take what is committed in ``partition``: the offset and its metadata."""
        mark = Mark.parse(metadata)
        self._known[partition] = None if mark is None else (offset, mark)

    def forget(self, partitions: Collection[int]) -> None:
        """Drop ``partitions``, which another member owns now."""
        for partition in partitions:
            self._known.pop(partition, None)

    def units(self, messages: Sequence[Consumed]) -> Iterator[Unit]:
        """Yield ``messages`` in units, each partition in order: suspects one at a time, then all others together."""
        others: list[Consumed] = []
        marks: dict[int, tuple[int, Mark]] = {}
        for message in messages:
            partition, offset = message.partition(), message.offset()
            suspects = self._known.get(partition)
            if suspects is None or offset > suspects[1].last:
                others.append(message)
                first = marks[partition][0] if partition in marks else offset
                marks[partition] = (first, Mark(offset))
                continue
            begin, mark = suspects
            deaths = mark.deaths + 1 if mark.deaths is not None and begin == mark.last == offset else 0
            yield Unit([message], {partition: (offset, Mark(offset, deaths))}, deaths, deaths >= self._most)
        if others:
            yield Unit(others, marks)
