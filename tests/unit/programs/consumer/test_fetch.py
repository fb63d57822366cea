"""What a consumer fetches of a backlog that its queue can't hold, from a real broker."""

import uuid
from collections import Counter
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.kafka import topics
from lab.programs.consumer.member import LEAN, configuration

from .messages import chosen

pytestmark = pytest.mark.services
PARTITIONS, EACH, BYTES = 8, 300, 10_000  # 24 MB, of which the queue holds 4
ANSWER_S = 60


@pytest.fixture(scope="module")
def backlog(bootstrap):
    """A topic on each of whose partitions as much waits."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {name: PARTITIONS})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(PARTITIONS * EACH):
        producer.produce(name, bytes(BYTES), partition=number % PARTITIONS)
    assert producer.flush(ANSWER_S) == 0
    return name


def first_half(bootstrap, topic, **own):
    """Of each partition how many messages are among the first half of all that a pod's consumer is given."""
    given = configuration(chosen(f"--bootstrap-servers={bootstrap}", "--group=fetch")) | own
    counts = Counter()
    with closing(Consumer(given)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
        while counts.total() < PARTITIONS * EACH // 2:
            messages = consumer.consume(10, ANSWER_S)
            assert messages, f"nothing more after {counts}"
            counts.update(message.partition() for message in messages)
    return [counts[number] for number in range(PARTITIONS)]


def test_a_pod_works_off_each_of_its_partitions(bootstrap, backlog):
    """Half of the whole is half of each, to within two fetches: each has 1 MB of a partition."""
    counts = first_half(bootstrap, backlog)
    assert max(counts) - min(counts) <= 2 * 2**20 // BYTES, counts


def test_a_fetch_as_small_as_the_queue_starves_partitions(bootstrap, backlog):
    """librdkafka's own choice beside such a queue: each response ends at the first partitions, and the others wait."""
    counts = first_half(bootstrap, backlog, **{"fetch.max.bytes": LEAN["queued.max.messages.kbytes"] * 1024})
    assert counts.count(0) >= PARTITIONS // 4, counts
