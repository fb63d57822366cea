"""Measures how cost grows, on real parts: with partitions, pods, ScaledObjects and messages (:mod:`benchmarks.growth`)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from statistics import median
from threading import Event
from typing import Any

import psutil
from kubernetes import client
from kubernetes.client.exceptions import ApiException
from prometheus_api_client import PrometheusConnect

from benchmarks import growth, ledger, starts
from benchmarks.growth import Growth, Part
from lab.cluster import apply, binary, broker, keda
from lab.host import processes, runs
from lab.inputs import scale
from lab.kafka.lag import LagReader
from lab.model import hpa_log
from lab.wait import reporting, until
from tests.defects.target import OUTCOMES, Target, deployment
from tests.defects.topic import Topic

PARTITIONS = (24, 100, 300, 1_000)
PODS = (10, 50, 100, 200)
SCALED_OBJECTS = (1, 10, 100, 300, 500)
MORE_SCALED_OBJECTS = (100, 300, 1_000)
RAISED = ("--kube-api-qps=50", "--kube-api-burst=100")  # kedacore/keda#7615
MESSAGES = (100_000, 1_000_000, 10_000_000, 20_000_000, 100_000_000)
ASKED = 50  # questions a size, of which the median is kept
OBSERVED_S = 60.0  # two polls of KEDA and four syncs of the HPA, as shipped
READ_EVERY_S = 2.0  # a list of all HPAs
TOGETHER = 100  # ScaledObjects in a namespace
DEADLINE_S = 1_800.0
COMPONENTS = ("keda-operator", "keda-adapter", "kube-apiserver", "kube-controller-manager", "etcd")


def main(which: Iterable[str]) -> None:
    """Measure these parts, each kept as soon as a size is measured, and print the tables of all that are kept."""
    for name in which:
        with reporting(partial("growth with {}".format, name), every_s=30):
            for measured in PARTS[name]():
                growth.keep(measured)
                sizes = sorted(measured.costs[0].values)
                print(f"{name}, {', '.join(f'{size:,}' for size in sizes)}: {growth.NUMBERS.name}", flush=True)
    print(growth.tables(growth.read()))


def partitions() -> Iterator[Part]:
    """One answer about a group's lag: the lab's reader, and KEDA's metric as an HPA asks for it."""
    how = (
        "A group that is one message behind on each partition of one topic. "
        f"The median of {ASKED} answers and the CPU of one, once the connection is there. "
        "The lab's reader is what its exporter and the persistent-lag scaler ask with. "
        "KEDA's metric is asked through kube-apiserver and the adapter, as the HPA asks."
    )
    costs = (
        Growth("the lab's reader, an answer", "ms", {}),
        Growth("the lab's reader, CPU", "ms", {}),
        Growth("KEDA's kafka trigger, an answer", "ms", {}),
        Growth("KEDA's operator, CPU", "ms", {}),
    )
    with _on_a_cluster() as (cluster, bootstrap):
        for count in PARTITIONS:
            group = Topic(bootstrap, count)
            group.produce(count)
            reader, own = LagReader(bootstrap, group.name, group.name), psutil.Process()
            read = _asked(reader.read, own)
            target = Target(cluster, group.trigger(), maxReplicaCount=1, pollingInterval=3_600)
            target.ready()
            operator = processes.remembered(cluster.run, "keda-operator")[0]
            asked = _asked(target.metric, operator)
            target.delete()
            _put(costs, count, *read, *asked)
            yield growth.part("partitions", how, costs)


def pods() -> Iterator[Part]:
    """A Deployment's step from 0 to so many consumers, each with a partition of one topic."""
    how = (
        f"A Deployment of consumers is scaled from 0 at once, on a topic of {max(PODS)} partitions. "
        "Each pod is a process of the lab's node, forked from its zygote."
    )
    costs = (
        Growth("created to subscribed, the last", "s", {}),
        Growth("created to a partition, the last", "s", {}),
        Growth("CPU of the pods until all have subscribed", "s", {}),
        Growth("CPU of the machine until all have subscribed", "s", {}),
        Growth("memory of all, PSS", "MB", {}),
    )
    with _on_a_cluster() as (cluster, _):
        for number, count in enumerate(PODS):
            one = starts.start(cluster, "forked", count, max(PODS), number)
            _put(costs, count, one.subscribed_s, one.owning_s, one.cpu_s, one.busy_s, one.memory_mb)
            yield growth.part("pods", how, costs)


def scaled_objects() -> Iterator[Part]:
    """What ScaledObjects cost at rest, with KEDA as it is shipped: 20 requests a second."""
    return _measure_fleet("ScaledObjects", SCALED_OBJECTS, (), "KEDA's own limits of requests, 20 a second: as shipped.")


def more_scaled_objects() -> Iterator[Part]:
    """The same with the limit that a closed pull request of KEDA's proposed, and more of them."""
    how = f"KEDA's operator has {' and '.join(RAISED)}, where 20 and 30 are shipped; the rest is as shipped."
    return _measure_fleet("ScaledObjects, KEDA's limit raised", MORE_SCALED_OBJECTS, RAISED, how)


