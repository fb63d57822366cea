"""The open loop against librdkafka's own mock broker."""

import threading
import time

import pytest
from confluent_kafka import Producer

from lab.inputs.keys import Entities, partitions_of
from lab.inputs.profile import build
from lab.kafka import event
from lab.kafka.numbering import Numbering
from lab.programs.producer.send import Payloads, Tally, configuration, replay

ONE = {
    "kind": "steps",
    "duration": 1.5,
    "steps": [
        {"at": 0, "rate": 0, "phase": "baseline"},
        {"at": 0.2, "rate": 1000, "phase": "spike"},
        {"at": 0.201, "rate": 0, "phase": "drain"},
    ],
}


@pytest.fixture
def producer():
    """A producer whose broker is a thread of its own client."""
    return Producer(configuration("", "test") | {"test.mock.num.brokers": 1})


def test_a_profile_ends_with_its_time_and_not_with_its_last_event(producer):
    """One event, and then nothing for a second: what follows an event is part of the traffic."""
    tally, phases, start = Tally(), [], time.time()
    replay(
        producer,
        "t",
        build(ONE, "a test"),
        Entities(1, 10, 0.0),
        Payloads(1),
        threading.Event(),
        lambda *one: phases.append(one),
        tally,
        start,
    )
    assert time.time() - start >= 1.5
    assert (tally.sent, tally.acked, tally.completed) == (1, 1, True)
    assert [phase for phase, _ in phases] == ["baseline", "spike", "drain"]


def test_a_producer_that_is_stopped_has_not_replayed_its_profile(producer):
    """All that it sent is acknowledged, and yet it is no whole replay: its pod must not exit 0."""
    tally, stop = Tally(), threading.Event()
    stop.set()
    replay(producer, "t", build(ONE, "a test"), Entities(1, 10, 0.0), Payloads(1), stop, lambda *_: None, tally, time.time())
    assert tally.acked == tally.sent == 0
    assert not tally.whole


class Placed(Tally):
    """A tally that keeps where each event went."""

    def __init__(self):
        super().__init__()
        self.places = {}

    def delivered(self, error, message):
        """Count it, and keep its topic and partition by its seq."""
        super().delivered(error, message)
        self.places[event.decode(message.value()).seq] = (message.topic(), message.partition())


def test_of_several_topics_each_key_is_on_the_partition_of_its_number(producer):
    """The number that Kafka's hash gives the key among all partitions: each topic has its part of the events."""
    many = {"kind": "steady", "rate": 2000, "duration": 0.5}
    tally, topics = Placed(), Numbering(("t", "t-2"), 4)  # as many partitions as a topic of the mock broker has
    replay(
        producer,
        topics,
        build(many, "a test"),
        Entities(7, 1000),
        Payloads(1),
        threading.Event(),
        lambda *_: None,
        tally,
        time.time(),
    )
    assert tally.acked == tally.sent == 1000
    numbers = partitions_of(Entities(7, 1000).take(1000), 8).tolist()
    assert [tally.places[seq] for seq in range(1000)] == [topics.place(number) for number in numbers]
    assert {topic for topic, _ in tally.places.values()} == {"t", "t-2"}
