"""The kind runtime: the same components as containers of kind nodes, through pytest-kind.

Images are upstream's, unless ``elastic-lab images`` has made them here. Then no packet leaves the machine.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psutil
import yaml
from kubernetes import client
from pytest_kind import KindCluster

from lab.cluster import docker, fit
from lab.cluster.controlplane import CONTROLLERS
from lab.cluster.images import catalog, clients, make
from lab.cluster.kind import network, state
from lab.cluster.kind.install import grafana_objects, install_components, wait_ready
from lab.cluster.kind.state import State
from lab.cluster.quorum import Quorum
from lab.components import build
from lab.components import clients as programs
from lab.errors import LabFault
from lab.host import processes, runs
from lab.inputs.clients import IMAGE, PYTHON
from lab.inputs.scale import Scale
from lab.inputs.workload import Workload
from lab.wait import reporting

log = logging.getLogger("lab.cluster")

NAME = "elastic-lab"
ROLES = ("control-plane", "worker")


@dataclass
class Kind:
    """A running kind cluster; see :class:`lab.cluster.Cluster`."""

    run: Path
    state: State
    nodes: list[psutil.Process]
    watcher: subprocess.Popen[bytes]
    runtime: str = "kind"
    topic: str = ""
    spoiled: str = ""

    def __post_init__(self) -> None:
        self.bootstrap, self.pod_bootstrap = self.state.bootstrap, state.POD_BOOTSTRAP
        self.prometheus_url, self.pod_prometheus_url = self.state.prometheus, state.POD_PROMETHEUS
        self.kafka_settings: dict[str, str] = {}  # the Kafka in containers asks for no login
        self.versions = self.state.versions
        self.fit = fit.containers(self.state.pods, self.state.images, shared=True)
        self._given = set[str]()
        self.processes = tuple(node.pid for node in self.nodes)  # all of a node's containers descend from it

    @property
    def consumers(self) -> tuple[str, str]:
        """None: faults are refused before a trial begins."""
        raise LabFault("no proxy before Kafka on kind, whose Kafka is one container")

    def api(self) -> client.ApiClient:
        """A new API client with full rights."""
        return state.api(self.run)

    def controller_log(self) -> str:
        """The log of kube-controller-manager so far."""
        with self.api() as reached:
            pod = f"{CONTROLLERS}-{self.state.name}-{ROLES[0]}"
            return str(client.CoreV1Api(reached).read_namespaced_pod_log(pod, "kube-system"))

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when a node has died."""
        if not all(node.is_running() for node in self.nodes):
            raise LabFault(f"a node of the kind cluster {self.state.name} is gone")

    def component(self, name: str) -> processes.Daemon:
        """None: faults of components are refused before a trial begins."""
        raise LabFault(f"{name} is not a process of the lab's on kind")

    def brokers(self, count: int) -> Quorum:
        """None: what asks for them is refused before a trial begins."""
        raise LabFault(f"no {count} brokers of a trial's own on kind, whose Kafka is one container")

    def provide(self, workload: Workload) -> dict[str, str]:
        """Load the image of the client of ``workload``, or of a user's own consumer; see :class:`lab.cluster.Cluster`.

        An image of their own that this machine lacks is for the nodes to pull, where they may.
        """
        if workload.own:
            if docker.images([workload.image]):
                self._give(workload.image)
            elif self.state.closed:
                cure = "build it here, or use --cluster existing: no packet of a cluster of images made here leaves the machine"
                raise LabFault(f"image {workload.image} is not among this machine's (docker image ls): {cure}")
            return {}
        if workload.client == PYTHON:
            return {}
        versions, image = programs.ensure(workload.client), clients.make(workload.client, self.state.images)
        self._give(image)
        self.fit = replace(self.fit, clients={**self.fit.clients, f"{IMAGE}/{workload.client}": image})
        return versions

    def _give(self, image: str) -> None:
        """Load ``image`` into the node of the consumers, once in a session."""
        if image not in self._given:
            _load(self.run, self.state, "worker", image)
            self._given.add(image)

    def down(self) -> None:
        """Delete the cluster and its network."""
        begun = time.monotonic()
        processes.clear(self.run)
        processes.dismiss(self.watcher)
        log.info("cluster down in %.1f s", time.monotonic() - begun)

    def keep(self) -> None:
        """Leave the cluster for the next session or ``kubectl --kubeconfig``; ``elastic-lab down`` deletes it."""
        runs.keep(self.run, self.watcher)


def up(scale: Scale, name: str = NAME, node_image: str | None = None, kind_command: Path | None = None) -> Kind:
    """Use the kept cluster, or create one, by pytest-kind's options, and return when every API answers.

    Raises :class:`LabFault`, with nothing left behind: no daemon, permission or image, or the name is another cluster's.
    """
    docker.check()
    runs.sweep()
    objects = state.infrastructure()
    made = make.current(catalog.named(objects))
    found = docker.inspect(f"{name}-control-plane")
    if found is not None:
        return _again(name, found, scale, made, objects)
    if made is None:
        objects += grafana_objects()
    images = made or _pulled([*catalog.named(objects), catalog.NODE, catalog.PYTHON])
    pods = make.make_pods(images[catalog.PYTHON])
    command = kind_command or build.ensure(build.KIND_TOOL).binary("kind")
    run = runs.open_run()
    watcher = processes.guard(run)
    try:
        return _create(run, watcher, scale, State.planned(name, command, scale, pods, images), objects, node_image)
    except BaseException:
        processes.clear(run)
        raise


