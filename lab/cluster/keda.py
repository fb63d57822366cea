"""KEDA's operator and metrics adapter, as local processes of a cluster."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kubernetes import client

from lab import yamlfile
from lab.cluster import aggregated, apply, processes, wait_api
from lab.cluster.build import Built
from lab.cluster.controlplane import START_DEADLINE_S, ControlPlane

NAMESPACE = "keda"
EXTERNAL_METRICS = "v1beta1.external.metrics.k8s.io"


def start(plane: ControlPlane, built: Built) -> int:
    """Apply KEDA's CRDs, start operator and adapter, register the external metrics API; returns the operator's metrics port."""
    api = plane.api()
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}])
    define(api, built.keda_crds)
    folder = plane.run / "certs" / "keda"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(plane.authority.cert.read_bytes())
    plane.authority.issue("keda/tls", "keda-operator", hosts=("127.0.0.1", "localhost"))
    serving = plane.authority.issue("keda/adapter", "keda-adapter", hosts=(f"adapter.{NAMESPACE}.svc", "127.0.0.1"))
    metrics, health, service, adapter, adapter_metrics = processes.free_ports(5)
    env = dict(
        os.environ,
        POD_NAMESPACE=NAMESPACE,
        POD_NAME="keda-operator",
        WATCH_NAMESPACE="",
        KEDA_CLUSTER_OBJECT_NAMESPACE=NAMESPACE,
    )
    operator = processes.start(
        plane.run,
        "keda-operator",
        [
            built.binary("keda-operator"),
            f"--kubeconfig={plane.kubeconfig}",
            "--leader-elect=false",
            "--enable-cert-rotation=false",
            f"--cert-dir={folder}",
            f"--ca-dir={folder}",
            f"--metrics-bind-address=127.0.0.1:{metrics}",
            f"--health-probe-bind-address=127.0.0.1:{health}",
            f"--metrics-service-bind-address=127.0.0.1:{service}",
        ],
        env,
    )
    plane.daemons.append(operator)
    plane.daemons.append(
        processes.start(
            plane.run,
            "keda-adapter",
            [
                built.binary("keda-adapter"),
                f"--kubeconfig={plane.kubeconfig}",
                f"--lister-kubeconfig={plane.kubeconfig}",
                *plane.as_admin()[1:],
                f"--secure-port={adapter}",
                "--bind-address=127.0.0.1",
                f"--client-ca-file={plane.authority.cert}",
                f"--tls-cert-file={serving.cert}",
                f"--tls-private-key-file={serving.key}",
                f"--cert-dir={folder}",
                f"--metrics-service-address=127.0.0.1:{service}",
                # Its own /metrics takes a port but no address: the one listener of the lab that is not confined to loopback.
                f"--port={adapter_metrics}",
            ],
            env | {"POD_NAME": "keda-adapter"},
        )
    )
    register(plane, EXTERNAL_METRICS, "adapter", NAMESPACE, adapter)
    return metrics


def define(api: client.ApiClient, folder: Path) -> None:
    """Create the CustomResourceDefinitions in ``folder`` and wait until the apiserver serves them."""
    definitions: list[Any] = [yamlfile.read(file) for file in sorted(folder.glob("*.yaml"))]
    extensions = client.ApiextensionsV1Api(api)
    for definition in definitions:
        extensions.create_custom_resource_definition(definition)
    names = [definition["metadata"]["name"] for definition in definitions]
    wait_api.established(api, names, START_DEADLINE_S, lambda: None)


def register(plane: ControlPlane, name: str, service: str, namespace: str, port: int) -> None:
    """Let the apiserver reach an aggregated API that listens on loopback ``port``.

    A Service of type ExternalName carries the name its certificate must bear; the APIService names the process's own port.
    """
    outside = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    apply.objects(plane.api(), [outside, aggregated.api_service(name, service, namespace, port, plane.authority.cert)])
