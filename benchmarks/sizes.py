"""Measures how cost grows, on real parts: with partitions, pods, ScaledObjects and messages (:mod:`benchmarks.growth`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from statistics import median
from threading import Event
from typing import Any

import psutil
from kubernetes import client
from kubernetes.client.exceptions import ApiException

from benchmarks import growth, ledger, starts
from benchmarks.growth import Growth, Part
from lab.cluster import apply, binary, broker, keda
from lab.host import processes, runs
from lab.kafka.lag import LagReader
from lab.spec import scale
from lab.wait import reporting, until
from tests.defects.target import Target, deployment
from tests.defects.topic import Topic

PARTITIONS = (24, 100, 300, 1_000)
PODS = (10, 50, 100, 200)
SCALED_OBJECTS = (1, 10, 100, 1_000)
MESSAGES = (100_000, 1_000_000, 10_000_000)
ASKED = 50  # questions a size, of which the median is kept
OBSERVED_S = 60.0  # two polls of KEDA and four syncs of the HPA, as shipped
TOGETHER = 100  # ScaledObjects in a namespace
DEADLINE_S = 1_800.0
COMPONENTS = ("keda-operator", "keda-adapter", "kube-apiserver", "kube-controller-manager", "etcd")


def main(which: Iterable[str]) -> None:
    """Measure these parts, one after the other; each is kept and shown on the page as soon as it is measured."""
    for name in which:
        with reporting(partial("growth with {}".format, name), every_s=30):
            every = growth.keep(PARTS[name]())
        growth.PICTURE.write_text(growth.chart(every))
        growth.PAGE.write_text(growth.page(every))
        print(f"{name}: {growth.PAGE.name}", flush=True)


def partitions() -> Part:
    """One answer about a group's lag: the lab's reader, and KEDA's metric as an HPA asks for it."""
    read: dict[int, float] = {}
    read_cpu: dict[int, float] = {}
    asked: dict[int, float] = {}
    asked_cpu: dict[int, float] = {}

    def measure(cluster: binary.Binary, bootstrap: str) -> None:
        for count in PARTITIONS:
            group = Topic(bootstrap, count)
            group.produce(count)
            reader, own = LagReader(bootstrap, group.name, group.name), psutil.Process()
            read[count], read_cpu[count] = _asked(reader.read, own)
            target = Target(cluster, group.trigger(), maxReplicaCount=1, pollingInterval=3_600)
            target.ready()
            operator = processes.remembered(cluster.run, "keda-operator")[0]
            asked[count], asked_cpu[count] = _asked(target.metric, operator)
            target.delete()

    _on_a_cluster(measure)
    how = (
        "A group that is one message behind on each partition of one topic. "
        f"The median of {ASKED} answers and the CPU of one, once the connection is there. "
        "The lab's reader is what its exporter and the persistent-lag scaler ask with. "
        "KEDA's metric is asked through kube-apiserver and the adapter, as the HPA asks."
    )
    return growth.part(
        "partitions",
        how,
        (
            Growth("the lab's reader, an answer", "ms", read),
            Growth("the lab's reader, CPU", "ms", read_cpu),
            Growth("KEDA's kafka trigger, an answer", "ms", asked),
            Growth("KEDA's operator, CPU", "ms", asked_cpu),
        ),
    )


def pods() -> Part:
    """A Deployment's step from 0 to so many consumers, each with a partition of one topic."""
    found: dict[int, starts.Start] = {}

    def measure(cluster: binary.Binary, _: str) -> None:
        for number, count in enumerate(PODS):
            found[count] = starts.start(cluster, "forked", count, max(PODS), number)

    _on_a_cluster(measure)
    figures: dict[str, tuple[str, Callable[[starts.Start], float]]] = {
        "created to subscribed, the last": ("s", lambda one: one.subscribed_s),
        "created to a partition, the last": ("s", lambda one: one.owning_s),
        "CPU of the pods until all have subscribed": ("s", lambda one: one.cpu_s),
        "CPU of the machine until all have subscribed": ("s", lambda one: one.busy_s),
        "memory of all, PSS": ("MB", lambda one: one.memory_mb),
    }
    costs = [
        Growth(what, unit, {count: figure(start) for count, start in found.items()}) for what, (unit, figure) in figures.items()
    ]
    how = (
        f"A Deployment of consumers is scaled from 0 at once, on a topic of {max(PODS)} partitions. "
        "Each pod is a process of the lab's node, forked from its zygote."
    )
    return growth.part("pods", how, costs)


