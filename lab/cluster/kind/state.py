"""A run folder's data about a kind cluster: enough to use it again, and the two commands that reach it and end it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from kubernetes import client, config

from lab import wholefile
from lab.cluster import docker
from lab.cluster.images import catalog
from lab.cluster.kind import network
from lab.cluster.kind.settings import GRAFANA_PORT, KAFKA_PORT, MADE_HERE, PROMETHEUS_PORT, versions
from lab.errors import LabFault
from lab.host import mark, processes
from lab.spec.scale import Scale

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
    made: client.ApiClient = config.new_client_from_config(str(run / "kubeconfig"))
    return made


def leave_commands(run: Path, command: str) -> None:
    """Put ``kind``, on the lab's own network and logged, and ``end``, which takes the cluster down, into the run folder."""
    (run / "kind").write_text(
        f"#!/bin/sh\nexport KIND_EXPERIMENTAL_DOCKER_NETWORK={network.NAME} {mark.VARIABLE}='{run.resolve()}'\n"
        f"exec '{command}' \"$@\" 2>>'{run}/kind.log'\n"
    )
    (run / processes.END).write_text(f"#!/bin/sh\nexec '{sys.executable}' -m lab.cluster.kind.end '{run}'\n")
    for name in ("kind", processes.END):
        (run / name).chmod(0o700)


def kind(run: Path, *arguments: str) -> None:
    """Run the run folder's ``kind``. Raises :class:`LabFault` with its reason in one line."""
    result = subprocess.run([str(run / "kind"), *arguments], stdout=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise LabFault(f"kind {arguments[0]}: {reason(run)}")


def reason(run: Path) -> str:
    """Why the last ``kind`` of the run folder failed, in one line."""
    return docker.reason((run / "kind.log").read_text())
