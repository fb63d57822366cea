"""The lag exporter: what a scrape tells of one topic and of several, and what many scrapes at once read."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.kafka.lag import PartitionLag
from lab.kafka.numbering import Numbering
from lab.programs.exporter import LagCollector, SharedReader
from tests.suite import refused


class Lags:
    """A group's lag: two partitions, of which the second has no commit."""

    def read(self):
        """Seven messages, and three."""
        return {0: PartitionLag(10, 3), 1: PartitionLag(3, None)}


def samples(topics):
    """What a scrape tells, by metric: (labels, value)."""
    found = {}
    for family in LagCollector(Lags(), "enrich", topics).collect():
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def test_one_topic_is_told_as_kafka_exporter_does():
    """Topic and partition are Kafka's own."""
    found = samples(Numbering(("events",)))
    group = {"consumergroup": "enrich"}
    assert found["kafka_consumergroup_lag"] == [
        (group | {"topic": "events", "partition": "0"}, 7),
        (group | {"topic": "events", "partition": "1"}, 3),
    ]
    assert found["kafka_consumergroup_current_offset"] == [(group | {"topic": "events", "partition": "0"}, 3)]
    assert found["kafka_topic_partition_current_offset"][1] == ({"topic": "events", "partition": "1"}, 3)
    assert found["kafka_consumergroup_lag_sum"] == [(group | {"topic": "events"}, 10)]


def test_several_topics_have_one_sum_and_a_partition_its_number():
    """A record's curve of the group's lag is one series, and each of its partitions another."""
    found = samples(Numbering(("events", "events-2"), 1))
    assert [labels["topic"] for labels, _ in found["kafka_consumergroup_lag"]] == ["events", "events-2"]
    assert [labels["partition"] for labels, _ in found["kafka_consumergroup_lag"]] == ["0", "1"]
    assert found["kafka_consumergroup_lag_sum"] == [({"consumergroup": "enrich", "topic": "events,events-2"}, 10)]


class Slow:
    """A reading takes 50 ms; its lag is its number. ``begun`` has the moment of each."""

    def __init__(self, error=None):
        self.begun, self.error = [], error

    def read(self):
        """How many readings there were, as the lag of a partition."""
        self.begun.append(time.monotonic())
        number = len(self.begun)
        threading.Event().wait(0.05)
        if self.error:
            raise self.error
        return {0: PartitionLag(number, 0)}


def test_scrapes_that_come_during_a_reading_share_the_next():
    """Fifty at once are a few readings, one after the other, and each scrape has one that began after it came."""
    slow = Slow()
    shared = SharedReader(slow)

    def scrape(_):
        came = time.monotonic()
        return came, shared.read()[0].end

    with ThreadPoolExecutor(50) as pool:
        answers = list(pool.map(scrape, range(50)))
    assert len(slow.begun) < 25
    assert all(slow.begun[number - 1] >= came for came, number in answers)


def test_a_reading_that_fails_fails_each_scrape_that_shares_it():
    """A gap is a gap: no scrape is given an older reading."""
    slow = Slow()
    shared = SharedReader(slow)
    assert shared.read()[0].end == 1
    slow.error = KafkaException(KafkaError(KafkaError._TIMED_OUT))
    with ThreadPoolExecutor(5) as pool:
        failed = [pool.submit(shared.read) for _ in range(5)]
    assert {one.exception().args[0].code() for one in failed} == {KafkaError._TIMED_OUT}
    slow.error = None
    assert shared.read()[0].end == len(slow.begun)


def test_an_error_that_is_not_kafkas_leaves_no_older_reading_behind():
    """The scrape that met it fails, and one that waited meanwhile reads anew."""
    slow = Slow()
    shared = SharedReader(slow)
    assert shared.read()[0].end == 1
    slow.error = RuntimeError("unforeseen")
    with ThreadPoolExecutor(5) as pool:
        failed = [pool.submit(shared.read) for _ in range(5)]
    assert {type(one.exception()) for one in failed} == {RuntimeError}


@pytest.mark.parametrize("program", ["exporter", "consumer", "producer"])
def test_several_topics_without_their_size_are_one_clear_line(program):
    """Their partitions could not be numbered; exit code 2, before any work."""
    line = "command line: --topic-partitions: 0 is not allowed; allowed: 1 to 10,000 with --topics 2"
    assert line in refused(f"lab.programs.{program}", ["--bootstrap-servers=x", "--topics=2"], {})