def scaled_objects() -> Part:
    """What KEDA and the control plane pay for so many ScaledObjects at rest, everything as shipped."""
    memory: dict[str, dict[int, float]] = {name: {} for name in COMPONENTS}
    cpu: dict[str, dict[int, float]] = {name: {} for name in COMPONENTS}
    ready: dict[int, float] = {}
    answer: dict[int, float] = {}

    def measure(cluster: binary.Binary, bootstrap: str) -> None:
        group = Topic(bootstrap, 24)
        group.produce(5)
        fleet, there = _Fleet(cluster, group), 0
        for count in SCALED_OBJECTS:
            begun = time.monotonic()
            fleet.add(there, count)
            ready[count], there = time.monotonic() - begun, count
            known = {name: processes.remembered(cluster.run, name)[0] for name in COMPONENTS}
            before = {name: _cpu(process) for name, process in known.items()}
            Event().wait(OBSERVED_S)
            for name, process in known.items():
                cpu[name][count] = (_cpu(process) - before[name]) / OBSERVED_S * 1_000
                memory[name][count] = process.memory_full_info().pss / 1e6
            answer[count], _ = _asked(fleet.metric, known["keda-operator"])

    _on_a_cluster(measure)
    how = (
        "Each ScaledObject has a Deployment of one pod that is not scheduled and a kafka trigger on a topic of 24 partitions; "
        f"{TOGETHER} are in a namespace. pollingInterval 30 s, HPA sync 15 s, KEDA's own limits of requests: as shipped. "
        "*To be ready* is the time from the first request until each added one has an HPA that has read its metric, "
        f"while those of the column before are there. CPU is over {OBSERVED_S:g} s at rest."
    )
    costs = [
        Growth("to be ready", "s", ready),
        Growth("the metric of one, an answer", "ms", answer),
        *(Growth(f"CPU of {name}", "ms a second", values) for name, values in cpu.items()),
        *(Growth(f"memory of {name}, PSS", "MB", values) for name, values in memory.items()),
    ]
    return growth.part("ScaledObjects", how, costs)


class _Fleet:
    """ScaledObjects by number, each with a Deployment of one pod that is never scheduled."""

    def __init__(self, cluster: binary.Binary, group: Topic) -> None:
        self._cluster, self._trigger, self._api = cluster, group.trigger(), cluster.api()
        self._scaled, self._spaces = keda.scaled_objects(self._api), set[str]()

    def add(self, there: int, count: int) -> None:
        """Create those from number ``there`` up to ``count``, and wait until an HPA has read the metric of every one."""
        for number in range(there, count):
            name, space = f"consumer-{number}", _space(number)
            if space not in self._spaces:
                apply.create_namespace(self._api, space)
                self._spaces.add(space)
            deployments: Any = client.AppsV1Api(self._api)
            deployments.create_namespaced_deployment(space, deployment(name, 1))
            spec = {"scaleTargetRef": {"name": name}, "minReplicaCount": 1, "maxReplicaCount": 10, "triggers": [self._trigger]}
            body = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec}
            self._scaled.create(body=body, namespace=space)
        until(
            lambda: self._read() >= count,
            DEADLINE_S,
            f"{count} HPAs that have read their metric",
            self._cluster.check,
            every_s=1,
        )

    def metric(self) -> object:
        """The metric of the first one, as an HPA asks for it."""
        group = ("external.metrics.k8s.io", "v1beta1", _space(0), f"s0-kafka-{self._trigger['metadata']['topic']}")
        return client.CustomObjectsApi(self._api).list_namespaced_custom_object(
            *group, label_selector="scaledobject.keda.sh/name=consumer-0"
        )

    def _read(self) -> int:
        """How many HPAs have a metric."""
        every: list[Any] = client.AutoscalingV2Api(self._api).list_horizontal_pod_autoscaler_for_all_namespaces().items
        return sum(bool(one.status and one.status.current_metrics) for one in every)


def _space(number: int) -> str:
    return f"growth-{number // TOGETHER}"


def messages() -> Part:
    """Settling a topic of so many events against a bare Spark count of it."""
    found: dict[int, ledger.Settled] = {}
    started, run, guard = runs.start(broker.start)
    try:
        for count in MESSAGES:
            found[count] = ledger.settled(started.bootstrap, count)
    finally:
        started.stop()
        processes.clear(run)
        processes.dismiss(guard)
    figures: dict[str, tuple[str, Callable[[ledger.Settled], float]]] = {
        "the ledger": ("s", lambda one: one.whole_s),
        "a bare Spark count": ("s", lambda one: one.bare_s),
        "the ledger, CPU": ("s", lambda one: one.whole_cpu),
        "a bare Spark count, CPU": ("s", lambda one: one.bare_cpu),
        "memory of the JVM at most": ("MB", lambda one: one.jvm_mb),
        "memory of Python at most": ("MB", lambda one: one.python_mb),
    }
    costs = [
        Growth(what, unit, {count: figure(one) for count, one in found.items()}) for what, (unit, figure) in figures.items()
    ]
    how = (
        "Events of 256 B on 24 partitions, each processed once by its receipts: ingested, reconciled and rolled up by Spark "
        "on two cores."
    )
    return growth.part("messages", how, costs)


def _asked(question: Callable[[], object], process: psutil.Process) -> tuple[float, float]:
    """The median milliseconds of an answer, and the CPU milliseconds of ``process`` for one; what connects is not counted."""
    with suppress(ApiException):
        question()
    taken, before = [], _cpu(process)
    for _ in range(ASKED):
        begun = time.perf_counter()
        question()
        taken.append((time.perf_counter() - begun) * 1e3)
    return median(taken), (_cpu(process) - before) / ASKED * 1e3


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def _on_a_cluster(work: Callable[[binary.Binary, str], None]) -> None:
    """Do ``work`` on a cluster at real time and a broker that takes any client, and end both."""
    cluster = binary.up(scale.load("real"))
    try:
        started, run, guard = runs.start(broker.start)
        try:
            work(cluster, started.bootstrap)
        finally:
            started.stop()
            processes.clear(run)
            processes.dismiss(guard)
    finally:
        cluster.down()


PARTS: dict[str, Callable[[], Part]] = {
    "partitions": partitions,
    "pods": pods,
    "ScaledObjects": scaled_objects,
    "messages": messages,
}
