"""What asking does to Kafka, against the client library's own broker: one that makes every topic a client asks for."""

import pytest
from confluent_kafka import KafkaException, Producer

from lab.kafka.lag import GroupsReader


@pytest.fixture
def broker():
    """The broker's client, and its address."""
    client = Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0})
    (node,) = client.list_topics(timeout=10).brokers.values()
    return client, f"{node.host}:{node.port}"


def test_a_topic_that_was_deleted_is_not_made_again_by_asking(broker):
    """Alone or with others: it is an error, and it stays deleted."""
    client, address = broker
    reader = GroupsReader(address)
    for wanted in ([("enrich", "gone")], [("enrich", "gone"), ("enrich", "lost")]):
        for answer in next(reader.read(wanted)).values():
            assert isinstance(answer, KafkaException)
        assert list(client.list_topics(timeout=10).topics) == []
