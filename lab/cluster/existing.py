"""A cluster that someone already runs, with their brokers, KEDA, metrics and Prometheus.

Nothing is installed, and nothing of theirs is changed. A trial has a namespace and topics of its own. They are created, never
taken over, and go with it. What such a cluster does not show, as the controller's log, is "no data" in the record.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import AdminClient
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic.exceptions import ResourceNotFoundError

from lab import paths, yamlfile
from lab.cluster import apply, fit, keda, metrics
from lab.cluster.quorum import Quorum
from lab.errors import LabFault, NoAnswer
from lab.host.processes import Daemon
from lab.inputs.workload import Workload
from lab.wait import until

log = logging.getLogger("lab.cluster")

ANSWER_S = 10.0
PROCESS_NODE = "process-node"  # the version that the lab's own node gives as its kubelet's: it runs commands, not images
ROLES = paths.MANIFESTS / "trials" / "rbac.yaml"


@dataclass(frozen=True)
class Access:
    """How a cluster is reached, as its user says.

    ``context`` is the kubeconfig's that may be used, named so that no other is used by mistake. ``bootstrap`` is Kafka's
    address as this process sees it, ``pod_bootstrap`` as pods do. ``kafka_settings`` hold a login and no names of files.
    ``prometheus`` is "" where none is asked, ``image`` None where nodes run the lab's programs as processes.
    ``topic`` is the user's own, with traffic of theirs, "" where a trial has its own.
    """

    kubeconfig: Path
    context: str
    bootstrap: str
    pod_bootstrap: str
    kafka_settings: Mapping[str, str]
    prometheus: str = ""
    image: str | None = None
    topic: str = ""


@dataclass
class Existing:
    """A cluster that is there; see :class:`lab.cluster.Cluster`."""

    access: Access
    versions: dict[str, str]
    runtime: str = "existing"
    processes: None = None  # its nodes may be other machines
    spoiled: str = ""

    def __post_init__(self) -> None:
        self.bootstrap, self.pod_bootstrap = self.access.bootstrap, self.access.pod_bootstrap
        self.kafka_settings, self.pod_prometheus_url = self.access.kafka_settings, self.access.prometheus
        self.topic = self.access.topic
        self.fit = fit.containers(self.access.image, {}) if self.access.image else fit.BINARY

    @property
    def prometheus_url(self) -> str:
        """Prometheus's address. Raises :class:`LabFault` where none is asked: the samples are then no data."""
        if not self.access.prometheus:
            raise LabFault("no Prometheus was named (--lab-prometheus)")
        return self.access.prometheus

    @property
    def consumers(self) -> tuple[str, str]:
        """None: faults are refused before a trial begins."""
        raise LabFault("no proxy before Kafka on an existing cluster, whose Kafka is someone's")

    def api(self) -> client.ApiClient:
        """A new API client with the rights of the context."""
        return connect(self.access)

    def controller_log(self) -> str:
        """None: it is not ours to read. Raises :class:`LabFault`, so that the record has the reason."""
        raise LabFault("an existing cluster does not show kube-controller-manager's log")

    def check(self) -> None:
        """Nothing of it is the lab's: what dies is seen by what it answers no more."""

    def component(self, name: str) -> Daemon:
        """None: faults of components are refused before a trial begins."""
        raise LabFault(f"{name} is someone's on an existing cluster")

    def brokers(self, count: int) -> Quorum:
        """None: what asks for them is refused before a trial begins."""
        raise LabFault(f"no {count} brokers of a trial's own on an existing cluster, whose Kafka is someone's")

    def provide(self, workload: Workload) -> dict[str, str]:
        """Nothing: nodes pull the images, and another client than Python's is refused before a trial begins."""
        return {}

    def down(self) -> None:
        """Leave it as it is: each trial has taken away what it made."""

    def keep(self) -> None:
        """Leave it as it is."""


def up(access: Access) -> Existing:
    """Ask for everything that a trial needs, before anything is created.

    Raises :class:`LabFault` with a line for each of Kubernetes, Kafka and Prometheus that lacks something.
    """
    missing: list[str] = []
    versions: dict[str, str] = {}
    with connect(access) as api:
        with _collect(missing):
            versions = _kubernetes(api, access)
            _rights(api, access)
            _keda(api)
            _nodes(api, access)
        for ask in (_kafka, _prometheus):
            with _collect(missing):
                ask(access)
        if missing:
            raise LabFault("\n".join(missing))
        _warn(api)
    log.info("the cluster of context %s is used as it is: %s", access.context, versions["kube-apiserver"])
    return Existing(access, versions)


@contextlib.contextmanager
def _collect(missing: list[str]) -> Iterator[None]:
    """A fault of what is done within is a line in ``missing``."""
    try:
        yield
    except LabFault as fault:
        missing.append(str(fault))