def _create(
    run: Path, watcher: subprocess.Popen[bytes], scale: Scale, planned: State, objects: list[Any], node_image: str | None
) -> Kind:
    """Create the ``planned`` cluster on a network of its own, load its images, and install ``objects``."""
    begun = time.monotonic()
    phase = "kind's node"
    with reporting(lambda: f"cluster: waiting for {phase}", every_s=10):
        planned.write(run)
        state.leave_commands(run, planned.kind)
        network.create()
        if planned.closed:
            network.close()
        told = state.cluster_settings(scale, planned.closed, planned.ports)
        (run / "kind.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
        image = node_image or planned.images[catalog.NODE]
        cluster = KindCluster(planned.name, run / "kubeconfig", image=image, kind_path=run / "kind")
        try:
            cluster.create(run / "kind.yaml")
        except subprocess.CalledProcessError:
            raise LabFault(f"kind could not create the cluster: {state.reason(run)}") from None
        created = replace(planned, node=_containers(planned.name)[0]["Id"])
        created.write(run)
        phase = "images to be loaded"
        if created.closed:
            network.connect(state.api(run))
        loaded = [created.images[part] for part in catalog.named(objects)]
        _load(run, created, "control-plane", *loaded)
        _load(run, created, "worker", created.pods)
        phase = "KEDA, Kafka and Prometheus"
        running = Kind(run, created, _nodes(created.name), watcher)
        install_components(run, created, objects, running.fit)
        wait_ready(run, created, objects, running.check)
        if created.closed:
            seen = network.packets()
            log.info("no packet of the cluster's left the machine while it came up; %d were turned back", seen.rejected)
            if seen.escaped:
                raise LabFault(f"{seen.escaped} packets of the cluster's left the machine: allowed: none")
    runs.note_prometheus(run, created.prometheus)
    log.info("cluster up in %.1f s (kind %s, images %s)", time.monotonic() - begun, created.name, created.versions["images"])
    if created.grafana:
        log.info("Grafana: %s", created.grafana)
    return running


def _again(
    name: str, container: dict[str, Any], scale: Scale, made: dict[str, str] | None, objects: list[dict[str, Any]]
) -> Kind:
    """The kept cluster ``name``. It must be the lab's, unused, and of this scale and these images."""
    every = ((run, old) for run in runs.all_runs() if (old := state.read(run)) is not None)
    kept = next(((run, old) for run, old in every if old.name == name and old.node in ("", container["Id"])), None)
    if kept is None:
        raise LabFault(
            f"--cluster-name: {name!r} is not allowed; allowed: a free name (kind has a cluster {name} that is not the lab's, "
            f"and it is left as it is)"
        )
    run, old = kept
    if not container["State"]["Running"]:
        raise LabFault(f"the kept cluster {name} is stopped; elastic-lab down deletes it")
    if old.scale != str(scale):
        raise LabFault(f"the kept cluster {name} is of scale {old.scale}; elastic-lab down deletes it")
    if made is not None and old.images != made:
        raise LabFault(f"the kept cluster {name} runs other images than are there now; elastic-lab down deletes it")
    pods = make.make_pods(old.images[catalog.PYTHON])
    runs.adopt(run)
    watcher = processes.guard(run)
    if pods != old.pods:
        old = replace(old, pods=pods)
        _load(run, old, "worker", pods)
        old.write(run)
    running = Kind(run, old, _nodes(name), watcher)
    wait_ready(run, old, objects, running.check)
    log.info("cluster %s used again", name)
    return running


def _containers(name: str) -> list[dict[str, Any]]:
    """The containers of a cluster's nodes, the control plane's first."""
    return [docker.inspect(f"{name}-{role}") or {} for role in ROLES]


def _nodes(name: str) -> list[psutil.Process]:
    """The first process of each node."""
    return [psutil.Process(container["State"]["Pid"]) for container in _containers(name)]


def _load(run: Path, cluster: State, role: str, *images: str) -> None:
    """Load images from the daemon into one node."""
    state.kind(run, "load", "docker-image", "--name", cluster.name, "--nodes", f"{cluster.name}-{role}", *images)


def _pulled(wanted: Sequence[str]) -> dict[str, str]:
    """Pull the ``wanted`` images that Docker does not have; each keeps its name."""
    there = docker.images(wanted)
    missing = [name for name in wanted if name not in there]
    for number, image in enumerate(missing, 1):
        label = f"pulling {image} ({number} of {len(missing)})"
        with reporting(lambda label=label: label):  # type: ignore[misc]
            try:
                docker.run("pull", "--quiet", image)
            except LabFault as fault:
                cure = "elastic-lab images makes all images without a registry"
                raise LabFault(f"image {image} is not here and can't be pulled ({fault}): {cure}") from None
    return {name: name for name in wanted}
