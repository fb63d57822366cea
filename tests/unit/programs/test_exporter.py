"""The lag exporter: what a scrape tells of one topic and of several, and what many scrapes at once read."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException

from lab.kafka.lag import PartitionLag
from lab.kafka.numbering import Numbering
from lab.programs.exporter import LagCollector, SharedReader

LAGS = SimpleNamespace(read=lambda: {0: PartitionLag(10, 3), 1: PartitionLag(3, None)})  # the second has no commit


def samples(topics):
    """What a scrape tells, by metric: (labels, value)."""
    found = {}
    for family in LagCollector(LAGS, "enrich", topics).collect():
        for one in family.samples:
            found.setdefault(one.name, []).append((one.labels, one.value))
    return found


def test_a_scrape_tells_what_kafka_exporter_does():
    """Of one topic the partitions are Kafka's own. Several have one sum, and a partition its number: each is one series."""
    group = {"consumergroup": "enrich"}
    for topics, names, total in (
        (Numbering(("events",)), ("events", "events"), "events"),
        (Numbering(("events", "events-2"), 1), ("events", "events-2"), "events,events-2"),
    ):
        first, second = ({"topic": name, "partition": str(number)} for number, name in enumerate(names))
        assert samples(topics) == {
            "kafka_consumergroup_lag": [(group | first, 7), (group | second, 3)],
            "kafka_consumergroup_lag_sum": [(group | {"topic": total}, 10)],
            "kafka_consumergroup_current_offset": [(group | first, 3)],
            "kafka_topic_partition_current_offset": [(first, 10), (second, 3)],
        }


class Slow:
    """A reading takes 50 ms; its lag is its number. ``begun`` has the moment of each."""

    def __init__(self):
        self.begun, self.error = [], None

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


@pytest.mark.parametrize("error", [KafkaException(KafkaError(KafkaError._TIMED_OUT)), RuntimeError("unforeseen")])
def test_a_reading_that_fails_fails_each_scrape_that_shares_it(error):
    """A gap is a gap: no scrape is given an older reading. After an error that is not Kafka's those that waited read anew."""
    slow = Slow()
    shared = SharedReader(slow)
    assert shared.read()[0].end == 1
    slow.error = error
    with ThreadPoolExecutor(5) as pool:
        failed = [pool.submit(shared.read) for _ in range(5)]
    assert {repr(one.exception()) for one in failed} == {repr(error)}
    slow.error = None
    assert shared.read()[0].end == len(slow.begun)
