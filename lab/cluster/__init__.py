"""One protocol, three runtimes: a cluster of real components that trials run on."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:  # a guard starts with every run, and needs none of these imports
    from kubernetes import client

    from lab.cluster.existing import Access
    from lab.cluster.fit import Fit
    from lab.cluster.quorum import Quorum
    from lab.inputs.scale import Scale

_PYTEST_KINDS_OWN = "pytest-kind"  # its default name is not taken: it may be another's


class Cluster(Protocol):
    """A running cluster with Kubernetes, KEDA, Kafka and Prometheus, all answering."""

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
    def kafka_settings(self) -> Mapping[str, str]:
        """Settings of Kafka's client library with which a client logs in; none where Kafka asks for no login. Secret."""

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

    def brokers(self, count: int) -> Quorum:
        """Start ``count`` brokers of one trial, which ends them. Raises :class:`LabFault` where they don't come up."""

    def down(self) -> None:
        """Stop everything and leave no process, container, port or folder."""

    def keep(self) -> None:
        """Leave the cluster running; ``python -m lab down`` ends it."""


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
