"""A typed view of the parts of a pod that the process node acts on. Pure; a refused pod never gets here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Json = dict[str, Any]

HOST_IP = "127.0.0.1"


@dataclass(frozen=True)
class Images:
    """The image names that the node has, by prefix, and the folder of executables that each stands for."""

    folders: Mapping[str, Path]

    def folder(self, image: str) -> Path | None:
        """The folder of ``image``: ``elastic-lab`` stands for itself, ``elastic-lab:tag`` and ``elastic-lab/part:tag``."""
        fitting = [name for name in self.folders if image == name or image.startswith((f"{name}:", f"{name}/", f"{name}@"))]
        return self.folders[max(fitting, key=len)] if fitting else None


@dataclass(frozen=True)
class HttpGet:
    """GET that must answer 200 to 399; an empty host means the pod's address."""

    scheme: str
    host: str
    port: int
    path: str
    headers: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TcpSocket:
    """A connection that must open; an empty host means the pod's address."""

    host: str
    port: int


@dataclass(frozen=True)
class Exec:
    """A command that must end with code 0, run with the container's environment."""

    command: tuple[str, ...]


@dataclass(frozen=True)
class Probe:
    """A probe with the kubelet's defaults filled in."""

    action: HttpGet | TcpSocket | Exec
    initial_delay_s: float
    period_s: float
    timeout_s: float
    successes: int
    failures: int
    grace_s: float | None


@dataclass(frozen=True)
class ContainerSpec:
    """One container: its command, its environment, and its probes. ``env`` is kept as the API has it."""

    name: str
    image: str
    folder: Path
    command: tuple[str, ...]
    args: tuple[str, ...]
    working_dir: str
    env: tuple[Json, ...]
    env_from: tuple[Json, ...]
    readiness: Probe | None
    liveness: Probe | None


@dataclass(frozen=True)
class PodSpec:
    """One pod bound to this node."""

    uid: str
    namespace: str
    name: str
    restart_policy: str
    grace_s: float
    containers: tuple[ContainerSpec, ...]
    metadata: Json
    hostname: str
    node: str
    service_account: str


def parse(pod: Json, images: Images) -> PodSpec:
    """Read a pod in which :func:`lab.kubelet.refusal.refusals` found nothing."""
    metadata, spec = pod["metadata"], pod["spec"]
    return PodSpec(
        uid=metadata["uid"],
        namespace=metadata["namespace"],
        name=metadata["name"],
        restart_policy=spec.get("restartPolicy", "Always"),
        grace_s=float(spec.get("terminationGracePeriodSeconds", 30)),
        containers=tuple(_container(container, images) for container in spec["containers"]),
        metadata=metadata,
        hostname=spec.get("hostname") or metadata["name"],
        node=spec.get("nodeName", ""),
        service_account=spec.get("serviceAccountName", "default"),
    )


def _container(container: Json, images: Images) -> ContainerSpec:
    folder = images.folder(container["image"])
    assert folder is not None, "an unknown image is refused before it is parsed"
    return ContainerSpec(
        name=container["name"],
        image=container["image"],
        folder=folder,
        command=tuple(container["command"]),
        args=tuple(container.get("args") or ()),
        working_dir=container.get("workingDir") or "",
        env=tuple(container.get("env") or ()),
        env_from=tuple(container.get("envFrom") or ()),
        readiness=_probe(container.get("readinessProbe"), container),
        liveness=_probe(container.get("livenessProbe"), container),
    )


def _probe(probe: Json | None, container: Json) -> Probe | None:
    if not probe:
        return None
    action: HttpGet | TcpSocket | Exec
    if http := probe.get("httpGet"):
        path = http.get("path") or "/"
        action = HttpGet(
            scheme=(http.get("scheme") or "HTTP").lower(),
            host=http.get("host") or "",
            port=port_number(http["port"], container) or 0,
            path=path if path.startswith("/") else f"/{path}",
            headers=tuple((header["name"], header["value"]) for header in http.get("httpHeaders") or ()),
        )
    elif tcp := probe.get("tcpSocket"):
        action = TcpSocket(host=tcp.get("host") or "", port=port_number(tcp["port"], container) or 0)
    else:
        action = Exec(tuple(probe["exec"]["command"]))
    grace = probe.get("terminationGracePeriodSeconds")
    return Probe(
        action=action,
        initial_delay_s=float(probe.get("initialDelaySeconds") or 0),
        period_s=float(probe.get("periodSeconds") or 10),
        timeout_s=float(probe.get("timeoutSeconds") or 1),
        successes=int(probe.get("successThreshold") or 1),
        failures=int(probe.get("failureThreshold") or 3),
        grace_s=None if grace is None else float(grace),
    )


def port_number(port: int | str, container: Json) -> int | None:
    """The number of a port given by number or by name; None when the container has no port of that name."""
    if isinstance(port, int):
        return port
    if port.isdigit():
        return int(port)
    named = [entry["containerPort"] for entry in container.get("ports") or () if entry.get("name") == port]
    return int(named[0]) if named else None