def _measure_fleet(of: str, sizes: Iterable[int], keda_flags: Sequence[str], limits: str) -> Iterator[Part]:
    """What KEDA and the control plane pay for so many ScaledObjects at rest, and how often each HPA is synced then."""
    how = (
        "Each ScaledObject has a Deployment of one pod that is not scheduled and a kafka trigger, which is active, on a topic "
        f"of 24 partitions; {TOGETHER} are in a namespace. pollingInterval 30 s, HPA sync 15 s with five workers. {limits} "
        "kube-controller-manager may make 200 requests a second, where 20 are shipped. "
        "*To be ready* is the time from the first request until each added one has an HPA that has read its metric, "
        f"while those of the column before are there. The rest is over {OBSERVED_S:g} s after that. *Between syncs* is of one "
        "HPA, by the syncs of all in the controller's log."
    )
    costs = (
        Growth("to be ready", "s", {}),
        Growth("the machine meanwhile", "cores", {}),
        Growth("the metric of one, an answer", "ms", {}),
        Growth("between syncs", "s", {}),
        Growth("KEDA's requests to kube-apiserver", "a second", {}),
        *(Growth(f"CPU of {name}", "ms a second", {}) for name in COMPONENTS),
        *(Growth(f"memory of {name}, PSS", "MB", {}) for name in COMPONENTS),
    )
    with _on_a_cluster(keda_flags) as (cluster, bootstrap):
        group = Topic(bootstrap, 24)
        group.produce(5)
        fleet, there = _Fleet(cluster, group), 0
        asked = PrometheusConnect(url=cluster.prometheus_url)
        for count in sizes:
            begun, busy = time.monotonic(), starts.busy()
            fleet.add(there, count)
            ready_s, there = time.monotonic() - begun, count
            cores = (starts.busy() - busy) / ready_s
            known = [processes.remembered(cluster.run, name)[0] for name in COMPONENTS]
            before, since = [_cpu(one) for one in known], time.time()
            Event().wait(OBSERVED_S)
            cpu = [(_cpu(one) - then) / OBSERVED_S * 1_000 for one, then in zip(known, before, strict=True)]
            lines = hpa_log.parse(cluster.controller_log(), since)
            synced = sum(line.words in OUTCOMES and since <= line.t < since + OBSERVED_S for line in lines)
            (requests,) = asked.custom_query(f'sum(rate(rest_client_requests_total{{job="keda"}}[{OBSERVED_S:g}s]))')
            answer_ms, _ = _asked(fleet.metric, known[0])
            memory = [one.memory_full_info().pss / 1e6 for one in known]
            at_rest = (answer_ms, OBSERVED_S * count / synced, float(requests["value"][1]))
            _put(costs, count, ready_s, cores, *at_rest, *cpu, *memory)
            yield growth.part(of, how, costs)


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
            every_s=READ_EVERY_S,
        )

    def metric(self) -> object:
        """The metric of the first one, as an HPA asks for it."""
        group = ("external.metrics.k8s.io", "v1beta1", _space(0), f"s0-kafka-{self._trigger['metadata']['topic']}")
        return client.CustomObjectsApi(self._api).list_namespaced_custom_object(
            *group, label_selector="scaledobject.keda.sh/name=consumer-0"
        )

    def _read(self) -> int:
        """How many HPAs have a metric."""
        every: Any = client.CustomObjectsApi(self._api).list_cluster_custom_object(
            "autoscaling", "v2", "horizontalpodautoscalers", resource_version="0"
        )
        return sum(bool(one.get("status", {}).get("currentMetrics")) for one in every["items"])


def _space(number: int) -> str:
    return f"growth-{number // TOGETHER}"


def messages() -> Iterator[Part]:
    """Settling a topic of so many events against a bare Spark count of it."""
    how = (
        "Events of 256 B on 24 partitions, each processed once by its receipts: ingested, reconciled and rolled up by Spark "
        f"on two cores. From {ledger.LONG:,} events on the JVM has its second compiler too, as in a trial of so many. "
        "The count and the ledger have a new process and a new JVM each. "
        "The bare count has the connector's own settings: it waits for half a second at the end of each partition."
    )
    costs = (
        Growth("the ledger", "s", {}),
        Growth("a bare Spark count", "s", {}),
        Growth("the ledger over a bare count", "x", {}),
        Growth("the ledger, CPU", "s", {}),
        Growth("a bare Spark count, CPU", "s", {}),
        Growth("the ledger over a bare count, CPU", "x", {}),
        Growth("memory of the JVM at most", "MB", {}),
        Growth("memory of Python at most", "MB", {}),
        Growth("the record, an event", "B", {}),
    )
    with _broker() as (bootstrap, run):
        for count in MESSAGES:
            with ledger.topics_of(bootstrap, count) as made:
                one = ledger.settled(bootstrap, made, count, run)
            wall = (one.whole_s, one.bare_s, one.whole_s / one.bare_s)
            cpu = (one.whole_cpu, one.bare_cpu, one.whole_cpu / one.bare_cpu)
            _put(costs, count, *wall, *cpu, one.jvm_mb, one.python_mb, one.record_b)
            yield growth.part("messages", how, costs)


def _put(costs: Iterable[Growth], size: int, *values: float) -> None:
    """Note the value of each cost, in their order, at ``size``."""
    for cost, value in zip(costs, values, strict=True):
        cost.values[size] = value


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


@contextmanager
def _on_a_cluster(keda_flags: Sequence[str] = ()) -> Iterator[tuple[binary.Binary, str]]:
    """A cluster at real time, and the address of a broker that takes any client; both end with the block."""
    cluster = binary.up(scale.load("real"), keda_flags)
    try:
        with _broker() as (bootstrap, _):
            yield cluster, bootstrap
    finally:
        cluster.down()


@contextmanager
def _broker() -> Iterator[tuple[str, Path]]:
    """The address of a broker that takes any client, and its run's folder; it ends with the block."""
    started, run, guard = runs.start(broker.start)
    try:
        yield started.bootstrap, run
    finally:
        started.stop()
        processes.clear(run)
        processes.dismiss(guard)


PARTS: dict[str, Callable[[], Iterator[Part]]] = {
    "partitions": partitions,
    "pods": pods,
    "ScaledObjects": scaled_objects,
    "more-ScaledObjects": more_scaled_objects,
    "messages": messages,
}