def connect(access: Access) -> client.ApiClient:
    """A client of the context. Raises :class:`LabFault` where the kubeconfig has none of that name."""
    try:
        return apply.connect(access.kubeconfig, access.context)
    except config.ConfigException as error:
        raise LabFault(f"{access.kubeconfig}: context {access.context!r}: {' '.join(str(error).split())}") from None


def _kubernetes(api: client.ApiClient, access: Access) -> dict[str, str]:
    try:
        found = client.VersionApi(api).get_code(_request_timeout=ANSWER_S)
    except (ApiException, NoAnswer) as error:
        reason = " ".join(str(error.reason if isinstance(error, ApiException) else error).split())[:200]
        raise LabFault(f"context {access.context}: its API server does not answer: {reason}") from None
    return {"kube-apiserver": str(found.git_version), "keda-operator": "unknown", "kafka": "unknown"}


def _keda(api: client.ApiClient) -> None:
    try:
        apply.dynamic_client(api).resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
    except ResourceNotFoundError:
        raise LabFault("the cluster has no KEDA: no ScaledObject of keda.sh/v1alpha1") from None
    apply.wait_for_api_service(api, keda.EXTERNAL_METRICS, ANSWER_S, lambda: None)


def _rights(api: client.ApiClient, access: Access) -> None:
    if denied := list(_denied(api)):
        raise LabFault(f"context {access.context} may not {', '.join(denied)}; manifests/trials/{ROLES.name} would let it")


def needs(name: str = "elastic-lab") -> Iterator[tuple[str, str, str]]:
    """What the ClusterRole ``name`` allows, as (API group, resource, verb): by default what every trial needs."""
    (role,) = (one for one in yamlfile.documents(ROLES) if (one["kind"], one["metadata"]["name"]) == ("ClusterRole", name))
    for rule in role["rules"]:
        yield from itertools.product(rule["apiGroups"], rule["resources"], rule["verbs"])


def _denied(api: client.ApiClient) -> Iterator[str]:
    """What the cluster denies of what every trial needs, in words."""
    reviews = client.AuthorizationV1Api(api)
    denied: dict[str, list[str]] = {}
    for group, resource, verb in needs():
        name, _, part = resource.partition("/")
        attributes = client.V1ResourceAttributes(verb=verb, group=group, resource=name, subresource=part)
        spec = client.V1SelfSubjectAccessReviewSpec(resource_attributes=attributes)
        answer = reviews.create_self_subject_access_review(client.V1SelfSubjectAccessReview(spec=spec)).status
        if not (answer and answer.allowed):
            denied.setdefault(resource, []).append(verb)
    return (f"{'/'.join(verbs)} {resource}" for resource, verbs in denied.items())


def _nodes(api: client.ApiClient, access: Access) -> None:
    """Without an image every node must be one of the lab's own, which runs processes."""
    if access.image is not None:
        return
    told = [node.status and node.status.node_info for node in client.CoreV1Api(api).list_node(_request_timeout=ANSWER_S).items]
    if not told or any(not one or one.kubelet_version != PROCESS_NODE for one in told):
        raise LabFault("--lab-pod-image: None is not allowed; allowed: an image of the lab's programs, which nodes can pull")


def _warn(api: client.ApiClient) -> None:
    """Name what an earlier session left that was killed; it may also be another's that runs now, so nothing is deleted."""
    left = client.CoreV1Api(api).list_namespace(label_selector=f"created-by={apply.MANAGER}", _request_timeout=ANSWER_S).items
    if left:
        names = ", ".join(str(one.metadata.name) for one in left if one.metadata)
        log.warning("namespaces of other sessions, running or killed: %s (kubectl delete namespace NAME)", names)


def _prometheus(access: Access) -> None:
    if address := access.prometheus:
        until(lambda: metrics.prometheus_ready(address), ANSWER_S, f"Prometheus's /-/ready at {address}")


def _kafka(access: Access) -> None:
    errors: list[KafkaError] = []
    own: dict[str, Any] = {"bootstrap.servers": access.bootstrap, "log_level": 2, "error_cb": errors.append}
    admin = AdminClient(own | dict(access.kafka_settings))
    try:
        admin.list_topics(timeout=ANSWER_S)
    except KafkaException as error:
        admin.poll(0)  # the reason comes by error_cb; the exception knows of a timeout only
        errors.append(error.args[0])
        # A login that was refused says more than a connection that was lost.
        refused = [one for one in errors if one.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL)]
        lost = [one for one in errors if one.code() != KafkaError._ALL_BROKERS_DOWN]
        reason = " ".join((refused or lost or errors)[0].str().split())
        raise LabFault(f"--lab-bootstrap-servers: Kafka does not answer at {access.bootstrap}: {reason}") from None
