"""A real KRaft node, broker and controller, as a local process, from Maven artefacts. :mod:`lab.cluster.quorum` has several."""

from __future__ import annotations

import base64
import itertools
import json
import os
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from lab.components import jars
from lab.errors import LabFault
from lab.host import identity, processes
from lab.host.command import run_command
from lab.kafka import login as logins
from lab.kafka.replicas import OFFSETS
from lab.wait import until

VERSION = "4.3.1"
HEAP_MB = 512
# Retention is by size: a trial must not lose what it still has to reconcile. The hottest of 24 partitions holds some 15 %
# of all events, which for 30 M is 1.2 GB.
RETENTION_BYTES = 16 * 2**30
START_DEADLINE_S = 240  # 3 s on a quiet machine; 90 s were too few for one of four clusters. A death is seen at once
FORMAT_S = 120  # 1 s on a quiet machine
ASK_S = 5  # for an answer about groups, before the question is put again
COPIES = 3  # of what Kafka itself keeps, where there are as many nodes
_ONE_OF_EACH = "abcd"  # group names whose coordinators are all that exist: Kafka takes a name's hash code, here 97 to 100

# SerialGC and C1 start fastest and leave the two cores to the trial.
JVM = (f"-Xmx{HEAP_MB}m", "-Xms256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def properties(
    data: str | Path,
    listeners: Mapping[str, str],
    advertised: Mapping[str, str],
    controller: str,
    login: Mapping[str, str] | None = None,
    *,
    number: int = 1,
    voters: Mapping[int, str] | None = None,
) -> str:
    """The ``server.properties`` of node ``number``, which is broker and controller.

    ``listeners`` maps each name to the address it is bound to, ``advertised`` to the one that clients get; the first is the
    brokers' own. ``controller`` is the controller's address, ``login`` the settings of the only clients that are taken,
    ``voters`` the controllers by node (the node alone without them). What Kafka itself keeps has three copies, or one a node.
    """
    voters = voters or {number: controller}
    copies = min(len(voters), COPIES)
    majority = copies // 2 + 1
    bound = {**listeners, "CONTROLLER": controller}
    settings = {
        "process.roles": "broker,controller",
        "node.id": number,
        "controller.quorum.voters": ",".join(f"{voter}@{address}" for voter, address in voters.items()),
        "listeners": ",".join(f"{name}://{address}" for name, address in bound.items()),
        "advertised.listeners": ",".join(f"{name}://{address}" for name, address in advertised.items()),
        "listener.security.protocol.map": ",".join(f"{name}:{logins.protocol(login or {})}" for name in bound),
        "inter.broker.listener.name": next(iter(listeners)),
        "controller.listener.names": "CONTROLLER",
        "log.dirs": data,
        "num.network.threads": 2,
        "num.io.threads": 2,
        "auto.create.topics.enable": "false",
        "offsets.topic.num.partitions": len(_ONE_OF_EACH),
        **({"min.insync.replicas": majority} if copies > 1 else {}),
        "offsets.topic.replication.factor": copies,
        "transaction.state.log.replication.factor": copies,
        "transaction.state.log.min.isr": majority,
        "transaction.state.log.num.partitions": 1,
        "share.coordinator.state.topic.replication.factor": copies,
        "share.coordinator.state.topic.min.isr": majority,
        "share.coordinator.state.topic.num.partitions": 1,
        # Only the first assignment of an empty group waits for it; the stock 3 s would lengthen every baseline.
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
        **logins.server_properties(login or {}, bound),
    }
    return "".join(f"{name}={value}\n" for name, value in settings.items())


@dataclass
class Broker:
    """A running broker; ``bootstrap`` is its address, ``settings`` are those with which a client logs in, if it has to.

    A second listener is bound to the second address of ``consumers`` and says that it is at the first, where a proxy may be.
    """

    run: Path
    bootstrap: str
    daemon: processes.Daemon
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)
    consumers: tuple[str, str] = ("", "")

    def stop(self) -> None:
        """End the broker."""
        processes.stop(self.run, self.daemon, grace_s=10)


