"""A topic with a consumer group that has no consumers: lag is made by producing, and by committing for the group."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.kafka import topics
from tests.defects.target import Trigger

THRESHOLD = 10  # lagThreshold of every trigger, messages
ANSWER_S = 30  # deadline of a request to the broker


class Topic:
    """A new topic of ``partitions`` and a group of its name, which has committed 0 everywhere unless ``committed`` is False."""

    def __init__(self, bootstrap: str, partitions: int = 10, committed: bool = True) -> None:
        self.bootstrap, self.name = bootstrap, f"orders-{uuid.uuid4().hex[:8]}"
        self.ends = [0] * partitions
        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        topics.create(bootstrap, {self.name: partitions})
        if committed:
            self.commit([0] * partitions)

    def produce(self, messages: int, transactional: bool = False) -> None:
        """Write so many messages, spread evenly; in one transaction, whose marker takes an offset of each partition."""
        settings = {"bootstrap.servers": self.bootstrap} | ({"transactional.id": self.name} if transactional else {})
        producer = Producer(settings)
        if transactional:
            producer.init_transactions(ANSWER_S)
            producer.begin_transaction()
        counts = spread(messages, len(self.ends))
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(self.name, b"x", partition=partition)
        if transactional:
            producer.commit_transaction(ANSWER_S)
        assert producer.flush(ANSWER_S) == 0
        self.ends = [end + count + (transactional and count > 0) for end, count in zip(self.ends, counts, strict=True)]

    def commit(self, offsets: Sequence[int], group: str = "") -> None:
        """Commit an offset for each partition, for the topic's own group or another.

        A consumer that never joins does it: an admin client that asks about a group may wait in vain after an outage, and end
        the process later (librdkafka #5397 and #5040).
        """
        parts = [TopicPartition(self.name, number, offset) for number, offset in enumerate(offsets)]
        own = {"bootstrap.servers": self.bootstrap, "group.id": group or self.name, "enable.auto.commit": False}
        consumer = Consumer(own)
        try:
            found = consumer.commit(offsets=parts, asynchronous=False)
        finally:
            consumer.close()
        assert found
        assert not [part.error for part in found if part.error]

    def leave(self, lag: int) -> None:
        """Commit so that this many messages of lag are left, spread evenly. They must have been written."""
        self.commit([end - part for end, part in zip(self.ends, spread(lag, len(self.ends)), strict=True)])

    def expire(self, offset: int) -> None:
        """Delete what lies before ``offset`` in each partition, as retention does."""
        parts = [TopicPartition(self.name, number, offset) for number in range(len(self.ends))]
        for future in self._admin.delete_records(parts, request_timeout=ANSWER_S).values():
            future.result()

    def trigger(self, name: str = "", cached: bool = False, **metadata: str) -> Trigger:
        """The kafka trigger for this group; ``metadata`` are added to it."""
        own = {
            "bootstrapServers": self.bootstrap,
            "consumerGroup": self.name,
            "topic": self.name,
            "lagThreshold": str(THRESHOLD),
        }
        trigger: Trigger = {"type": "kafka", "metadata": own | metadata}
        more: Mapping[str, object] = ({"name": name} if name else {}) | ({"useCachedMetrics": True} if cached else {})
        return {**trigger, **more}


def spread(messages: int, partitions: int) -> list[int]:
    """``messages`` by partition, which differ by one at most."""
    each, rest = divmod(messages, partitions)
    return [each + (number < rest) for number in range(partitions)]
