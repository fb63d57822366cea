"""Runs the listing as printed, change by change, and the working one on a real broker of the lab's: ``python reproduce.py``.

It needs ``pip install kafka-python==3.0.12`` beside the lab. Each line of its output is a version of the listing, and how it
ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from lab.cluster import broker
from lab.host import processes, runs
from lab.kafka import topics
from lab.kafka.lag import LagReader
from lab.wait import until

HERE = Path(__file__).parent
PRINTED = (HERE / "as-printed.txt").read_text()
NAMED = "['org.apache.kafka.clients.consumer.CooperativeStickyAssignor']"
FOUND = "[__import__('kafka.coordinator.assignors.cooperative_sticky', fromlist=['x']).CooperativeStickyAssignor]"
LOGIN = "security_protocol='SASL_PLAINTEXT', # Example, adjust as needed\n        sasl_mechanism='PLAIN'"
COUNT, RUNS_S = 20, 30.0


def versions() -> dict[str, str]:
    """The listing by what was changed in it."""
    open_ = PRINTED.replace(LOGIN, "")
    return {
        "as printed, without its login": open_,
        "and with a class for the assignor": open_.replace(NAMED, FOUND),
        "working.py": (HERE / "working.py").read_text(),
    }


def run(bootstrap: str, name: str, program: str) -> str:
    """How ``program`` ended on a topic of its own with messages."""
    topic = group = f"listing-{len(program)}"
    topics.create(bootstrap, {topic: 2})
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, partition=number % 2)
    producer.flush(30)
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program)
        file.flush()
        environment = dict(os.environ, KAFKA_BROKERS=bootstrap, KAFKA_TOPIC=topic, CONSUMER_GROUP=group)
        process = subprocess.Popen([sys.executable, file.name], env=environment, stderr=subprocess.PIPE, text=True)
        reader, admin = LagReader(bootstrap, group, topic), AdminClient({"bootstrap.servers": bootstrap})

        def over() -> bool:
            return process.poll() is not None or all(part.committed for part in reader.read().values())

        until(over, RUNS_S, f"{name}: an end, or all committed")
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=30)
    lag = sum(part.lag for part in reader.read().values())
    ended = f"exit code {process.returncode}, {COUNT - lag} of {COUNT} committed"
    if lag < COUNT:  # a version that never committed may have made no group
        ended += f", {len(admin.describe_consumer_groups([group])[group].result(30).members)} members left in the group"
    last = [line for line in said.splitlines() if line.strip()][-1]
    return f"{ended}: {last}"


def main() -> None:
    """Run every version."""
    started, folder, guard = runs.start(broker.start)
    try:
        for name, program in versions().items():
            print(f"{name}: {run(started.bootstrap, name, program)}")
    finally:
        processes.clear(folder)
        processes.dismiss(guard)


if __name__ == "__main__":
    main()
