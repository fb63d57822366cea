"""Puts Kafka, KEDA, the metrics stack and Grafana on a kind cluster, and waits until all of it answers."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab import paths, yamlfile
from lab.cluster import apply, broker, keda, metrics
from lab.cluster.certs import Authority
from lab.cluster.fit import Fit
from lab.cluster.kind.state import CONTROL_PLANE, State, api, beside_control_plane, config_map, kafka_settings
from lab.components import build
from lab.errors import LabFault
from lab.wait import until

ADDRESSES = {"kube-state-metrics": "kube-state-metrics.monitoring.svc:8080", "keda": "keda-operator.keda.svc:8080"}
READY_DEADLINE_S = 180  # 30 s on a quiet machine, once the images are loaded


def install_components(run: Path, state: State, objects: list[dict[str, Any]], fit: Fit) -> None:
    """Apply CRDs, certificates, settings and ``objects``."""
    plane = api(run)
    _quiet_dns(plane)
    named = sorted({item["metadata"]["namespace"] for item in objects if "namespace" in item["metadata"]} - {"kube-system"})
    apply.objects(plane, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in named])
    known = build.built()
    keda.define(plane, known.keda_crds if known else build.source(build.KEDA_MODULE, "kubernetes") / "config" / "crd" / "bases")
    authority = Authority(run / "certs")
    hosts = ("keda-operator.keda.svc", "keda-operator.keda.svc.cluster.local", "keda-metrics-apiserver.keda.svc")
    settings = [
        _certificate(authority, "kedaorg-certs", keda.NAMESPACE, hosts),
        _certificate(authority, "metrics-server-certs", "kube-system", ("metrics-server.kube-system.svc",)),
        apply.api_service(keda.EXTERNAL_METRICS, "keda-metrics-apiserver", keda.NAMESPACE, 443, authority.cert),
        apply.api_service(metrics.RESOURCE_METRICS, "metrics-server", "kube-system", 443, authority.cert),
        config_map("prometheus", "monitoring", {"prometheus.yml": metrics.prometheus_settings(ADDRESSES)}),
        *kafka_settings(state.bootstrap),
    ]
    apply.objects(plane, [*settings, *(fit(beside_control_plane(item)) for item in objects)])


def _quiet_dns(api: client.ApiClient) -> None:
    """CoreDNS as one pod beside the control plane, without an upstream: the lab looks up nothing outside the cluster."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    corefile = (core.read_namespaced_config_map("coredns", "kube-system").data or {})["Corefile"]
    alone = re.sub(r"\n\s+forward [^{\n]*(\{[^}]*\})?", "", corefile)
    core.patch_namespaced_config_map("coredns", "kube-system", {"data": {"Corefile": alone}})
    body = {"spec": {"replicas": 1, "template": {"spec": {"nodeSelector": {CONTROL_PLANE: ""}}}}}
    apps.patch_namespaced_deployment("coredns", "kube-system", body)


def _certificate(authority: Authority, name: str, namespace: str, hosts: Sequence[str]) -> dict[str, Any]:
    pair = authority.issue(name, hosts[0], hosts=hosts)
    files = {"ca.crt": authority.cert, "tls.crt": pair.cert, "tls.key": pair.key}
    data = {key: base64.b64encode(file.read_bytes()).decode() for key, file in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def wait_ready(run: Path, state: State, objects: list[dict[str, Any]], check: Callable[[], None]) -> None:
    """Wait until every Deployment and StatefulSet is there, and every API answers."""
    plane = api(run)
    apps = client.AppsV1Api(plane)
    lacking: list[str] = []

    def there() -> bool:
        lacking[:] = _lacking(apps, objects)
        return not lacking

    try:
        until(there, READY_DEADLINE_S, "Kafka, KEDA and the metrics stack Available", check, every_s=0.5)
    except LabFault as fault:
        raise LabFault(f"{fault}: {', '.join(lacking) or 'none'} not there") from None
    for name in (keda.EXTERNAL_METRICS, metrics.RESOURCE_METRICS):
        apply.wait_for_api_service(plane, name, READY_DEADLINE_S, check)
    broker.wait_for(state.bootstrap, check)
    until(lambda: metrics.prometheus_ready(state.prometheus), READY_DEADLINE_S, "Prometheus's /-/ready", check)


def _lacking(apps: client.AppsV1Api, objects: list[dict[str, Any]]) -> list[str]:
    """The workloads whose replicas are not all Ready."""
    read: dict[str, Callable[[str, str], Any]] = {
        "Deployment": apps.read_namespaced_deployment_status,
        "StatefulSet": apps.read_namespaced_stateful_set_status,
    }
    wanted = [(item["kind"], item["metadata"]) for item in objects if item["kind"] in read]
    lacking = []
    for kind, named in [*wanted, ("Deployment", {"name": "coredns", "namespace": "kube-system"})]:
        try:
            found = read[kind](named["name"], named["namespace"])
        except ApiException:
            lacking.append(named["name"])
            continue
        old = found.status.observed_generation != found.metadata.generation
        if old or (found.status.ready_replicas or 0) < found.spec.replicas:
            lacking.append(named["name"])
    return lacking


FOLDER = paths.MANIFESTS / "grafana"
CONFIG_MAP = "grafana-dashboards"


def grafana_objects() -> list[dict[str, Any]]:
    """Everything to apply for Grafana with its dashboards, in order: the committed YAML, and the JSON as a ConfigMap."""
    committed = [item for file in sorted(FOLDER.glob("*.yaml")) for item in yamlfile.documents(file)]
    namespace = next(item["metadata"]["namespace"] for item in committed if item["kind"] == "Deployment")
    files = {file.name: file.read_text() for file in sorted((FOLDER / "dashboards").glob("*.json"))}
    boards = config_map(CONFIG_MAP, namespace, files)
    boards["metadata"]["labels"] = {"app": "grafana"}
    order = {"Namespace": 0, "ConfigMap": 1, "Deployment": 2, "Service": 3}
    return sorted([*committed, boards], key=lambda item: order[item["kind"]])
