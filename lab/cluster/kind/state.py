"""A kind cluster as data: its configuration, Kafka's settings, versions, and the state in its run folder.

The state is enough to use a cluster again, and it names the commands that reach the cluster and end it.
"""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client

from lab import paths, wholefile, yamlfile
from lab.cluster import apply, broker, docker
from lab.cluster.controlplane import CLIENT_RATE, FEATURE_GATES, HPA_LOG, hpa_flags
from lab.cluster.images import catalog
from lab.cluster.kind import network
from lab.components import build, jars
from lab.errors import LabFault
from lab.host import identity, processes
from lab.host.command import run_command
from lab.inputs.scale import Scale

LONGEST_S = 1800.0  # of one command: a node starts in a minute on a quiet machine
MADE_HERE, PULLED = "made here", "pulled"
POD_BOOTSTRAP = "kafka-0.kafka.kafka.svc.cluster.local:9092"
POD_PROMETHEUS = "http://prometheus.monitoring.svc.cluster.local:9090"
# The node's ports; the host's are picked when the cluster is made.
PROMETHEUS_PORT, KAFKA_PORT, GRAFANA_PORT = 30090, 30092, 30030
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


def infrastructure() -> list[dict[str, Any]]:
    """Every object of Kafka, KEDA and the metrics stack, as ``manifests/`` has them."""
    metrics = ("metrics-server/metrics-server", "kube-state-metrics/kube-state-metrics", "prometheus/deployment")
    return [
        item
        for part in ("keda/keda", "kafka/broker", *metrics)
        for item in yamlfile.documents(paths.MANIFESTS / f"{part}.yaml")
    ]


def beside_control_plane(item: Mapping[str, Any]) -> dict[str, Any]:
    """``item`` with its pods, if it has any, on the control plane's node. The other node is the workload's."""
    placed = copy.deepcopy(dict(item))
    if list(catalog.containers(placed)):
        pod = placed["spec"]["template"]["spec"]
        pod["nodeSelector"] = {CONTROL_PLANE: ""}
        pod["tolerations"] = [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}]
    return placed


def cluster_settings(scale: Scale, made_here: bool, ports: dict[int, int]) -> dict[str, Any]:
    """``manifests/kind/cluster.yaml`` with the scale's HPA flags, the host's ``ports`` by the node's, and our image names."""
    settings = yamlfile.read(paths.MANIFESTS / "kind" / "cluster.yaml")
    settings["nodes"][0]["extraPortMappings"] = [
        {"listenAddress": "127.0.0.1", "hostPort": there, "containerPort": here, "protocol": "TCP"}
        for here, there in ports.items()
    ]
    own = {"enable-hostpath-provisioner": "true"}  # kind's: a patch replaces a list
    configuration: dict[str, Any] = {
        "kind": "ClusterConfiguration",
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "controllerManager": {"extraArgs": _arguments(own | CLIENT_RATE | HPA_LOG | FEATURE_GATES | hpa_flags(scale))},
        "apiServer": {"extraArgs": _arguments(FEATURE_GATES)},
        "scheduler": {"extraArgs": _arguments(CLIENT_RATE)},
        "etcd": {"local": {"dataDir": "/var/lib/etcd", "extraArgs": _arguments({"unsafe-no-fsync": "true"})}},
    }
    if made_here:
        configuration["imageRepository"] = catalog.OURS
        configuration["dns"] = {"imageTag": f"v{build.COREDNS}"}
        configuration["etcd"]["local"]["imageTag"] = build.ETCD
    settings["kubeadmConfigPatches"].append(yaml.safe_dump(configuration, sort_keys=False))
    return settings


