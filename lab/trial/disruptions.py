"""Faults that are no signal to one process: an eviction, a drained node, a storm of rebalances, a broker that comes back."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaException
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab.errors import LabFault, NoAnswer
from lab.inputs import objects, topics
from lab.inputs.consumer import STOCK, Balancer
from lab.inputs.events import ROLES
from lab.inputs.faults import FULL, KILL, TERMINATE, Injection
from lab.kafka.replicas import OFFSETS, whole
from lab.trial.closing import reason
from lab.trial.events import broker_of, own_brokers
from lab.trial.network import Network
from lab.trial.stage import CONSUMER, Stage
from lab.wait import until

Undo = Callable[[], object]  # what takes a fault back; a text that it returns is why nothing was struck after all
GONE = 404
BUSY = 429
ASK_S = 5.0  # an API server that is away is not waited for: what is due is to be taken back meanwhile
BACK_S = 20.0  # it starts in 5 s on a quiet machine
JOIN_S = 10.0  # until a member is given its assignment; a round takes some 0.5 s
LOOK_S = 0.1
UNREADY = "not every copy was in sync"


def ask(do: Callable[[], object], what: str, deadline_s: float) -> bool:
    """Do what asks the API server, again until it answers; returns whether that was there, for what is gone is left.

    Raises :class:`LabFault` after ``deadline_s`` s, and ``ApiException`` where it refuses.
    """
    there = True

    def answered() -> bool:
        nonlocal there
        try:
            do()
        except ApiException as error:
            if error.status == GONE:
                there = False
                return True
            if error.status == BUSY or (error.status or 0) >= 500:
                raise NoAnswer(str(error.reason)) from None
            raise
        return True

    until(answered, deadline_s, what)
    return there


def evict(stage: Stage, pod: str) -> bool:
    """Evict ``pod``, as a drain of its node does; returns and raises like :func:`ask`."""
    core, where = client.CoreV1Api(stage.api), client.V1ObjectMeta(name=pod, namespace=stage.namespace)
    named = client.V1Eviction(api_version="policy/v1", kind="Eviction", metadata=where)
    return ask(lambda: core.create_namespaced_pod_eviction(pod, stage.namespace, named), f"{pod} evicted", ASK_S)


def drain(stage: Stage) -> tuple[Callable[[], None], Undo]:
    """What cordons the nodes of the consumer and evicts its pods there, as ``kubectl drain``, and what opens them again."""
    pods = stage.transitions.pods(CONSUMER)
    nodes = sorted({name for pod in pods if (name := pod.get("spec", {}).get("nodeName"))})

    def empty() -> None:
        cordon(stage, nodes, True, ASK_S)
        for pod in pods:
            evict(stage, pod["metadata"]["name"])

    return empty, partial(cordon, stage, nodes, False, BACK_S)


def cordon(stage: Stage, nodes: Sequence[str], closed: bool, deadline_s: float) -> None:
    """Let ``nodes`` take no new pods while they are ``closed``; raises like :func:`ask`."""
    core, body = client.CoreV1Api(stage.api), {"spec": {"unschedulable": closed}}
    for node in nodes:
        ask(partial(core.patch_node, node, body), f"{node} {'cordoned' if closed else 'uncordoned'}", deadline_s)


def await_api(stage: Stage) -> None:
    """Wait until the API server answers again. Raises :class:`LabFault` after BACK_S."""
    ask(client.VersionApi(stage.api).get_code, "the API server back", BACK_S)


def scaling_out(stage: Stage) -> bool:
    """Whether pods of the consumer are on their way."""
    wanted, ready = stage.field(CONSUMER, "spec", "replicas"), stage.field(CONSUMER, "status", "readyReplicas")
    return (wanted or 0) > (ready or 0)


def strike_broker(stage: Stage, one: Injection) -> tuple[int, Undo] | str:
    """The process of the broker that was struck, and what brings it back; or why none was.

    It leads most of the trial's partitions or, by the half of the injection's draw, coordinates the group. Unless every copy is
    in sync none is struck: a majority goes on. Raises :class:`LabFault` where it has died by itself.
    """
    quorum, replicas = own_brokers(stage)
    try:
        if not whole(replicas.read(*topics.numbering(stage.names).topics, OFFSETS)):
            return UNREADY
        number = broker_of(ROLES[int(one.draw * len(ROLES))], stage, replicas)
    except (KafkaException, LabFault) as error:
        return f"{UNREADY}: {reason(error)}"
    process = quorum.running(number).process
    if one.kind == KILL:
        return quorum.kill(number), partial(quorum.start, [number])
    if one.kind in (TERMINATE, FULL):
        end = quorum.roll if one.kind == TERMINATE else quorum.fill
        return process.pid, end(number)
    process.send_signal(signal.SIGSTOP)
    return process.pid, partial(process.send_signal, signal.SIGCONT)


class Storm:
    """A member that joins the group of ``stage`` and leaves it, again and again, in a thread, until :meth:`close`.

    It subscribes to the trial's reports and not to its events, so it takes no partition of theirs: what is done to the group is
    rebalances alone, two for each time. It commits nothing.
    """

    def __init__(self, stage: Stage) -> None:
        self._settings = {"bootstrap.servers": stage.bootstrap, **member(stage), **stage.cluster.kafka_settings}
        self._topic = stage.names["REPORTS_TOPIC"]
        self._joined, self._why = 0, "no member could join the group"
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="storm", daemon=True)
        self._thread.start()

    def close(self) -> str:
        """Leave the group for good; returns why no rebalance came of it, "" where some did."""
        self._over.set()
        self._thread.join(JOIN_S)
        return "" if self._joined else self._why

    def _run(self) -> None:
        try:
            while not self._over.is_set():
                self._join()
        except Exception as error:  # the group has no member more than before
            self._why = f"{self._why}: {reason(error)}"

    def _join(self) -> None:
        consumer, given = Consumer(self._settings), threading.Event()
        try:
            consumer.subscribe([self._topic], on_assign=lambda *_: given.set())
            end = time.monotonic() + JOIN_S
            while not (given.is_set() or self._over.is_set()) and time.monotonic() < end:
                consumer.poll(LOOK_S)
            self._joined += given.is_set()
            if not given.is_set():  # close() alone sends no LeaveGroup for a member without partitions (docs/upstream)
                with suppress(KafkaException):
                    consumer.unsubscribe()
        finally:
            consumer.close()


def member(stage: Stage) -> dict[str, Any]:
    """librdkafka's settings with which a member fits into the group of ``stage``."""
    work = stage.inputs.workload
    own: dict[str, Any] = {"group.id": stage.names["GROUP"], "client.id": "storm", "enable.auto.commit": False, "log_level": 2}
    if work.balancer == Balancer.CONSUMER:
        return own | {"group.protocol": "consumer"}
    times = {"heartbeat.interval.ms": work.heartbeat_ms, "session.timeout.ms": work.session_timeout_ms}
    return own | {"partition.assignment.strategy": work.balancer, **({} if work.client_settings == STOCK else times)}


def network(stage: Stage) -> Network:
    """Put a proxy between the consumers of ``stage``, which are not applied yet, and the broker; KEDA asks where they do."""
    stage.network = made = Network(*stage.cluster.consumers)
    stage.names[objects.CONSUMERS_BOOTSTRAP] = made.front
    return made
