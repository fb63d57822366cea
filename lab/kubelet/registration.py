"""The Node object and its Lease: made once, then kept fresh."""

from __future__ import annotations

import asyncio
import logging
import os
import platform
from datetime import UTC, datetime

import psutil

from lab.errors import LabFault
from lab.kubelet import backoff
from lab.kubelet.api import STRATEGIC, ApiError, ApiServer
from lab.kubelet.podspec import HOST_IP, Json
from lab.kubelet.status import timestamp

log = logging.getLogger("lab.node")

PODS = 250
LEASE_S = 40
RENEW_S = 10.0
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"


def node_object(name: str, port: int, since: datetime, now: datetime) -> Json:
    """The Node to register: this machine's cores and memory, on the loopback address."""
    labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": _architecture()}
    metadata = {"name": name, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": node_status(name, port, since, now)}


def node_status(name: str, port: int, since: datetime, now: datetime) -> Json:
    """The Node's status: ready since ``since``, under no pressure."""
    room = {"cpu": str(os.cpu_count() or 1), "memory": f"{psutil.virtual_memory().total // 1024}Ki", "pods": str(PODS)}
    conditions = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID"),
        ("Ready", "True", "KubeletReady"),
    ]
    beat = {"lastHeartbeatTime": timestamp(now), "lastTransitionTime": timestamp(since)}
    return {
        "capacity": room,
        "allocatable": room,
        "addresses": [{"type": "InternalIP", "address": HOST_IP}, {"type": "Hostname", "address": name}],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        "nodeInfo": {
            "architecture": _architecture(),
            "bootID": "",
            "containerRuntimeVersion": "process://1",
            "kernelVersion": platform.release(),
            "kubeletVersion": "process-node",
            "kubeProxyVersion": "",
            "machineID": "",
            "operatingSystem": "linux",
            "osImage": platform.platform(),
            "systemUUID": "",
        },
        "conditions": [{"type": kind, "status": status, "reason": reason, **beat} for kind, status, reason in conditions],
    }


def lease_object(name: str, now: datetime) -> Json:
    """The Lease whose renewal says that the node lives."""
    renewed = now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    spec = {"holderIdentity": name, "leaseDurationSeconds": LEASE_S, "renewTime": renewed}
    metadata = {"name": name, "namespace": "kube-node-lease"}
    return {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec}


async def register(api: ApiServer, name: str, port: int, since: datetime) -> None:
    """Create the Node, or bring an existing one up to date. It waits for an API server that is still starting."""
    body = node_object(name, port, since, datetime.now(UTC))
    await _ensure(api, "/api/v1/nodes", name, body)
    await api.request("PATCH", f"/api/v1/nodes/{name}/status", {"status": body["status"]}, content=STRATEGIC)


async def keep(api: ApiServer, name: str, port: int, since: datetime) -> None:
    """Renew the Lease and refresh the Node's status for ever. A Node or Lease that was deleted is created again."""
    failures = 0
    while True:
        try:
            await _ensure(api, _LEASES, name, lease_object(name, datetime.now(UTC)))
            await register(api, name, port, since)  # a controller that missed the lease has called the node unknown
            failures = 0
            await asyncio.sleep(RENEW_S)
        except LabFault as fault:  # at the cluster's start the namespace of leases appears a moment later
            if failures == 3:
                log.warning("the node's lease was not renewed: %s", fault)
            await asyncio.sleep(backoff.api_retry(failures))
            failures += 1


async def _ensure(api: ApiServer, collection: str, name: str, body: Json) -> None:
    """Change the object to ``body``, or create it."""
    try:
        await api.request("PATCH", f"{collection}/{name}", body, content="application/merge-patch+json")
    except ApiError as error:
        if error.status != 404:
            raise
        await api.request("POST", collection, body)


def _architecture() -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
