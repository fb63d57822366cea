"""Members of one group with different assignors, on a real broker: what each was told, as plain data."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.kafka import topics

PARTITIONS = 4
JOIN_S = 15.0  # a member is in after 0.1 to 3 s
REFUSAL_S = 6.0  # how long it is watched what becomes of the member that came last

Strategy = Mapping[str, str]
RANGE: Strategy = {"partition.assignment.strategy": "range"}
COOPERATIVE: Strategy = {"partition.assignment.strategy": "cooperative-sticky"}
BOTH_EAGER: Strategy = {"partition.assignment.strategy": "range,roundrobin"}
ROUND_ROBIN: Strategy = {"partition.assignment.strategy": "roundrobin"}
EITHER: Strategy = {"partition.assignment.strategy": "cooperative-sticky,range"}
KIP_848: Strategy = {"group.protocol": "consumer"}


class Member:
    """A consumer and what it was told; it never processes anything."""

    def __init__(self, bootstrap: str, group: str, topic: str, name: str, strategy: Strategy) -> None:
        self.name, self.strategy = name, dict(strategy)
        self.errors: list[str] = []
        self.owned: set[int] = set()
        common = {"bootstrap.servers": bootstrap, "group.id": group, "client.id": name, "log_level": 2}
        timing = {} if strategy is KIP_848 else {"heartbeat.interval.ms": 200, "session.timeout.ms": 6000}
        self._cooperative = strategy in (COOPERATIVE, KIP_848)
        self._consumer = Consumer(common | timing | self.strategy)
        self._consumer.subscribe([topic], on_assign=self._assigned, on_revoke=self._revoked)

    def turn(self) -> None:
        """Poll once."""
        message = self._consumer.poll(0.05)
        if message is not None and (error := message.error()) is not None:
            self.errors.append(error.name())

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _assigned(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        if self._cooperative:
            consumer.incremental_assign(parts)
            self.owned |= {part.partition for part in parts}
        else:
            consumer.assign(parts)
            self.owned = {part.partition for part in parts}

    def _revoked(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        if self._cooperative:
            consumer.incremental_unassign(parts)
        else:
            consumer.unassign()
        self.owned -= {part.partition for part in parts}


def observe(bootstrap: str, strategies: Sequence[Strategy]) -> dict[str, Any]:
    """Let members with ``strategies`` join a new group one after the other; what each was told and owned in the end.

    ``assignor`` and ``protocol`` are what the coordinator says of the group; ``refused`` is librdkafka's own word for a
    configuration that it does not take at all.
    """
    run = uuid.uuid4().hex[:8]
    topic, group = f"payments-{run}", f"group-{run}"
    topics.create(bootstrap, {topic: PARTITIONS})
    members: list[Member] = []
    refused: dict[str, str] = {}
    try:
        for number, strategy in enumerate(strategies):
            name = f"member-{number + 1}"
            try:
                members.append(Member(bootstrap, group, topic, name, strategy))
            except KafkaException as error:
                refused[name] = error.args[0].str()
                continue
            last = members[-1]
            _turn(members, JOIN_S if len(members) == 1 else REFUSAL_S, lambda last=last: len(members) == 1 and bool(last.owned))
        admin = AdminClient({"bootstrap.servers": bootstrap})  # kept: its answers come while it lives
        described = admin.describe_consumer_groups([group], request_timeout=10)[group].result(15)
        found = {one.name: {"strategy": one.strategy, "errors": one.errors, "owned": sorted(one.owned)} for one in members}
        return {
            "members": found,
            "refused": refused,
            "assignor": described.partition_assignor,
            "protocol": str(described.type.name),
            "in_group": sorted(one.client_id for one in described.members),
        }
    finally:
        for member in members:
            member.close()
        topics.delete(bootstrap, [topic])


def _turn(members: Sequence[Member], most_s: float, done: Any) -> None:
    """Poll every member in turn until ``done`` or ``most_s`` have passed."""
    end = time.monotonic() + most_s
    while not done() and time.monotonic() < end:
        for member in members:
            member.turn()
