"""The program against a real broker: what lasts, what breaks, and many groups in one reading."""

import time
import uuid

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from lab.kafka import topics
from lab.kafka.lag import GroupsReader, LagReader, PartitionLag
from lab.wait import until
from tests.unit.programs.lagscaler.fakes import Client, known
from tests.unit.programs.lagscaler.test_program import running

pytestmark = pytest.mark.services
SUSTAIN_S = 3
RULE = {"lagThreshold": "10", "sustainSeconds": str(SUSTAIN_S), "samplingInterval": "1", "allowIdleConsumers": "true"}
DEADLINE_S = 180  # some seconds on a quiet machine


class Topic:
    """A topic of two partitions with a group that has committed at its start; ``login`` are a client's settings."""

    def __init__(self, bootstrap, login=None, **changes):
        self.bootstrap, self.login, self.name = bootstrap, login or {}, f"orders-{uuid.uuid4().hex[:8]}"
        topics.create(bootstrap, {self.name: 2}, self.login)
        self.commit(0, 0)
        where = {"bootstrapServers": bootstrap, "consumerGroup": self.name, "topicFromEnv": self.name}
        self.metadata = where | RULE | changes

    def produce(self, *counts):
        """Write that many messages to each partition."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "acks": "all", **self.login})
        for partition, count in enumerate(counts):
            for _ in range(count):
                producer.produce(self.name, b"x", partition=partition)
        assert producer.flush(60) == 0

    def grow(self, partitions):
        """Give it ``partitions`` partitions in all; returns when the broker knows them, which is after the controller does."""
        topics.grow(self.bootstrap, self.name, partitions, self.login)
        client = Producer({"bootstrap.servers": self.bootstrap, **self.login})
        until(
            lambda: len(client.list_topics(self.name, timeout=60).topics[self.name].partitions) == partitions,
            DEADLINE_S,
            "the new partitions known to the broker",
        )

    def commit(self, *offsets):
        """Commit that offset on each partition."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": self.name, **self.login})
        parts = [TopicPartition(self.name, partition, offset) for partition, offset in enumerate(offsets)]
        consumer.commit(offsets=parts, asynchronous=False)
        consumer.close()

    def _asked(self, client):
        return client.metrics(self.metadata, f"persistent-lag-{self.name}").metricValues[0].metricValueFloat

    def metric(self, client):
        """What the scaler hands over; None for an error."""
        return known(lambda: self._asked(client))[0]

    def active(self, client):
        """Whether the scaler says that there is work; None for an error."""
        return known(lambda: client.active(self.metadata).result)[0]

    def error(self, client):
        """What the scaler says is wrong; empty for nothing."""
        return known(lambda: self._asked(client))[1]


@pytest.fixture
def topic(bootstrap):
    """A topic of its own."""
    return Topic(bootstrap)


def test_lag_counts_when_it_has_lasted_and_activates_when_it_is_there(topic):
    """30 + 12 messages: active at once, 42 from sustainSeconds on and not before, 0 with the commit."""
    with running() as (address, _), Client(address) as client:
        until(lambda: topic.metric(client) == 0, DEADLINE_S, "the first reading")
        activity = client.stream_active(topic.metadata, wait=False)
        assert next(activity).result is False
        begun = time.monotonic()
        topic.produce(30, 12)
        assert next(activity).result is True
        until(lambda: topic.metric(client) == 42, DEADLINE_S, "all of the lag to have lasted")
        assert time.monotonic() - begun > SUSTAIN_S - 1  # the line begins at the sample before, up to an interval earlier
        topic.commit(30, 12)
        until(lambda: topic.metric(client) == 0, DEADLINE_S, "none of it")
        activity.cancel()


def test_a_topic_that_goes_and_comes_back(topic):
    """Deleted: an error that says so. Back with more partitions: what lasts there, from its first reading on."""
    with running() as (address, _), Client(address) as client:
        until(lambda: topic.metric(client) == 0, DEADLINE_S, "the first reading")
        topics.delete(topic.bootstrap, [topic.name])
        until(lambda: "Unknown topic" in topic.error(client) or "not there" in topic.error(client), DEADLINE_S, "the error")
        until(lambda: _created(topic, 3), DEADLINE_S, "the topic to be made again")
        until(lambda: topic.metric(client) is not None, DEADLINE_S, "a metric")


def _created(topic, partitions):
    """Make the topic again; the broker is still deleting for a moment."""
    topics.create(topic.bootstrap, {topic.name: partitions})
    try:
        topic.commit(*[0] * partitions)
    except KafkaException:
        return False
    return True


def test_a_topic_that_is_given_partitions_goes_on(bootstrap):
    """The lag of before, and theirs when it has lasted; never an error."""
    # Three intervals without a sample are an error, as they should be: a busy machine must not make 3 s of them.
    topic = Topic(bootstrap, samplingInterval="3")
    topic.produce(30, 12)
    with running() as (address, _), Client(address) as client:
        until(lambda: topic.metric(client) == 42, DEADLINE_S, "all of the lag to have lasted")
        topic.grow(4)
        topic.commit(0, 0, 0, 0)
        topic.produce(0, 0, 5, 5)
        seen = []
        until(lambda: seen.append(topic.metric(client)) or seen[-1] == 52, DEADLINE_S, "the new partitions' lag to have lasted")
        assert all(value is not None and 42 <= value <= 52 for value in seen)


def test_many_groups_are_one_reading(bootstrap):
    """Offsets of each; for one topic that is not there an error of its own; the log's start only where it is asked for."""
    made = [Topic(bootstrap) for _ in range(3)]
    for index, topic in enumerate(made):
        topic.produce(10, index)
        topic.commit(4, 0)
    never = ("never", made[2].name)
    pairs = [(topic.name, topic.name) for topic in made] + [("x", "nowhere"), never]
    answers = {pair: answer for batch in GroupsReader(bootstrap).read(pairs, [never]) for pair, answer in batch.items()}
    for index, topic in enumerate(made):
        assert answers[topic.name, topic.name] == {0: PartitionLag(10, 4), 1: PartitionLag(index, 0)}
        assert LagReader(bootstrap, topic.name, topic.name).read() == answers[topic.name, topic.name]
    assert isinstance(answers["x", "nowhere"], KafkaException)
    assert answers[never] == {0: PartitionLag(10, None, 0), 1: PartitionLag(2, None, 0)}
    assert LagReader(bootstrap, *never).read() == answers[never]
    with pytest.raises(KafkaException):
        LagReader(bootstrap, "x", "nowhere").read()
