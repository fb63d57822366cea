"""The binary runtime: every component real, as a local process on loopback; no Docker, no image."""

from __future__ import annotations

import logging
import platform
import subprocess
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil

from lab.cluster import apply, broker, controlplane, fit, keda, metrics, quorum
from lab.cluster.fit import Fit
from lab.components import build, bundle, clients, jars
from lab.errors import LabFault
from lab.host import processes, resources, runs
from lab.host.processes import Daemon
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.kafka import login
from lab.wait import reporting

log = logging.getLogger("lab.cluster")


@dataclass
class Binary:
    """A running binary cluster; see :class:`lab.cluster.Cluster`."""

    run: Path
    plane: controlplane.ControlPlane
    broker: broker.Broker
    prometheus_url: str
    versions: dict[str, str]
    watcher: subprocess.Popen[bytes]
    pods: resources.PodNetwork
    runtime: str = "binary"
    fit: Fit = fit.BINARY
    processes: tuple[int, ...] = ()  # no more: all descend from this one
    topic: str = ""
    spoiled: str = ""

    def __post_init__(self) -> None:
        # A pod is a process of this machine, so its addresses are the same.
        self.bootstrap = self.pod_bootstrap = self.broker.bootstrap
        self.pod_prometheus_url = self.prometheus_url
        self.kafka_settings, self.consumers = self.broker.settings, self.broker.consumers
        self.api, self.controller_log = self.plane.api, self.plane.controller_log

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when a component has died."""
        self.plane.check()
        self.broker.daemon.check()

    def component(self, name: str) -> Daemon:
        """The component of the control plane, of KEDA or of the metrics; see :class:`lab.cluster.Cluster`."""
        found = next((one for one in self.plane.daemons if one.name == name), None)
        if found is None:
            raise LabFault(f"there is no component {name}")
        return found

    def brokers(self, count: int) -> quorum.Quorum:
        """Start ``count`` brokers that take this run's login; see :class:`lab.cluster.Cluster`."""
        return quorum.start(self.run, count, self.kafka_settings)

    def provide(self, workload: Workload) -> dict[str, str]:
        """Build the program of the client of ``workload`` if it is missing; see :class:`lab.cluster.Cluster`."""
        return clients.ensure(workload.client)

    def down(self) -> None:
        """Stop everything in the reverse order of start, and remove the run folder."""
        begun = time.monotonic()
        # Dependents first, then the apiserver, then etcd. All at once would leave the apiserver holding its port.
        etcd, apiserver, *others = self.plane.daemons
        dependents = [*others, self.broker.daemon]
        alive = [psutil.Process(item.process.pid) for item in dependents if item.process.poll() is None]
        processes.end(alive, processes.NODE_GRACE_S)
        for item in (apiserver, etcd):
            processes.stop(self.run, item, grace_s=5)
        for item in dependents:
            item.process.wait(timeout=5)
        processes.clear(self.run)
        processes.dismiss(self.watcher)
        self.pods.holder.close()
        log.info("cluster down in %.1f s", time.monotonic() - begun)

    def keep(self) -> None:
        """Leave the cluster running for ``kubectl --kubeconfig``; ``elastic-lab down`` ends it."""
        runs.keep(self.run, self.watcher)
        log.info("Kafka: --bootstrap-servers %s --kafka-settings %s", self.bootstrap, broker.settings_file(self.run))
        self.pods.holder.close()


def prepare(origin: str | None = None) -> build.Built:
    """Take the components and jars that lack from ``origin`` (:func:`bundle.fetch`), then build and fetch what still lacks.

    Raises :class:`LabFault`.
    """
    bundle.fetch(origin)
    with ThreadPoolExecutor(1) as pool:
        fetched = pool.submit(lambda: (jars.resolve("kafka", jars.KAFKA), jars.spark_kafka()))
        built = build.ensure()
        fetched.result()
    return built


def up(scale: Scale, keda_flags: Sequence[str] = ()) -> Binary:
    """Build what is missing, clear leftovers, start everything, and return when every API answers.

    ``keda_flags`` are further flags of KEDA's operator. Raises :class:`LabFault`, with nothing left running.
    """
    built = prepare()
    runs.sweep()
    begun = time.monotonic()
    pods = resources.claim_pod_network()
    try:
        (plane, kafka, url), run, watcher = runs.start(lambda run: _start(run, built, scale, pods, keda_flags))
    except BaseException:
        pods.holder.close()
        raise
    versions = {**built.versions, "kafka": broker.VERSION, "python-of-pods": platform.python_version()}
    log.info("cluster up in %.1f s", time.monotonic() - begun)
    return Binary(run, plane, kafka, url, versions, watcher, pods)


def _start(
    run: Path, built: build.Built, scale: Scale, pods: resources.PodNetwork, keda_flags: Sequence[str]
) -> tuple[controlplane.ControlPlane, broker.Broker, str]:
    """Start every component in ``run``; returns control plane, broker and Prometheus's URL when all answer."""
    phase = "control plane"
    with ThreadPoolExecutor(1) as pool, reporting(lambda: f"cluster: waiting for {phase}", every_s=10):
        kafka = pool.submit(broker.start, run, login.new())
        plane = controlplane.start(run, built, scale, pods)
        phase = "KEDA"
        keda_port = keda.start(plane, keda_flags)
        metrics.start_metrics_server(plane)
        phase = "Prometheus"
        url = metrics.start_prometheus(plane, keda_port)
        runs.note_prometheus(run, url)
        phase = "Kafka"
        started = kafka.result()
        phase = "aggregated APIs"
        api = plane.api()
        for name in (keda.EXTERNAL_METRICS, metrics.RESOURCE_METRICS):
            apply.wait_for_api_service(api, name, controlplane.START_DEADLINE_S, plane.check)
        phase = "KEDA's webhooks"
        keda.admitting(plane)
    return plane, started, url
