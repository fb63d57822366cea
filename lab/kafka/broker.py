"""A real single-node KRaft broker as a local process, from Maven artefacts."""

from __future__ import annotations

import base64
import itertools
import logging
import os
import subprocess
import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab import jars
from lab.cluster import processes
from lab.errors import LabFault

VERSION = "4.3.1"
HEAP_MB = 512
# Retention is by size: nothing a trial still has to reconcile may be dropped. The hottest of 24 partitions holds some 15 %
# of all events, which for the full scale's 30 M is 1.2 GB.
RETENTION_BYTES = 16 * 2**30
START_DEADLINE_S = 90  # 3 s on a quiet machine

# SerialGC and C1 start fastest and leave the two cores to what is measured.
JVM = (f"-Xmx{HEAP_MB}m", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def properties(data: str | Path, listeners: Mapping[str, str], advertised: Mapping[str, str], controller: str) -> str:
    """The broker's ``server.properties``: a node that is broker and controller.

    ``listeners`` maps each name to the address it is bound to, ``advertised`` to the address clients are told; the first is
    the brokers' own. ``controller`` is the address of the controller's listener.
    """
    bound = {**listeners, "CONTROLLER": controller}
    settings = {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@{controller}",
        "listeners": ",".join(f"{name}://{address}" for name, address in bound.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in advertised.items()),
        "listener.security.protocol.map": ",".join(f"{name}:PLAINTEXT" for name in bound),
        "inter.broker.listener.name": next(iter(listeners)),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": 4,
        "offsets.topic.replication.factor": 1,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        "share.coordinator.state.topic.num.partitions": 1,
        # Only the first assignment of an empty group waits for this; the stock 3 s would lengthen every baseline.
        "group.initial.rebalance.delay.ms": 500,
        # KIP-848 takes its heartbeat from the broker: the same 500 ms the classic members use.
        "group.consumer.heartbeat.interval.ms": 500,
        "group.consumer.min.heartbeat.interval.ms": 500,
        "log.retention.ms": -1,
        "log.retention.bytes": RETENTION_BYTES,
        "log.segment.bytes": 256 * 2**20,
        "log.cleaner.dedupe.buffer.size": 2 * 2**20,
        "group.coordinator.threads": 1,
        "background.threads": 2,
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


@dataclass
class Broker:
    """A running broker; ``bootstrap`` is its address."""

    run: Path
    bootstrap: str
    daemon: processes.Daemon

    def stop(self) -> None:
        """End the broker."""
        processes.stop(self.run, self.daemon, grace_s=10)


def start(run: Path) -> Broker:
    """Format a new data folder under ``run`` and start a broker on a free loopback port.

    Raises :class:`LabFault` when there is no Java or the broker does not answer by its deadline.
    """
    java = jars.java()
    libraries = os.pathsep.join(map(str, jars.resolve("kafka", jars.KAFKA)))
    ports = processes.free_ports(2)
    folder = run / "kafka"
    folder.mkdir(parents=True, exist_ok=True)
    settings = folder / "server.properties"
    client, controller = (f"127.0.0.1:{port}" for port in ports)
    settings.write_text(properties(folder / "data", {"PLAINTEXT": client}, {"PLAINTEXT": client}, controller))
    (folder / "log4j2.properties").write_text(jars.log4j("WARN"))
    command = [java, *JVM, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", libraries]
    formatted = subprocess.run(
        [*command, "kafka.tools.StorageTool", "format", "-t", cluster_id(), "-c", str(settings), "--ignore-formatted"],
        capture_output=True,
        text=True,
        check=False,
    )
    if formatted.returncode != 0:
        raise LabFault(f"Kafka's storage could not be formatted: {formatted.stderr.strip().splitlines()[-1:]}")
    daemon = processes.start(run, "kafka", [*command, "kafka.Kafka", settings])
    wait_for(client, daemon.check)
    return Broker(run, client, daemon)


def cluster_id() -> str:
    """A new random id in Kafka's form; like Kafka's own none begins with a dash, which its tool takes for an option."""
    ids = (base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in itertools.count())
    return next(identity for identity in ids if not identity.startswith("-"))


def wait_for(bootstrap: str, check: Callable[[], None]) -> None:
    """Wait until a broker answers at ``bootstrap``; ``check`` raises when it has died. Raises :class:`LabFault` in the end."""
    deadline = time.monotonic() + START_DEADLINE_S
    admin = AdminClient({"bootstrap.servers": bootstrap}, logger=_quiet())
    while True:
        check()
        try:
            admin.list_topics(timeout=1)
            return
        except KafkaException:
            if time.monotonic() > deadline:
                raise LabFault(f"Kafka did not answer on {bootstrap} within {START_DEADLINE_S} s") from None


def _quiet() -> logging.Logger:
    """Swallows the client's complaints about a broker that is not there yet."""
    logger = logging.getLogger("lab.kafka.client")
    logger.propagate = False
    logger.addHandler(logging.NullHandler())
    return logger
