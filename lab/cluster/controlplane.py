"""etcd, kube-apiserver, kube-controller-manager, kube-scheduler and the process node, as local processes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import client

from lab import paths, yamlfile
from lab.cluster import apply
from lab.cluster.certs import Authority, Pair
from lab.components import clients as programs
from lab.components.build import Built
from lab.host import processes, resources
from lab.inputs import clients
from lab.inputs.scale import Scale

NODE = "lab-node"
LAB_IMAGE = "elastic-lab"
FORK_MODULES = ("lab.programs.consumer",)  # started by dozens at once; the others, once a trial
CONTROLLERS = "kube-controller-manager"
RIGHTS = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
START_DEADLINE_S = 240  # 5 s on a quiet machine; CI's cores may be taken by a build, or by other clusters

# The controller-manager's defaults, s; the scale divides them like every other time.
CPU_INITIALIZATION_S = 300
READINESS_DELAY_S = 30
DOWNSCALE_STABILIZATION_S = 300

# At the stock 20 requests/s a step of 48 pods would wait for the client, and the trial would measure that.
CLIENT_RATE = {"kube-api-qps": "200", "kube-api-burst": "400"}

# A start of kube-apiserver makes more garbage than it keeps, and two cores have better to do than to look for it four times as
# often: a cluster's start costs a tenth less CPU. It keeps 150 MB more.
GO = {"GOGC": "400"}

# Without it the API server refuses an HPA with minReplicas 0. To the status of any other it adds a condition (ScaledToZero).
FEATURE_GATES = {"feature-gates": "HPAScaleToZero=true"}

# Every sync of every HPA in the controller's own words, to the microsecond: decisions are replayed from it.
HPA_LOG = {"vmodule": "horizontal=4"}


def hpa_flags(scale: Scale) -> dict[str, str]:
    """The controller-manager's flags for the HPA's times, compressed."""
    prefix = "horizontal-pod-autoscaler"
    return {
        f"{prefix}-sync-period": f"{scale.hpa_sync_s}s",
        f"{prefix}-downscale-stabilization": f"{scale.seconds(DOWNSCALE_STABILIZATION_S)}s",
        f"{prefix}-cpu-initialization-period": f"{scale.seconds(CPU_INITIALIZATION_S)}s",
        f"{prefix}-initial-readiness-delay": f"{scale.seconds(READINESS_DELAY_S)}s",
    }


def _flags(values: Mapping[str, object], prefix: str = "") -> list[str]:
    return [f"--{prefix}{name}={value}" for name, value in values.items()]


@dataclass
class ControlPlane:
    """A running control plane. ``daemons`` are in order of start; they must be stopped in the reverse order."""

    run: Path
    server: str
    authority: Authority
    kubelet: Authority
    admin: Pair
    kubeconfig: Path
    built: Built
    daemons: list[processes.Daemon]

    def api(self) -> client.ApiClient:
        """A new API client with full rights."""
        return apply.connect(self.kubeconfig)

    def controller_log(self) -> str:
        """The log of kube-controller-manager so far."""
        return next(item.log for item in self.daemons if item.name == CONTROLLERS).read_text(errors="replace")

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when a component has died."""
        for daemon in self.daemons:
            daemon.check()

    def launch(self, name: str, *flags: str, env: Mapping[str, str] | None = None) -> processes.Daemon:
        """Start the component ``name``, which ends before those that were started before it."""
        self.daemons.append(processes.start(self.run, name, [self.built.binary(name), *flags], env))
        return self.daemons[-1]

    def kubeconfig_of(self, user: str, *groups: str) -> Path:
        """A component's own kubeconfig: the component is ``user``, in ``groups``, and has the rights that RBAC gives."""
        name = user.replace(":", "-")
        file, pair = self.run / "certs" / f"{name}.kubeconfig", self.authority.issue(name, user, groups)
        return self.authority.kubeconfig(file, self.server, pair)

    def service_account(self, namespace: str, name: str) -> Path:
        """The kubeconfig of a component that runs as a service account where it is a pod, with the account's groups."""
        prefix = "system:serviceaccounts"
        return self.kubeconfig_of(f"system:serviceaccount:{namespace}:{name}", prefix, f"{prefix}:{namespace}")


def delegating(kubeconfig: Path) -> list[str]:
    """The three flags of a component that lets the API server authenticate and authorize its clients."""
    return [f"--{kind}kubeconfig={kubeconfig}" for kind in ("", "authentication-", "authorization-")]


def rights(part: str) -> list[dict[str, Any]]:
    """The namespace, the service accounts and the RBAC of ``manifests/<part>.yaml``, the same as on a kind cluster."""
    found = [item for item in yamlfile.documents(paths.MANIFESTS / f"{part}.yaml") if item["kind"] in RIGHTS]
    named = {item["metadata"]["namespace"] for item in found if item["kind"] == "ServiceAccount"} - {"kube-system"}
    namespaces = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in sorted(named)]
    return [*namespaces, *found]