def start(run: Path, login: Mapping[str, str] | None = None) -> Broker:
    """Start a broker on a free loopback port, open to all unless there is a ``login``. Raises like :func:`launch`."""
    client, controller, front, behind = (f"127.0.0.1:{port}" for port in processes.free_ports(4))
    bound, told = {"CLIENT": client, "CONSUMERS": behind}, {"CLIENT": client, "CONSUMERS": front}
    started = launch(run, client, properties(data(run), bound, told, controller, login), login)
    return replace(started, consumers=(front, behind))


def data(run: Path) -> Path:
    """The folder of the logs of a broker of ``run``."""
    return run / "kafka" / "data"


def settings_file(run: Path) -> Path:
    """Where the login of a broker of ``run`` is, as ``--kafka-settings`` takes it, if there is one."""
    return run / "kafka" / "settings.json"


def launch(run: Path, bootstrap: str, text: str, login: Mapping[str, str] | None = None) -> Broker:
    """Format a data folder under ``run``, and start a broker with ``text`` for its ``server.properties``.

    Raises :class:`LabFault` where there is no Java, or no answer at ``bootstrap`` by the deadline.
    """
    folder = run / "kafka"
    prepare(run, folder, text, cluster_id())
    daemon = begin(run, folder, "kafka")
    if login:
        _write(settings_file(run), json.dumps(dict(login), indent=1))
    wait_for(bootstrap, daemon.check, login)
    return Broker(run, bootstrap, daemon, login or {})


def prepare(run: Path, folder: Path, text: str, identity_of_cluster: str) -> None:
    """Write ``server.properties`` and format the data folder. Raises :class:`LabFault` without Java, or if refused."""
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "server.properties", text)
    (folder / "log4j2.properties").write_text(jars.log4j("WARN"))
    tool = ["kafka.tools.StorageTool", "format", "-t", identity_of_cluster, "-c", str(folder / "server.properties")]
    command, env = [*_java(folder), *tool, "--ignore-formatted"], identity.environment(run)
    formatted = run_command(command, FORMAT_S, "formatting Kafka's storage", env=env)
    if formatted.returncode != 0:
        raise LabFault(f"Kafka's storage could not be formatted: {formatted.stderr.strip().splitlines()[-1:]}")


def begin(run: Path, folder: Path, name: str) -> processes.Daemon:
    """Start the node that is prepared in ``folder``, for the first time or again, as the component ``name``."""
    return processes.start(run, name, [*_java(folder), "kafka.Kafka", folder / "server.properties"])


def _java(folder: Path) -> list[str | Path]:
    """The command that runs a class of Kafka's for the node in ``folder``."""
    libraries = os.pathsep.join(map(str, jars.resolve("kafka", jars.KAFKA)))
    return [jars.java(), *JVM, f"-Dlog4j2.configurationFile={folder / 'log4j2.properties'}", "-cp", libraries]


def _write(file: Path, text: str) -> None:
    """Write what may hold a password, for this user alone."""
    file.touch(mode=0o600)
    file.write_text(text)


def cluster_id() -> str:
    """A new random id in Kafka's form. Like Kafka's own it never begins with a dash, which Kafka's tool reads as an option."""
    ids = (base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=") for _ in itertools.count())
    return next(identity for identity in ids if not identity.startswith("-"))


def wait_for(bootstrap: str, check: Callable[[], None], login: Mapping[str, str] | None = None, brokers: int = 1) -> None:
    """Wait until all ``brokers`` are there and one answers at ``bootstrap``, for groups too, whose offsets it loads later.

    Consumers ask that never join: an admin client that asks about groups may end its process (librdkafka #5397 and #5040).
    ``check`` raises when the broker has died. Raises :class:`LabFault` at the deadline.
    """
    own = {"bootstrap.servers": bootstrap, "enable.auto.commit": False, "log_level": 0, **(login or {})}
    groups = [Consumer({**own, "group.id": name}) for name in _ONE_OF_EACH]

    def answers() -> bool:
        try:
            if len(groups[0].list_topics(timeout=1).brokers) < brokers:
                return False
            asked = [part for group in groups for part in group.committed([TopicPartition(OFFSETS, 0)], timeout=ASK_S)]
        except KafkaException:
            return False
        return all(part.error is None for part in asked)

    until(answers, START_DEADLINE_S, f"Kafka on {bootstrap}", check, every_s=0.02)
