"""One protocol, three runtimes: a cluster of real components that trials run on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lab.errors import LabFault

if TYPE_CHECKING:  # a guard starts with every run, and needs none of these imports
    from kubernetes import client

    from lab.cluster.existing import Access
    from lab.cluster.fit import Fit
    from lab.cluster.quorum import Quorum
    from lab.host.processes import Daemon
    from lab.inputs.scale import Scale
    from lab.inputs.workload import Workload

log = logging.getLogger("lab.cluster")

_PYTEST_KINDS_OWN = "pytest-kind"  # its default name is not taken: it may be another's


class Cluster(Protocol):
    """A running cluster with Kubernetes, KEDA, Kafka and Prometheus, all answering."""

    spoiled: str  # why no further trial may run on it, as by a fault that could not be taken back; "" of one that is whole

    @property
    def runtime(self) -> str:
        """``binary``, ``kind`` or ``existing``."""

    @property
    def bootstrap(self) -> str:
        """Kafka's address, as seen from this process."""

    @property
    def pod_bootstrap(self) -> str:
        """Kafka's address, as seen from pods."""

    @property
    def consumers(self) -> tuple[str, str]:
        """Where Kafka's second listener says that it is, for a proxy, and where it is. Raises :class:`LabFault` without one."""

    @property
    def kafka_settings(self) -> Mapping[str, str]:
        """Settings of Kafka's client library with which a client logs in; none where Kafka asks for no login. Secret."""

    @property
    def topic(self) -> str:
        """The user's own topic, whose traffic is theirs; "" where a trial has topics of its own."""

    @property
    def prometheus_url(self) -> str:
        """Prometheus's address, as seen from this process."""

    @property
    def pod_prometheus_url(self) -> str:
        """Prometheus's address, as seen from pods."""

    @property
    def versions(self) -> dict[str, str]:
        """The version of every component."""

    @property
    def fit(self) -> Fit:
        """The changes that make a workload's manifest one of this runtime."""

    @property
    def processes(self) -> tuple[int, ...] | None:
        """Pids of this machine whose descendants are the cluster's, beside this process; None where it is elsewhere."""

    def api(self) -> client.ApiClient:
        """A new Kubernetes API client with full rights."""

    def controller_log(self) -> str:
        """The log of kube-controller-manager so far, with every sync of an HPA."""

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when a component has died."""

    def component(self, name: str) -> Daemon:
        """The component ``name``, which a trial may kill and stop. Raises :class:`LabFault` where the lab does not run it."""

    def brokers(self, count: int) -> Quorum:
        """Start ``count`` brokers of one trial, which ends them. Raises :class:`LabFault` where they don't come up."""

    def provide(self, workload: Workload) -> dict[str, str]:
        """Have on the nodes what the consumers of ``workload`` run; returns their client's version, by its name.

        Raises :class:`lab.errors.LabFault` where it can't be made, or is not there.
        """

    def down(self) -> None:
        """Stop everything and leave no process, container, port or folder."""

    def keep(self) -> None:
        """Leave the cluster running; ``elastic-lab down`` ends it."""


def up(
    runtime: str,
    scale: Scale,
    name: str = _PYTEST_KINDS_OWN,
    image: str | None = None,
    command: Path | None = None,
    access: Access | None = None,
) -> Cluster:
    """Start a cluster on ``runtime``, ``binary`` or ``kind``, or use the one of ``access``; returns when every API answers.

    ``name``, ``image`` and ``command`` are of kind. Raises :class:`lab.errors.LabFault`.
    """
    from lab.cluster import binary, existing, kind

    if access is not None:
        return existing.up(access)
    if runtime == "binary":
        return binary.up(scale)
    return kind.up(scale, kind.NAME if name == _PYTEST_KINDS_OWN else name, image, command)


class Rescaled:
    """One cluster at a time, which ``start`` starts at a scale."""

    def __init__(self, start: Callable[[Scale], Cluster]) -> None:
        self._start = start
        self._running: tuple[Scale, Cluster] | None = None

    def at(self, scale: Scale) -> Cluster:
        """The running cluster at ``scale``; one at another scale, that lost a component, or is spoiled, is ended first.

        Raises :class:`lab.errors.LabFault`.
        """
        if self._running is None or self._running[0] != scale or not _is_whole(self._running[1]):
            self.close()
            self._running = scale, self._start(scale)
        return self._running[1]

    def close(self, *, keep: bool = False) -> None:
        """End the cluster, if one runs; with ``keep`` leave it running."""
        running, self._running = self._running, None
        if running is not None:
            running[1].keep() if keep else running[1].down()


def _is_whole(cluster: Cluster) -> bool:
    """Whether no component has died, and nothing spoiled it: the trial in which that was is broken, and none after it is."""
    why = cluster.spoiled
    try:
        cluster.check()
    except LabFault as fault:
        why = str(fault)
    if why:
        log.warning("%s: a new cluster takes its place", why)
    return not why
