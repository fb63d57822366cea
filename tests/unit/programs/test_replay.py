"""The open loop against librdkafka's own mock broker."""

import random
import threading
import time
import zlib

import numpy as np
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.keys import Entities, partitions_of
from lab.inputs.profile import build
from lab.kafka import event
from lab.kafka.numbering import Numbering
from lab.programs.producer.send import Payloads, Tally, configuration, encode, replay

ONE = {
    "kind": "steps",
    "duration": 0.6,
    "steps": [
        {"at": 0, "rate": 0, "phase": "baseline"},
        {"at": 0.2, "rate": 1000, "phase": "spike"},
        {"at": 0.201, "rate": 0, "phase": "drain"},
    ],
}


def replayed(profile, tally, topics="t", stopped=False):
    """The phases of a profile that is replayed to a broker which is a thread of the producer's own client."""
    producer = Producer(configuration("", "test") | {"test.mock.num.brokers": 1})
    phases, stop, keys = [], threading.Event(), Entities(7, 1000)
    if stopped:
        stop.set()
    started = lambda *one: phases.append(one)  # noqa: E731
    replay(producer, topics, build(profile, "a test"), keys.take, Payloads(1).take, stop, started, tally, time.time())
    return phases


def test_a_profile_ends_with_its_time_and_not_with_its_last_event():
    """One event, and then nothing for a while: what follows an event is part of the traffic."""
    tally, start = Tally(), time.time()
    phases = replayed(ONE, tally)
    assert time.time() - start >= ONE["duration"]
    assert (tally.sent, tally.acked, tally.completed) == (1, 1, True)
    assert [phase for phase, _ in phases] == ["baseline", "spike", "drain"]


def test_a_producer_that_is_stopped_has_not_replayed_its_profile():
    """All that it sent is acknowledged, and yet it is no whole replay: its pod must not exit 0."""
    tally = Tally()
    replayed(ONE, tally, stopped=True)
    assert tally.acked == tally.sent == 0
    assert not tally.whole


def test_of_several_topics_each_key_is_on_the_partition_of_its_number():
    """The number that Kafka's hash gives the key among all partitions: each topic has its part of the events."""
    places = {}

    class Placed(Tally):
        def delivered(self, error, message):
            super().delivered(error, message)
            places[event.decode(message.value()).seq] = message.topic(), message.partition()

    tally, topics = Placed(), Numbering(("t", "t-2"), 4)  # as many partitions as a topic of the mock broker has
    replayed({"kind": "steady", "rate": 2000, "duration": 0.5}, tally, topics)
    assert tally.acked == tally.sent == 1000
    numbers = partitions_of(Entities(7, 1000).take(1000), 8).tolist()
    assert [places[seq] for seq in range(1000)] == [topics.place(number) for number in numbers]
    assert {topic for topic, _ in places.values()} == {"t", "t-2"}


u64 = st.integers(0, 2**64 - 1)
fields = st.lists(st.tuples(u64, st.integers(-(2**63), 2**63 - 1)), max_size=20)


@given(fields, st.integers(0, 2**40), st.binary(min_size=232, max_size=232) | st.just(bytes(232)))
def test_together_is_one_by_one(events, first, payload):
    """Keys and values are of :mod:`lab.kafka.event`, to the last zero byte."""
    ids, stamps = (np.array([one[field] for one in events], dtype=kind) for field, kind in ((0, np.uint64), (1, np.int64)))
    keys, values = encode(ids, first, stamps, payload)
    assert keys == [event.KEY.pack(entity) for entity, _ in events]
    assert values == [event.encode(entity, first + at, stamp, payload) for at, (entity, stamp) in enumerate(events)]


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.sampled_from([1, 116, 232]))
def test_a_payload_depends_on_the_seed_and_the_place_alone(counts, own):
    """However many are taken at a time, the same event has the same payload."""
    several, one = Payloads(7, own), Payloads(7, own)
    assert np.concatenate([several.take(count) for count in counts]).tolist() == one.take(sum(counts)).tolist()


@given(st.integers(0, 100))
def test_half_a_payload_of_its_own_does_not_compress_to_nothing(seed):
    """A batch of a thousand events keeps the random half of each, whatever compresses it."""
    ids = np.arange(1000, dtype=np.uint64)
    _, values = encode(ids, 0, np.arange(1000), Payloads(seed, 116).take(1000))
    assert 0.45 < len(zlib.compress(b"".join(values), 1)) / 256_000 < 0.6
    _, alike = encode(ids, 0, np.arange(1000), Payloads(seed).take(1000))
    assert len(zlib.compress(b"".join(alike), 1)) / 256_000 < 0.1
    assert Payloads(seed).take(10) == random.Random(seed).randbytes(232), "trials of before are byte by byte as they were"


def test_a_stall_is_late_for_all_of_its_events():
    """Five ticks of 2,005 send a third of all: their lateness is the 99th percentile, and no median."""
    tally = Tally(late_ms=[1.0] * 2000 + [4000.0] * 5, tick_events=[10] * 2000 + [2000] * 5)
    told = tally.summary()
    assert (told["late_p50_ms"], told["late_p99_ms"], told["late_max_ms"]) == (1, 4000, 4000)
    assert not {"late_ms", "tick_events"} & told.keys()