def _arguments(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def kafka_settings(external: str) -> list[dict[str, Any]]:
    """The ConfigMaps of Kafka's pod; ``external`` is the address that clients on the host get."""
    listeners = {"INTERNAL": "0.0.0.0:9092", "EXTERNAL": "0.0.0.0:9094"}
    advertised = {"INTERNAL": POD_BOOTSTRAP, "EXTERNAL": external}
    files = {
        "server.properties": broker.properties("/data/log", listeners, advertised, "127.0.0.1:9093"),
        "log4j2.properties": jars.log4j("WARN"),
    }
    environment = {"CLUSTER_ID": broker.cluster_id(), "JVM": " ".join(broker.JVM)}
    return [config_map("kafka-settings", "kafka", files), config_map("kafka", "kafka", environment)]


def config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def versions(made_here: bool) -> dict[str, str]:
    """The version of every component, and the origin of the images; an upstream node's own etcd is not known here."""
    ours = {part.name: part.version for part in build.COMPONENTS if made_here or part.name != "etcd"}
    return ours | {"kafka": broker.VERSION, "kind": f"v{build.KIND}", "images": MADE_HERE if made_here else PULLED}


STATE = "kind.json"


@dataclass(frozen=True)
class State:
    """A kind cluster: its name, the kind command, the node's container, its scale, addresses and images."""

    name: str
    kind: str
    node: str
    scale: str
    ports: dict[int, int]
    pods: str
    images: dict[str, str]
    versions: dict[str, str]

    @classmethod
    def planned(cls, name: str, kind: Path, scale: Scale, pods: str, images: dict[str, str]) -> State:
        """A cluster to be created, on free ports of the host's loopback."""
        made_here = images[catalog.NODE] != catalog.NODE
        inside = [PROMETHEUS_PORT, KAFKA_PORT] + ([] if made_here else [GRAFANA_PORT])
        ports = dict(zip(inside, processes.free_ports(len(inside)), strict=True))
        python = docker.run("run", "--rm", "--network", "none", pods, "python", "--version").split()[-1]
        return cls(name, str(kind), "", str(scale), ports, pods, images, {**versions(made_here), "python-of-pods": python})

    @property
    def bootstrap(self) -> str:
        """Kafka's address on the host."""
        return f"127.0.0.1:{self.ports[KAFKA_PORT]}"

    @property
    def prometheus(self) -> str:
        """Prometheus's address on the host."""
        return f"http://127.0.0.1:{self.ports[PROMETHEUS_PORT]}"

    @property
    def grafana(self) -> str | None:
        """Grafana's address on the host; None where there is no image of it."""
        return f"http://127.0.0.1:{self.ports[GRAFANA_PORT]}" if GRAFANA_PORT in self.ports else None

    @property
    def closed(self) -> bool:
        """Whether no packet of it may leave the machine, as where its images were made here."""
        return self.versions["images"] == MADE_HERE

    def write(self, run: Path) -> None:
        """Keep it in the run folder."""
        wholefile.write(run / STATE, json.dumps(asdict(self)))


def read(run: Path) -> State | None:
    """The state in a run folder; None when it holds none that can be read, so that it is not a kind cluster's."""
    try:
        content = json.loads((run / STATE).read_text())
    except (OSError, ValueError):
        return None
    return State(**{**content, "ports": {int(inside): outside for inside, outside in content["ports"].items()}})


def api(run: Path) -> client.ApiClient:
    """A new API client with full rights."""
    return apply.connect(run / "kubeconfig")


def leave_commands(run: Path, command: str) -> None:
    """Put ``kind``, on the lab's own network and logged, and ``end``, which takes the cluster down, into the run folder."""
    (run / "kind").write_text(
        f"#!/bin/sh\nexport KIND_EXPERIMENTAL_DOCKER_NETWORK={network.NAME} {identity.VARIABLE}='{run.resolve()}'\n"
        f"exec '{command}' \"$@\" 2>>'{run}/kind.log'\n"
    )
    script = "import pathlib, sys; from lab.cluster.kind import state; sys.exit(state.end(pathlib.Path(sys.argv[1])))"
    (run / processes.END).write_text(f"#!/bin/sh\nexec '{sys.executable}' -c '{script}' '{run}'\n")
    for name in ("kind", processes.END):
        (run / name).chmod(0o700)


def kind(run: Path, *arguments: str) -> None:
    """Run the run folder's ``kind``. Raises :class:`LabFault` with its reason in one line."""
    result = run_command([run / "kind", *arguments], LONGEST_S, f"kind {arguments[0]}")
    if result.returncode != 0:
        raise LabFault(f"kind {arguments[0]}: {reason(run)}")


def reason(run: Path) -> str:
    """Why the last ``kind`` of the run folder failed, in one line."""
    return docker.reason((run / "kind.log").read_text())


def end(run: Path) -> int:
    """Take down the cluster that ``run`` stands for, with rules and network; 1, with the reason printed, if Docker refuses."""
    found = read(run)
    if found is None:
        return 0
    try:
        kind(run, "delete", "cluster", "--name", found.name, "--kubeconfig", str(run / "kubeconfig"))
        network.release(found.closed)
    except LabFault as fault:
        print(f"elastic-lab: {fault}", file=sys.stderr)
        return 1
    return 0
