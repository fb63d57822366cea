"""``python -m lab.programs.exporter``: a group's lag as Prometheus metrics, by kafka_exporter's names, read when scraped."""

from __future__ import annotations

import logging
import math
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping

from confluent_kafka import KafkaException
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from lab.errors import InputError
from lab.flags import Flags
from lab.inputs import settings as declarations
from lab.inputs import topics
from lab.kafka.lag import LagReader, PartitionLag
from lab.kafka.login import kafka_flags
from lab.kafka.numbering import Numbering
from lab.programs.telemetry import serve


class SharedReader:
    """Reads the lag for many scrapes, one reading at a time. Scrapes that come during a reading share the next one.

    Without it a busy machine's scrapes come faster than readings end: 200 at once cost 12 ms of CPU each, and one 0.8 ms.
    """

    def __init__(self, reader: LagReader) -> None:
        self._reader, self._lock, self._begun = reader, threading.Lock(), -math.inf
        self._answer: Mapping[int, PartitionLag] | KafkaException = {}

    def read(self) -> Mapping[int, PartitionLag]:
        """The lag as of a reading that began after this call. Raises ``KafkaException`` where that reading did."""
        called = time.monotonic()
        with self._lock:
            if self._begun < called:
                begun = time.monotonic()
                try:
                    self._answer = self._reader.read()
                except KafkaException as error:
                    self._answer = error
                self._begun = begun  # not before: after any other error the answer is still the older reading's
            answer = self._answer
        if isinstance(answer, KafkaException):
            raise KafkaException(*answer.args)
        return answer


class LagCollector(Collector):
    """Asks Kafka at every scrape. A partition is labelled with the trial's number and its topic; there is one sum."""

    def __init__(self, reader: SharedReader, group: str, topics: Numbering) -> None:
        self._reader, self._group, self._topics = reader, group, topics

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """One family a metric; an error of Kafka's fails the scrape, so a gap is a gap and not a zero."""
        by_partition = ["consumergroup", "topic", "partition"]
        lag = GaugeMetricFamily("kafka_consumergroup_lag", "Messages not yet committed", labels=by_partition)
        offset = GaugeMetricFamily("kafka_consumergroup_current_offset", "Committed offset", labels=by_partition)
        end = GaugeMetricFamily("kafka_topic_partition_current_offset", "Log end offset", labels=["topic", "partition"])
        total = GaugeMetricFamily("kafka_consumergroup_lag_sum", "Sum of lag", labels=["consumergroup", "topic"])
        lags = self._reader.read()
        for number, found in sorted(lags.items()):
            topic, _ = self._topics.place(number)
            lag.add_metric([self._group, topic, str(number)], found.lag)
            end.add_metric([topic, str(number)], found.end)
            if found.committed is not None:
                offset.add_metric([self._group, topic, str(number)], found.committed)
        total.add_metric([self._group, ",".join(self._topics.topics)], sum(found.lag for found in lags.values()))
        return iter((lag, total, offset, end))


def main() -> int:
    """Serve until SIGTERM."""
    parser = Flags(prog="python -m lab.programs.exporter", description=__doc__)
    kafka_flags(parser)
    parser.serving(metrics_port=9308)
    declarations.add_flags(parser, topics.Settings)
    parser.flag("group", str, "enrich", "consumer group")
    options = parser.parse_args()
    try:
        numbering = topics.settings(options).numbering
    except InputError as error:
        parser.error(str(error))
    logging.basicConfig(level=logging.INFO)
    registry = CollectorRegistry(auto_describe=False)
    reader = LagReader(options.bootstrap_servers, options.group, numbering, settings=options.kafka_settings)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    registry.register(LagCollector(SharedReader(reader), options.group, numbering))
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, lambda: True, lambda: True, registry)
    stop.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
