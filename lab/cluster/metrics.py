"""metrics-server, kube-state-metrics and Prometheus, as local processes of a cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from lab import paths, yamlfile
from lab.cluster import apply
from lab.cluster.controlplane import START_DEADLINE_S, ControlPlane, delegating, rights
from lab.cluster.keda import register
from lab.host import processes
from lab.inputs.scale import METRIC_RESOLUTION_S
from lab.wait import until

NAMESPACE = "monitoring"
RESOURCE_METRICS = "v1beta1.metrics.k8s.io"
STATE_RESOURCES = "deployments,horizontalpodautoscalers,jobs,pods,replicasets"


def start_metrics_server(plane: ControlPlane) -> None:
    """Start metrics-server on the node's /metrics/resource and register the resource metrics API."""
    serving = plane.authority.issue("metrics-server", "metrics-server", hosts=("metrics-server.kube-system.svc",))
    port = processes.free_ports(1)[0]
    apply.objects(plane.api(), rights("metrics-server/metrics-server"))
    asking = plane.kubelet.issue("metrics-server", "metrics-server")
    plane.launch(
        "metrics-server",
        *delegating(plane.service_account("kube-system", "metrics-server")),
        f"--secure-port={port}", "--bind-address=127.0.0.1",
        f"--client-ca-file={plane.authority.cert}", f"--tls-cert-file={serving.cert}", f"--tls-private-key-file={serving.key}",
        "--kubelet-preferred-address-types=InternalIP", "--kubelet-use-node-status-port",
        f"--kubelet-certificate-authority={plane.authority.cert}",
        f"--kubelet-client-certificate={asking.cert}", f"--kubelet-client-key={asking.key}",
        f"--metric-resolution={METRIC_RESOLUTION_S}s",  # it must exceed the time-out of a request
        "--kubelet-request-timeout=5s",
    )  # fmt: skip
    register(plane, RESOURCE_METRICS, "metrics-server", "kube-system", port)


def start_prometheus(plane: ControlPlane, keda_port: int) -> str:
    """Start kube-state-metrics and Prometheus; returns Prometheus's URL once it is ready."""
    state, telemetry, port = processes.free_ports(3)
    apply.objects(plane.api(), [*rights("kube-state-metrics/kube-state-metrics"), *rights("prometheus/deployment")])
    plane.launch(
        "kube-state-metrics",
        f"--kubeconfig={plane.service_account(NAMESPACE, 'kube-state-metrics')}", f"--resources={STATE_RESOURCES}",
        "--host=127.0.0.1", f"--port={state}", "--telemetry-host=127.0.0.1", f"--telemetry-port={telemetry}",
    )  # fmt: skip
    settings = plane.run / "prometheus.yml"
    targets = {"kube-state-metrics": f"127.0.0.1:{state}", "keda": f"127.0.0.1:{keda_port}"}
    settings.write_text(prometheus_settings(targets, plane.service_account(NAMESPACE, "prometheus")))
    daemon = plane.launch(
        "prometheus",
        f"--config.file={settings}", f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn",
        f"--storage.tsdb.path={plane.run / 'prometheus'}", "--storage.tsdb.retention.time=2d",
        "--storage.tsdb.min-block-duration=10m",  # else three hours of samples stay in memory
        "--web.cors.origin=http://localhost",  # by default a page of any origin may read it
    )  # fmt: skip
    url = f"http://127.0.0.1:{port}"
    until(lambda: prometheus_ready(url), START_DEADLINE_S, "Prometheus's /-/ready", daemon.check)
    return url


def prometheus_settings(targets: Mapping[str, str], kubeconfig: Path | None = None) -> str:
    """``prometheus.yml`` with the addresses of the jobs in ``targets``; without ``kubeconfig`` for a pod in the cluster."""
    settings = yamlfile.read(paths.MANIFESTS / "prometheus" / "prometheus.yml")
    for job in settings["scrape_configs"]:
        if job["job_name"] in targets:
            job["static_configs"] = [{"targets": [targets[job["job_name"]]]}]
        for discovery in job.get("kubernetes_sd_configs", ()):
            if kubeconfig is not None:
                discovery["kubeconfig_file"] = str(kubeconfig)
    return yaml.safe_dump(settings, sort_keys=False)


def prometheus_ready(url: str) -> bool:
    """Whether the Prometheus at ``url`` answers queries."""
    return apply.answers(f"{url}/-/ready")
