"""``python -m lab.programs.producer``: replay a traffic profile onto the topic, and report the fate of every event."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer
from prometheus_client import REGISTRY
from prometheus_client.core import CounterMetricFamily
from prometheus_client.registry import Collector

from lab.errors import InputError
from lab.inputs import settings as declarations
from lab.inputs.keys import Entities
from lab.inputs.producer import Settings, flags, settings
from lab.inputs.profile import Profile
from lab.kafka.topics import create
from lab.programs.producer.send import Contents, Ids, Payloads, Tally, configuration, replay
from lab.programs.telemetry import Reports, process_started, reporter, serve

log = logging.getLogger("lab.programs.producer")


def generated(chosen: Settings, profile: Profile) -> tuple[Ids, Contents]:
    """What the lab's own events say: keys by Zipf's law, and random bytes."""
    return Entities(chosen.seed, chosen.entities, profile.zipf).take, Payloads(chosen.seed, chosen.random_bytes).take


def main(make: Callable[[Settings, Profile], tuple[Ids, Contents]] = generated) -> int:
    """Replay the profile. The exit code is 0 when every event was acknowledged, 1 when not, and 2 on bad input."""
    parser = flags()
    chosen = settings(parser.parse_args())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        profile, numbering = chosen.traffic, chosen.numbering
    except InputError as error:
        parser.error(str(error))
    who = os.environ.get("HOSTNAME", "producer")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    tally = Tally()
    with parser.listening(chosen.metrics_port):
        _metrics(tally, chosen.metrics_port, chosen.pod_ip)
    if chosen.partitions:
        create(chosen.bootstrap_servers, dict.fromkeys(numbering.topics, chosen.partitions), chosen.kafka_settings)
    client = {**declarations.client(chosen), **chosen.kafka_settings}
    producer = Producer(configuration(chosen.bootstrap_servers, who, client))
    reports_producer = reporter(chosen.bootstrap_servers, who, chosen.kafka_settings)
    reports = Reports(reports_producer, chosen.reports_topic, who)

    def started(phase: str, at: float) -> None:
        log.info("phase %s", phase)
        reports.say("phase", phase=phase, at=at)

    start = chosen.start_at or time.time() + chosen.start_in
    reports.say("started", created=process_started())
    reports.say("profile", start=start, total=profile.total)
    reports_producer.flush(10)
    replay(producer, numbering, profile, *make(chosen, profile), stop, started, tally, start)
    summary = tally.summary()
    log.info("%s", summary)
    reports.say("produced", **summary)
    reports_producer.flush(30)
    return 0 if tally.whole else 1


def _metrics(tally: Tally, port: int, address: str) -> None:
    """Serve the tally as Prometheus counters, which are read when Prometheus scrapes."""

    class Events(Collector):
        def collect(self) -> Any:
            family = CounterMetricFamily("producer_events", "Events by what became of them", labels=["outcome"])
            for outcome in ("sent", "acked", "failed", "unknown"):
                family.add_metric([outcome], getattr(tally, outcome))
            yield family

    REGISTRY.register(Events())
    serve(address, port, lambda: True, lambda: True)


if __name__ == "__main__":
    sys.exit(main())
