"""Which broker leads a topic's partitions, coordinates a group, and has copies in sync: read from the cluster's metadata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.errors import LabFault

OFFSETS = "__consumer_offsets"
ASK_S = 2.0


@dataclass(frozen=True)
class Partition:
    """The broker that leads a partition, None where none does, those that have a copy, and those whose copy is in sync."""

    leader: int | None
    copies: frozenset[int]
    in_sync: frozenset[int]


class Replicas:
    """Reads the partitions of a cluster's topics; ``settings`` are those with which a client logs in, if it has to."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2, **(settings or {})})

    def read(self, *topics: str) -> list[Partition]:
        """The partitions of ``topics``, in order. Raises ``KafkaException`` when no broker answers in time."""
        every: list[Partition] = []
        for topic in topics:
            found = self._admin.list_topics(topic, timeout=ASK_S).topics[topic]
            if found.error is not None:
                raise KafkaException(found.error)
            every += [
                Partition(one.leader if one.leader >= 0 else None, frozenset(one.replicas), frozenset(one.isrs))
                for _, one in sorted(found.partitions.items())
            ]
        return every

    def leads_most(self, *topics: str) -> int:
        """The broker that leads most partitions of ``topics``. Raises :class:`LabFault` where none leads any."""
        led = Counter(one.leader for one in self.read(*topics) if one.leader is not None)
        if not led:
            raise LabFault(f"no broker leads a partition of {', '.join(topics)}")
        return max(sorted(led), key=lambda broker: led[broker])

    def coordinator(self, group: str) -> int:
        """The broker that coordinates ``group``. Raises :class:`LabFault` where there is none now."""
        partitions = self.read(OFFSETS)
        leader = partitions[coordinating(group, len(partitions))].leader
        if leader is None:
            raise LabFault(f"no broker coordinates {group}")
        return leader


def whole(partitions: Sequence[Partition]) -> bool:
    """Whether each of ``partitions`` has a leader, and all its copies are in sync."""
    return all(one.leader is not None and one.copies == one.in_sync for one in partitions)


def coordinating(group: str, partitions: int) -> int:
    """The partition of the offsets' topic whose leader coordinates ``group``: Kafka takes it from Java's hash of the name."""
    hashed = 0
    for char in group.encode():  # a group of the lab is ASCII, as Java's chars are then
        hashed = (31 * hashed + char) & 0xFFFFFFFF
    signed = hashed - 2**32 if hashed >= 2**31 else hashed
    return (0 if signed == -(2**31) else abs(signed)) % partitions
