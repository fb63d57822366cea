"""The lag exporter: what a scrape tells of one topic and of several, what many at once read, and who gets an answer."""

import http.client
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException
from prometheus_client import CollectorRegistry

from lab.cluster.apply import answers
from lab.kafka.lag import PartitionLag
from lab.kafka.numbering import Numbering
from lab.programs import telemetry
from lab.programs.exporter import LagCollector, SharedReader
from lab.wait import until

SOON_S = 30
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


def asked(port, host=None, path="/metrics"):
    """The status and text that a program on ``port`` answers a request for ``host``."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SOON_S)
    connection.request("GET", path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def serving(collector):
    """The port on which the figures of ``collector`` are told."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(collector)
    return telemetry.serve("127.0.0.1", 0, lambda: True, lambda: False, registry)


def test_figures_are_told_and_a_scrape_that_fails_says_why():
    """A gap is a gap and not a zero."""
    port = serving(LagCollector(LAGS, "enrich", Numbering(("events",))))
    status, text = asked(port)
    assert (status, 'kafka_consumergroup_lag_sum{consumergroup="enrich",topic="events"} 10.0' in text) == (200, True)
    assert [asked(port, path=path)[0] for path in ("/readyz", "/healthz", "/")] == [200, 503, 404]
    slow = Slow()
    slow.error = KafkaException(KafkaError(KafkaError._TIMED_OUT, "no broker"))
    status, text = asked(serving(LagCollector(slow, "enrich", Numbering(("events",)))))
    assert (status, "no broker" in text) == (500, True)


@pytest.mark.parametrize(
    ("host", "status"),
    [
        *((name, 200) for name in (None, "127.17.0.3:9308", "[::1]:9308", "localhost:9308", "lag-exporter.trial-x.svc:9308")),
        *((name, 403) for name in ("rebound.example:9308", "127.0.0.1.nip.io", "example.")),
    ],
)
def test_a_page_that_gives_its_name_this_address_reads_nothing(host, status):
    """Its browser says the name."""
    assert asked(serving(LagCollector(LAGS, "enrich", Numbering(("events",)))), host)[0] == status


def test_one_too_many_is_closed_and_a_silent_one_is_not_waited_for(monkeypatch):
    """A client that opens connections and says nothing takes the program no thread more, and no place for long."""
    monkeypatch.setattr(telemetry, "MOST_REQUESTS", 1)
    monkeypatch.setattr(telemetry, "SILENT_S", 1.0)
    port = serving(LagCollector(LAGS, "enrich", Numbering(("events",))))
    with socket.create_connection(("127.0.0.1", port), timeout=SOON_S) as silent:
        with pytest.raises((ConnectionError, http.client.HTTPException)):
            asked(port)
        assert silent.recv(1) == b""
    until(lambda: answers(f"http://127.0.0.1:{port}/metrics"), SOON_S, "an answer")
