"""``python -m lab.producer``: replay a traffic profile onto the topic and say what became of every event."""

from __future__ import annotations

import logging
import os
import random
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any

from confluent_kafka import Producer
from prometheus_client import start_http_server

from lab import event, yamlfile
from lab.errors import InputError
from lab.flags import Flags, number, whole
from lab.producer.send import Tally, configuration, replay
from lab.producer.zipf import Entities
from lab.profile import KINDS, Profile, build, load
from lab.reports import Reports, process_started, reporter

log = logging.getLogger("lab.producer")


def flags() -> Flags:
    """The producer's flags; each may come from the environment."""
    parser = Flags(prog="python -m lab.producer", description=__doc__)
    parser.everywhere(metrics_port=0)
    parser.flag("topic", str, "events", "topic to produce to")
    parser.flag("reports-topic", str, "", "topic for the recorder's events; empty for none")
    parser.flag("profile", str, "step", f"{', '.join(KINDS[:-1])}, or a YAML file")
    parser.flag("profile-yaml", str, "", "the profile's YAML itself (as a pod gets it); wins over --profile")
    parser.flag("rate", number(0, 1e6), 1000.0, "events/s at multiplier 1, for a named profile", "0 to 1,000,000")
    parser.flag("spike-mult", number(1, 1000), 10.0, "the spike's multiple of the rate", "1 to 1000")
    parser.flag("spike-hold", number(0.001, 604_800), 600.0, "how long the spike is held, s", "0.001 to 604,800")
    parser.flag("duration", number(0.001, 604_800), 1800.0, "length of a named profile, s", "0.001 to 604,800")
    parser.flag("seed", whole(0, 2**63 - 1), 1, "decides keys and payload", "a whole number from 0")
    parser.flag("partitions", whole(0, 10_000), 0, "create the topic with so many; 0 leaves it", "0 to 10,000")
    parser.flag("entities", whole(1, 100_000_000), 5_000_000, "number of entity ids", "1 to 100,000,000")
    parser.flag("start-in", number(0, 3600), 1.0, "seconds from now to the profile's start", "0 to 3600")
    return parser


def profile_from(options: Any) -> Profile:
    """The profile the flags describe: YAML text, a file, or a named kind with rate, multiple, hold and duration."""
    if options.profile_yaml:
        return build(yamlfile.parse(options.profile_yaml, "PROFILE_YAML"), "PROFILE_YAML")
    if options.profile not in KINDS:
        return load(Path(options.profile))
    content: dict[str, Any] = {"kind": options.profile, "rate": options.rate, "duration": options.duration}
    if options.profile != "steady":
        content |= {"spike_mult": options.spike_mult, "spike_hold": options.spike_hold}
    return build(content, "command line")


def main() -> int:
    """Replay the profile; exit 0 when every event was acknowledged, 1 when not, 2 on bad input."""
    parser = flags()
    options = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    try:
        profile = profile_from(options)
    except InputError as error:
        print(f"python -m lab.producer: {error}", file=sys.stderr)
        return 2
    who = os.environ.get("HOSTNAME", "producer")
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    tally = Tally()
    with parser.listening(options.metrics_port):
        _metrics(tally, options.metrics_port, options.pod_ip)
    if options.partitions:
        from lab.kafka.topics import create

        create(options.bootstrap_servers, {options.topic: options.partitions}, options.kafka_settings)
    producer = Producer(configuration(options.bootstrap_servers, who, options.kafka_settings))
    reports_producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(reports_producer, options.reports_topic, who)

    def started(phase: str, at: float) -> None:
        log.info("phase %s", phase)
        if options.reports_topic:
            reports.say("phase", phase=phase, at=at)
            reports_producer.poll(0)

    entities = Entities(options.seed, options.entities, profile.zipf)
    payload = random.Random(options.seed).randbytes(event.SIZE - event.HEADER.size)
    start = time.time() + options.start_in
    if options.reports_topic:
        reports.say("started", created=process_started())
        reports.say("profile", start=start, total=profile.total)
        reports_producer.flush(10)
    replay(producer, options.topic, profile, entities, payload, stop, started, tally, start)
    summary = tally.summary()
    log.info("%s", summary)
    if options.reports_topic:
        reports.say("produced", **summary)
        reports_producer.flush(30)
    return 0 if tally.acked == tally.sent else 1


def _metrics(tally: Tally, port: int, address: str) -> None:
    """Serve what the tally says as Prometheus counters, read when scraped."""
    from prometheus_client import REGISTRY
    from prometheus_client.core import CounterMetricFamily
    from prometheus_client.registry import Collector

    class Events(Collector):
        def collect(self) -> Any:
            family = CounterMetricFamily("producer_events", "Events by what became of them", labels=["outcome"])
            for outcome in ("sent", "acked", "failed", "unknown"):
                family.add_metric([outcome], getattr(tally, outcome))
            yield family

    REGISTRY.register(Events())
    start_http_server(port, addr=address)


if __name__ == "__main__":
    sys.exit(main())
