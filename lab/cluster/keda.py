"""KEDA's operator, metrics adapter and admission webhooks, as local processes of a cluster."""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kubernetes import client
from kubernetes.client.exceptions import ApiException
from kubernetes.dynamic import Resource

from lab import yamlfile
from lab.cluster import apply
from lab.cluster.controlplane import START_DEADLINE_S, ControlPlane, delegating, rights
from lab.host import processes
from lab.wait import until

NAMESPACE = "keda"
EXTERNAL_METRICS = "v1beta1.external.metrics.k8s.io"
_REFUSED = 'admission webhook "vscaledobject.kb.io" denied the request: '


def start(plane: ControlPlane, flags: Sequence[str] = ()) -> int:
    """Apply KEDA's CRDs, start its processes, register metrics API and webhooks; returns the operator's metrics port."""
    api = plane.api()
    metrics, health, service, adapter, adapter_metrics, admission = processes.free_ports(6)
    configuration = on_loopback(yamlfile.read(plane.built.keda_admission), admission, plane.authority.cert)
    # Registered before the webhooks run, so that the apiserver asks them as soon as they do.
    apply.objects(api, [*rights("keda/keda"), *rights("keda/webhooks"), configuration])
    its = {name: plane.service_account(NAMESPACE, f"keda-{name}") for name in ("operator", "adapter", "webhooks")}
    define(api, plane.built.keda_crds)
    folder = plane.run / "certs" / "keda"
    folder.mkdir()
    (folder / "ca.crt").write_bytes(plane.authority.cert.read_bytes())
    plane.authority.issue("keda/tls", "keda-operator", hosts=("127.0.0.1", "localhost"))
    serving = plane.authority.issue("keda/adapter", "keda-adapter", hosts=(f"adapter.{NAMESPACE}.svc", "127.0.0.1"))
    env = os.environ | {"POD_NAME": "keda-operator", "POD_NAMESPACE": NAMESPACE}
    env |= {"WATCH_NAMESPACE": "", "KEDA_CLUSTER_OBJECT_NAMESPACE": NAMESPACE}
    plane.launch(
        "keda-webhooks",
        f"--kubeconfig={its['webhooks']}", f"--cert-dir={folder}",
        # A trial applies a Deployment and its ScaledObject at once: one missing from the cache must be fetched.
        "--cache-miss-to-direct-client=true",
        "--metrics-bind-address=0", "--health-probe-bind-address=0",
        f"--port={admission}",  # the webhooks take a port but no address, like the adapter's /metrics
        env=env | {"POD_NAME": "keda-admission-webhooks"},
    )  # fmt: skip
    plane.launch(
        "keda-operator",
        f"--kubeconfig={its['operator']}", "--leader-elect=false",
        "--enable-cert-rotation=false", f"--cert-dir={folder}", f"--ca-dir={folder}",
        f"--metrics-bind-address=127.0.0.1:{metrics}", f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--metrics-service-bind-address=127.0.0.1:{service}",
        *flags,
        env=env,
    )  # fmt: skip
    plane.launch(
        "keda-adapter",
        *delegating(its["adapter"]), f"--lister-kubeconfig={its['adapter']}",
        f"--secure-port={adapter}", "--bind-address=127.0.0.1", f"--cert-dir={folder}",
        f"--client-ca-file={plane.authority.cert}", f"--tls-cert-file={serving.cert}", f"--tls-private-key-file={serving.key}",
        f"--metrics-service-address=127.0.0.1:{service}",
        # Its own /metrics takes a port but no address. It and the webhooks are the lab's only listeners off loopback.
        f"--port={adapter_metrics}",
        env=env | {"POD_NAME": "keda-adapter"},
    )  # fmt: skip
    register(plane, EXTERNAL_METRICS, "adapter", NAMESPACE, adapter)
    return metrics


def admitting(plane: ControlPlane) -> None:
    """Wait until KEDA's webhooks refuse what KEDA refuses, and admit the rest: until then everything is admitted."""
    api = plane.api()
    until(lambda: refusal(api, _idle(1), NAMESPACE) is not None, START_DEADLINE_S, "KEDA's admission webhooks", plane.check)
    until(lambda: refusal(api, _idle(0), NAMESPACE) is None, START_DEADLINE_S, "their caches", plane.check)


def on_loopback(configuration: Mapping[str, Any], port: int, ca: Path) -> dict[str, Any]:
    """The same webhooks, served by a process on ``port`` with a certificate of ``ca``, in place of a Service's pods."""
    server = {"caBundle": base64.b64encode(ca.read_bytes()).decode()}
    webhooks = [
        {**webhook, "clientConfig": {"url": f"https://127.0.0.1:{port}{webhook['clientConfig']['service']['path']}", **server}}
        for webhook in configuration["webhooks"]
    ]
    return {**configuration, "webhooks": webhooks}


def scaled_objects(api: client.ApiClient) -> Resource:
    """KEDA's ScaledObjects as a resource of Kubernetes' dynamic client."""
    found: Resource = apply.dynamic_client(api).resources.get(api_version="keda.sh/v1alpha1", kind="ScaledObject")
    return found


def refusal(api: client.ApiClient, scaled: Mapping[str, Any], namespace: str) -> str | None:
    """The webhook's objection to creating ``scaled``, in a dry run, which skips the requests of a cpu trigger; None for none.

    Raises :class:`ApiException` where another refuses it, such as the apiserver's schema.
    """
    group, _, version = str(scaled["apiVersion"]).partition("/")
    body = {**scaled, "metadata": {**scaled["metadata"], "namespace": namespace}}
    objects = client.CustomObjectsApi(api)
    try:
        objects.create_namespaced_custom_object(group, version, namespace, "scaledobjects", body, dry_run="All")
    except ApiException as error:
        said = str(json.loads(error.body or "{}").get("message"))
        if not said.startswith(_REFUSED):
            raise
        return said.removeprefix(_REFUSED)
    return None


def _idle(replicas: int) -> dict[str, Any]:
    """A ScaledObject that is idle at ``replicas``, else at least at 1. KEDA refuses it from 1 on; its schema does not."""
    trigger = {"type": "kafka", "metadata": {"topic": "none", "consumerGroup": "none", "bootstrapServers": "127.0.0.1:1"}}
    spec = {"scaleTargetRef": {"name": "none"}, "idleReplicaCount": replicas, "minReplicaCount": 1, "triggers": [trigger]}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": "none"}, "spec": spec}


def define(api: client.ApiClient, folder: Path) -> None:
    """Create the CustomResourceDefinitions in ``folder`` and wait until the apiserver serves them."""
    definitions: list[Any] = [yamlfile.read(file) for file in sorted(folder.glob("*.yaml"))]
    extensions = client.ApiextensionsV1Api(api)
    for definition in definitions:
        extensions.create_custom_resource_definition(definition)
    names = [definition["metadata"]["name"] for definition in definitions]
    apply.wait_for_definitions(api, names, START_DEADLINE_S, lambda: None)


def register(plane: ControlPlane, name: str, service: str, namespace: str, port: int) -> None:
    """Let the apiserver reach an aggregated API on loopback ``port``: an ExternalName Service has the certificate's name."""
    outside = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": service, "namespace": namespace},
        "spec": {"type": "ExternalName", "externalName": "localhost"},
    }
    apply.objects(plane.api(), [outside, apply.api_service(name, service, namespace, port, plane.authority.cert)])
