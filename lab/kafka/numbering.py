"""The numbers of a trial's partitions, whether they are on one topic or on several. Pure.

A trial knows its partitions as 0, 1, 2 … P-1: in receipts, in curves of lag, in the ledger and in every measure. Whatever talks
to Kafka needs a topic and a partition of it, and asks here. Number n is partition n % ``each`` of topic n // ``each``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Numbering:
    """The partitions of ``topics``, ``each`` on every one. A single topic may grow: its numbers are Kafka's own."""

    topics: tuple[str, ...]
    each: int = 0

    @property
    def single(self) -> bool:
        """Whether there is one topic, whose numbers are Kafka's own."""
        return len(self.topics) == 1

    @property
    def count(self) -> int:
        """How many partitions several topics have together."""
        return len(self.topics) * self.each

    @cached_property
    def first(self) -> dict[str, int]:
        """The number of each topic's partition 0."""
        return {topic: index * self.each for index, topic in enumerate(self.topics)}

    def place(self, number: int) -> tuple[str, int]:
        """The topic of partition ``number``, and its partition in that. Raises ``ValueError`` for a number that none has."""
        if self.single:
            return self.topics[0], number
        if not 0 <= number < self.count:
            raise ValueError(f"there is no partition {number} of {self.count}")
        return self.topics[number // self.each], number % self.each

    def number(self, topic: str, partition: int) -> int:
        """The number of ``partition`` of ``topic``. Raises ``ValueError`` for a place that none has."""
        if self.single:
            return partition
        if topic not in self.first or not 0 <= partition < self.each:
            raise ValueError(f"partition {partition} of {topic} is none of {', '.join(self.topics)} with {self.each} each")
        return self.first[topic] + partition


def numbering(topics: str | Numbering) -> Numbering:
    """The numbering of ``topics``. A name stands for that topic by itself."""
    return Numbering((topics,)) if isinstance(topics, str) else topics