def start(run: Path, built: Built, scale: Scale, pods: resources.PodNetwork) -> ControlPlane:
    """Start the control plane under ``run`` and wait until its API answers; the node holds the addresses of ``pods`` too."""
    certs = run / "certs"
    authority = Authority(certs)
    hosts = ("localhost", "127.0.0.1", "kubernetes", "kubernetes.default.svc")
    serving = authority.issue("apiserver", "kube-apiserver", hosts=hosts)
    admin = authority.issue("admin", "elastic-lab", ("system:masters",))
    node_serving = authority.issue("node", NODE, hosts=("127.0.0.1",))
    # As with kubeadm, etcd and the front proxy have authorities of their own, so a client certificate of the cluster opens
    # neither. The node's server has its own too, because it asks for no more than a certificate.
    store, proxies, kubelet = (Authority(certs / name) for name in ("etcd", "front-proxy", "kubelet"))
    front_proxy = proxies.issue("client", "front-proxy-client")
    kubelet_client = kubelet.issue("client", "kube-apiserver-kubelet-client")
    etcd_serving = store.issue("server", "etcd", hosts=("127.0.0.1",))
    etcd_of_apiserver = store.issue("client", "kube-apiserver")
    signing = authority.service_account_key()
    etcd_client, etcd_peer, api_port, kcm, scheduler, node = processes.free_ports(6)
    server = f"https://127.0.0.1:{api_port}"
    kubeconfig = authority.kubeconfig(run / "kubeconfig", server, admin)
    plane = ControlPlane(run, server, authority, kubelet, admin, kubeconfig, built, [])

    etcd_url, peer_url = f"https://127.0.0.1:{etcd_client}", f"https://127.0.0.1:{etcd_peer}"
    only_ours = {"client-cert-auth": "true", "trusted-ca-file": store.cert}
    only_ours |= {"cert-file": etcd_serving.cert, "key-file": etcd_serving.key}
    plane.launch(
        "etcd",
        f"--data-dir={run / 'etcd'}",
        f"--listen-client-urls={etcd_url}", f"--advertise-client-urls={etcd_url}",
        f"--listen-peer-urls={peer_url}", f"--initial-advertise-peer-urls={peer_url}", f"--initial-cluster=default={peer_url}",
        *_flags(only_ours), *_flags(only_ours, "peer-"),
        "--enable-grpc-gateway=false",
        f"--cors={etcd_url}",  # an empty value would allow every origin, like the default
        "--unsafe-no-fsync", "--log-level=error",
        "--auto-compaction-mode=periodic", "--auto-compaction-retention=5m",  # an API server that is killed often does none
        env=os.environ | GO,
    )  # fmt: skip
    plane.launch(
        "kube-apiserver",
        f"--etcd-servers={etcd_url}", f"--etcd-cafile={store.cert}",
        f"--etcd-certfile={etcd_of_apiserver.cert}", f"--etcd-keyfile={etcd_of_apiserver.key}",
        "--anonymous-auth=false", "--authorization-mode=Node,RBAC", f"--client-ca-file={authority.cert}",
        f"--secure-port={api_port}", "--bind-address=127.0.0.1", "--endpoint-reconciler-type=none",
        f"--cert-dir={certs}", f"--tls-cert-file={serving.cert}", f"--tls-private-key-file={serving.key}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={signing}", f"--service-account-signing-key-file={signing}",
        "--service-cluster-ip-range=127.255.0.0/16",
        "--enable-admission-plugins=NodeRestriction", "--disable-admission-plugins=TaintNodesByCondition", "--allow-privileged",
        f"--requestheader-client-ca-file={proxies.cert}", "--requestheader-allowed-names=front-proxy-client",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-", "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--proxy-client-cert-file={front_proxy.cert}", f"--proxy-client-key-file={front_proxy.key}",
        f"--kubelet-certificate-authority={authority.cert}", "--kubelet-preferred-address-types=InternalIP,Hostname",
        f"--kubelet-client-certificate={kubelet_client.cert}", f"--kubelet-client-key={kubelet_client.key}",
        *_flags(FEATURE_GATES),
        env=os.environ | GO,
    )  # fmt: skip
    apply.wait_for_apiserver(plane.server, authority.cert, admin, START_DEADLINE_S, plane.check)
    manager, scheduling = (plane.kubeconfig_of(f"system:{name}") for name in (CONTROLLERS, "kube-scheduler"))
    plane.launch(
        CONTROLLERS,
        *delegating(manager), "--use-service-account-credentials=true", f"--service-account-private-key-file={signing}",
        f"--root-ca-file={authority.cert}", "--leader-elect=false",
        "--bind-address=127.0.0.1", f"--secure-port={kcm}",
        *_flags(CLIENT_RATE | HPA_LOG | FEATURE_GATES | hpa_flags(scale)),
        env=os.environ | GO | {"TZ": "UTC"},  # the lines of its log name no time zone
    )  # fmt: skip
    plane.launch(
        "kube-scheduler",
        *delegating(scheduling), "--leader-elect=false",
        "--bind-address=127.0.0.1", f"--secure-port={scheduler}",
        *_flags(CLIENT_RATE),
    )  # fmt: skip
    command = [
        sys.executable, "-m", "lab.kubelet",
        f"--kubeconfig={plane.kubeconfig_of(f'system:node:{NODE}', 'system:nodes')}", f"--run={run}",
        f"--name={NODE}", f"--port={node}", f"--pod-network={pods.prefix}",
        f"--tls-cert={node_serving.cert}", f"--tls-key={node_serving.key}", f"--client-ca={kubelet.cert}",
        f"--image={LAB_IMAGE}={Path(sys.executable).parent}", f"--image={clients.IMAGE}={programs.folder()}",
        f"--fork={LAB_IMAGE}={','.join(FORK_MODULES)}",
    ]  # fmt: skip
    plane.daemons.append(processes.start(run, processes.NODE, command, inherited=(pods.holder.fileno(),)))
    return plane
