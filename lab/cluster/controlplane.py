"""etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the process node, as local processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kubernetes import client, config

from lab.cluster import podnetwork, processes, wait_api
from lab.cluster.build import Built
from lab.cluster.certs import Authority, Pair
from lab.scale import Scale

NODE = "lab-node"
LAB_IMAGE = "elastic-lab"
CONTROLLERS = "kube-controller-manager"
START_DEADLINE_S = 60  # 5 s on a quiet machine; CI's cores may be taken by a build

# The controller-manager's defaults, s; the scale divides them like every other time.
CPU_INITIALIZATION_S = 300
READINESS_DELAY_S = 30
DOWNSCALE_STABILIZATION_S = 300

# A step of 48 pods at the stock 20 requests/s would wait on the client, not on what is measured.
CLIENT_RATE = {"kube-api-qps": "200", "kube-api-burst": "400"}

# Every sync of every HPA in the controller's own words, to the microsecond: what a decision is replayed from.
HPA_LOG = {"vmodule": "horizontal=4"}


def hpa_flags(scale: Scale) -> dict[str, str]:
    """The controller-manager's flags that the HPA's times are set with, compressed."""
    prefix = "horizontal-pod-autoscaler"
    return {
        f"{prefix}-sync-period": f"{scale.hpa_sync_s}s",
        f"{prefix}-downscale-stabilization": f"{scale.seconds(DOWNSCALE_STABILIZATION_S)}s",
        f"{prefix}-cpu-initialization-period": f"{scale.seconds(CPU_INITIALIZATION_S)}s",
        f"{prefix}-initial-readiness-delay": f"{scale.seconds(READINESS_DELAY_S)}s",
    }


@dataclass
class ControlPlane:
    """A running control plane. ``daemons`` are in order of start; they must be stopped in the reverse order."""

    run: Path
    server: str
    authority: Authority
    admin: Pair
    kubeconfig: Path
    daemons: list[processes.Daemon]

    def api(self) -> client.ApiClient:
        """A new API client with full rights."""
        api: client.ApiClient = config.new_client_from_config(str(self.kubeconfig))
        return api

    def controller_log(self) -> str:
        """What kube-controller-manager has logged so far."""
        return next(item.log for item in self.daemons if item.name == CONTROLLERS).read_text(errors="replace")

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when a component has died."""
        for daemon in self.daemons:
            daemon.check()

    def as_admin(self) -> list[str]:
        """The three kubeconfig flags that delegate authentication and authorization to the apiserver."""
        return [f"--{kind}kubeconfig={self.kubeconfig}" for kind in ("", "authentication-", "authorization-")]


def start(run: Path, built: Built, scale: Scale, pods: podnetwork.Claim) -> ControlPlane:
    """Start the control plane under ``run`` and wait until its API answers.

    ``pods`` is the network of the pods' own loopback addresses; the node holds it too.
    """
    certs = run / "certs"
    authority = Authority(certs)
    hosts = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default.svc")
    serving = authority.issue("apiserver", "kube-apiserver", hosts=hosts)
    admin = authority.issue("admin", "elastic-lab", "system:masters")
    kubelet_client = authority.issue("kubelet-client", "kube-apiserver-kubelet-client", "system:masters")
    front_proxy = authority.issue("front-proxy", "front-proxy-client")
    node_serving = authority.issue("node", NODE, hosts=("127.0.0.1",))
    signing = authority.service_account_key()
    etcd_client, etcd_peer, api_port, kcm, scheduler, node = processes.free_ports(6)
    server = f"https://127.0.0.1:{api_port}"
    kubeconfig = authority.kubeconfig(run / "kubeconfig", server, admin)
    plane = ControlPlane(run, server, authority, admin, kubeconfig, [])

    def launch(
        name: str, *command: str | Path, env: Mapping[str, str] | None = None, inherited: Sequence[int] = ()
    ) -> processes.Daemon:
        daemon = processes.start(run, name, command, env, inherited=inherited)
        plane.daemons.append(daemon)
        return daemon

    etcd_url, peer_url = f"http://127.0.0.1:{etcd_client}", f"http://127.0.0.1:{etcd_peer}"
    launch(
        "etcd",
        built.binary("etcd"),
        f"--data-dir={run / 'etcd'}",
        f"--listen-client-urls={etcd_url}",
        f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls={peer_url}",
        f"--initial-advertise-peer-urls={peer_url}",
        f"--initial-cluster=default={peer_url}",
        "--unsafe-no-fsync",
        "--log-level=error",
    )
    launch(
        "kube-apiserver",
        built.binary("kube-apiserver"),
        f"--etcd-servers={etcd_url}",
        f"--secure-port={api_port}",
        "--bind-address=127.0.0.1",
        "--endpoint-reconciler-type=none",
        f"--cert-dir={certs}",
        f"--tls-cert-file={serving.cert}",
        f"--tls-private-key-file={serving.key}",
        f"--client-ca-file={authority.cert}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing}",
        f"--service-account-signing-key-file={signing}",
        "--service-cluster-ip-range=127.255.0.0/16",
        "--authorization-mode=RBAC",
        "--allow-privileged",
        f"--requestheader-client-ca-file={authority.cert}",
        "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={front_proxy.cert}",
        f"--proxy-client-key-file={front_proxy.key}",
        f"--kubelet-certificate-authority={authority.cert}",
        f"--kubelet-client-certificate={kubelet_client.cert}",
        f"--kubelet-client-key={kubelet_client.key}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        "--disable-admission-plugins=TaintNodesByCondition",
    )
    wait_api.ready(plane.server, authority.cert, admin, START_DEADLINE_S, plane.check)
    launch(
        CONTROLLERS,
        built.binary(CONTROLLERS),
        *plane.as_admin(),
        f"--service-account-private-key-file={signing}",
        f"--root-ca-file={authority.cert}",
        f"--cluster-signing-cert-file={authority.cert}",
        f"--cluster-signing-key-file={authority.key}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={kcm}",
        *(f"--{name}={value}" for name, value in {**CLIENT_RATE, **HPA_LOG, **hpa_flags(scale)}.items()),
        env=os.environ | {"TZ": "UTC"},  # its log's lines say no time zone
    )
    launch(
        "kube-scheduler",
        built.binary("kube-scheduler"),
        *plane.as_admin(),
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={scheduler}",
        *(f"--{name}={value}" for name, value in CLIENT_RATE.items()),
    )
    launch(
        processes.NODE,
        sys.executable,
        "-m",
        "lab.cluster.node",
        f"--kubeconfig={kubeconfig}",
        f"--name={NODE}",
        f"--port={node}",
        f"--pod-network={pods.prefix}",
        f"--run={run}",
        f"--tls-cert={node_serving.cert}",
        f"--tls-key={node_serving.key}",
        f"--client-ca={authority.cert}",
        f"--image={LAB_IMAGE}={Path(sys.executable).parent}",
        inherited=(pods.fileno,),
    )
    return plane
