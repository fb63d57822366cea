"""The kind runtime: the same components as containers of one kind node, through pytest-kind.

Upstream's images are pulled, unless ``python -m lab images`` has made images here; then none is, and no packet leaves the
machine while the cluster stands. ``python -m lab.cluster.kind RUN`` takes down what the run folder RUN stands for.
"""

from __future__ import annotations

import base64
import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psutil
import yaml
from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from pytest_kind import KindCluster

from lab import jars, paths, yamlfile
from lab.cluster import aggregated, apply, build, docker, fit, keda, metrics, network, processes, runs, wait_api
from lab.cluster.certs import Authority
from lab.cluster.controlplane import CLIENT_RATE, hpa_flags
from lab.cluster.fit import Fit
from lab.cluster.images import catalog, make
from lab.errors import LabFault
from lab.kafka import broker
from lab.progress import reporting
from lab.scale import Scale
from lab.wait import until

log = logging.getLogger("lab.cluster")

NAME = "elastic-lab"
POD_BOOTSTRAP = "kafka-0.kafka.kafka.svc.cluster.local:9092"
PROMETHEUS_PORT, KAFKA_PORT = 30090, 30092  # the node's; the host's are picked when the cluster is made
PARTS = (
    "keda/keda",
    "kafka/broker",
    "metrics-server/metrics-server",
    "kube-state-metrics/kube-state-metrics",
    "prometheus/deployment",
)
NAMESPACES = (keda.NAMESPACE, "monitoring")
ADDRESSES = {"kube-state-metrics": "kube-state-metrics.monitoring.svc:8080", "keda": "keda-operator.keda.svc:8080"}
READY_DEADLINE_S = 180  # 40 s on a quiet machine, once the images are there
STATE = "kind.json"


@dataclass(frozen=True)
class State:
    """What a run folder knows of its kind cluster: enough to use it again, and to take it down."""

    name: str
    kind: str
    node: str
    scale: str
    bootstrap: str
    prometheus: str
    pods: str
    images: dict[str, str]
    versions: dict[str, str]

    def write(self, run: Path) -> None:
        """Keep it in the run folder."""
        (run / STATE).write_text(json.dumps(asdict(self)))


@dataclass
class Kind:
    """A running kind cluster; see :class:`lab.cluster.Cluster`."""

    run: Path
    state: State
    node: psutil.Process
    watcher: subprocess.Popen[bytes]
    runtime: str = "kind"

    @property
    def bootstrap(self) -> str:
        """Kafka's external listener, a port of the host's loopback."""
        return self.state.bootstrap

    @property
    def pod_bootstrap(self) -> str:
        """Kafka's internal listener."""
        return POD_BOOTSTRAP

    @property
    def prometheus_url(self) -> str:
        """Prometheus's address, a port of the host's loopback."""
        return self.state.prometheus

    @property
    def versions(self) -> dict[str, str]:
        """The version of every component, and where the images are from."""
        return self.state.versions

    @property
    def fit(self) -> Fit:
        """Images loaded into the node, and what a container may do."""
        return fit.kind(self.state.pods, self.state.images)

    def api(self) -> client.ApiClient:
        """A new API client with full rights."""
        return _api(self.run)

    def check(self) -> None:
        """Raise :class:`lab.errors.LabFault` when the node has died."""
        if not self.node.is_running():
            raise LabFault(f"the kind node {self.state.node[:12]} is gone")

    def down(self) -> None:
        """Delete the cluster and its network."""
        begun = time.monotonic()
        processes.clear(self.run)
        self._dismiss_guard()
        log.info("cluster down in %.1f s", time.monotonic() - begun)

    def keep(self) -> None:
        """Leave the cluster for the next session or ``kubectl --kubeconfig``; ``python -m lab down`` deletes it."""
        runs.keep(self.run)
        self.watcher.terminate()
        self._dismiss_guard()
        log.info("cluster kept: kubectl --kubeconfig %s; end it with python -m lab down", self.run / "kubeconfig")

    def _dismiss_guard(self) -> None:
        if self.watcher.stdin:
            self.watcher.stdin.close()
        self.watcher.wait(timeout=60)


def up(scale: Scale, name: str = NAME, node_image: str | None = None, kind_command: Path | None = None) -> Kind:
    """Use the kept cluster, or create one and return when every API answers.

    ``name``, ``node_image`` and ``kind_command`` are pytest-kind's options. Raises :class:`LabFault` in one line, with
    nothing left behind, when there is no daemon, no permission, no image, or a cluster of that name that is not ours.
    """
    docker.check()
    runs.sweep()
    objects = infrastructure()
    made = make.current(catalog.named(objects))
    command = kind_command or build.ensure(build.KIND_TOOL).binary("kind")
    begun = time.monotonic()
    found = docker.inspect(f"{name}-control-plane")
    if found is not None:
        return _again(name, found, scale, made or {})
    images = made if made is not None else _pulled([*catalog.named(objects), catalog.NODE, catalog.PYTHON])
    pods = make.make_pods(images[catalog.PYTHON])
    run, _ = runs.open_run()
    watcher = processes.guard(run)
    phase = "kind's node"
    try:
        with reporting(lambda: f"cluster: waiting for {phase}", every_s=10):
            kafka, prometheus = processes.free_ports(2)
            state = State(
                name=name,
                kind=str(command),
                node="",
                scale=str(scale),
                bootstrap=f"127.0.0.1:{kafka}",
                prometheus=f"http://127.0.0.1:{prometheus}",
                pods=pods,
                images=images,
                versions=_versions(images, made is not None),
            )
            state.write(run)
            _leave_end(run)
            network.create()
            if made is not None:
                network.close()
            settings = cluster_settings(scale, made is not None, {PROMETHEUS_PORT: prometheus, KAFKA_PORT: kafka})
            (run / "kind.yaml").write_text(yaml.safe_dump(settings, sort_keys=False))
            cluster = KindCluster(name, run / "kubeconfig", image=node_image or images[catalog.NODE], kind_path=run / "kind")
            _create(cluster, run)
            container = docker.inspect(f"{name}-control-plane") or {}
            state = State(**{**asdict(state), "node": container["Id"]})
            state.write(run)
            phase = "images to be loaded"
            _kind(run, "load", "docker-image", "--name", name, *(images[part] for part in catalog.named(objects)), pods)
            phase = "KEDA, Kafka and Prometheus"
            _install(run, objects, state)
            running = Kind(run, state, psutil.Process(container["State"]["Pid"]), watcher)
            _wait_ready(running, objects)
            if made is not None:
                _stayed_inside()
    except BaseException:
        processes.clear(run)
        raise
    runs.note_prometheus(run, state.prometheus)
    log.info("cluster up in %.1f s (kind %s, images %s)", time.monotonic() - begun, name, state.versions["images"])
    return running


def infrastructure() -> list[dict[str, Any]]:
    """Every object of Kafka, KEDA and the metrics stack, as ``manifests/`` has them."""
    return [item for part in PARTS for item in yamlfile.documents(paths.MANIFESTS / f"{part}.yaml")]


def cluster_settings(scale: Scale, made_here: bool, ports: dict[int, int]) -> dict[str, Any]:
    """``manifests/kind/cluster.yaml`` with the scale's HPA flags, the host's ``ports`` by the node's, and our image names."""
    settings = yamlfile.read(paths.MANIFESTS / "kind" / "cluster.yaml")
    node = settings["nodes"][0]
    patches = str(paths.MANIFESTS / "kind" / "patches")
    node["extraMounts"] = [{"hostPath": patches, "containerPath": "/kind/patches", "readOnly": True}]
    node["extraPortMappings"] = [
        {"listenAddress": "127.0.0.1", "hostPort": there, "containerPort": here, "protocol": "TCP"}
        for here, there in ports.items()
    ]
    configuration: dict[str, Any] = {
        "kind": "ClusterConfiguration",
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        # A patch replaces a list: the first entry is kind's own.
        "controllerManager": {
            "extraArgs": _arguments({"enable-hostpath-provisioner": "true", **CLIENT_RATE, **hpa_flags(scale)})
        },
        "scheduler": {"extraArgs": _arguments(CLIENT_RATE)},
        "etcd": {"local": {"dataDir": "/var/lib/etcd", "extraArgs": _arguments({"unsafe-no-fsync": "true"})}},
    }
    if made_here:
        configuration["imageRepository"] = catalog.OURS
        configuration["dns"] = {"imageTag": f"v{build.COREDNS}"}
        configuration["etcd"]["local"]["imageTag"] = build.ETCD
    settings["kubeadmConfigPatches"].append(yaml.safe_dump(configuration, sort_keys=False))
    return settings


def _arguments(values: dict[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def _again(name: str, container: dict[str, Any], scale: Scale, made: dict[str, str]) -> Kind:
    """The kept cluster ``name``; it must be ours, unused, and of this scale and these images."""
    run = next((run for run in runs.all_runs() if (state := _state(run)) and state.node == container["Id"]), None)
    if run is None:
        raise LabFault(
            f"--cluster-name: {name!r} is not allowed; allowed: a free name (kind has a cluster {name} that is not the lab's, "
            f"and it is left as it is)"
        )
    state = _state(run)
    assert state is not None
    if state.scale != str(scale):
        raise LabFault(f"the kept cluster {name} is of scale {state.scale}; python -m lab down deletes it")
    if made and state.images != made:
        raise LabFault(f"the kept cluster {name} runs other images than are there now; python -m lab down deletes it")
    runs.adopt(run)
    watcher = processes.guard(run)
    pods = make.make_pods(state.images[catalog.PYTHON])
    if pods != state.pods:
        _kind(run, "load", "docker-image", "--name", name, pods)
        state = State(**{**asdict(state), "pods": pods})
        state.write(run)
    running = Kind(run, state, psutil.Process(container["State"]["Pid"]), watcher)
    _wait_ready(running, infrastructure())
    log.info("cluster %s used again", name)
    return running


def _state(run: Path) -> State | None:
    file = run / STATE
    return State(**json.loads(file.read_text())) if file.exists() else None


def _pulled(wanted: Sequence[str]) -> dict[str, str]:
    """Pull what Docker does not have of ``wanted``; each keeps its name."""
    there = docker.images(wanted)
    for number, image in enumerate(missing := [name for name in wanted if name not in there], 1):
        with reporting(lambda image=image, number=number: f"pulling {image} ({number} of {len(missing)})"):  # type: ignore[misc]
            try:
                docker.run("pull", "--quiet", image)
            except LabFault as fault:
                raise LabFault(
                    f"image {image} is not here and can't be pulled ({fault}): python -m lab images makes all without a registry"
                ) from None
    return {name: name for name in wanted}


def _versions(images: dict[str, str], made_here: bool) -> dict[str, str]:
    known = build.built() if made_here else None
    found = (
        dict(known.versions) if known else {name.rpartition("/")[2].partition(":")[0]: catalog.version(name) for name in images}
    )
    return found | {
        "kubernetes": f"v{build.KUBERNETES}",
        "kind": f"v{build.KIND}",
        "kafka": broker.VERSION,
        "images": "made here" if made_here else "pulled",
    }


def _leave_end(run: Path) -> None:
    """Two commands in the run folder: ``kind`` on the lab's own network, logged; ``end`` that takes the cluster down."""
    state = _state(run)
    assert state is not None
    (run / "kind").write_text(
        f"#!/bin/sh\nexport KIND_EXPERIMENTAL_DOCKER_NETWORK={network.NAME}\nexec '{state.kind}' \"$@\" 2>>'{run}/kind.log'\n"
    )
    (run / processes.END).write_text(f"#!/bin/sh\nexec '{sys.executable}' -m lab.cluster.kind '{run}'\n")
    for command in ("kind", processes.END):
        (run / command).chmod(0o700)


def _create(cluster: KindCluster, run: Path) -> None:
    try:
        cluster.create(run / "kind.yaml")
    except subprocess.CalledProcessError:
        raise LabFault(f"kind could not create the cluster: {docker.reason((run / 'kind.log').read_text())}") from None


def _kind(run: Path, *arguments: str) -> None:
    result = subprocess.run([str(run / "kind"), *arguments], stdout=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise LabFault(f"kind {arguments[0]}: {docker.reason((run / 'kind.log').read_text())}")


def _api(run: Path) -> client.ApiClient:
    api: client.ApiClient = config.new_client_from_config(str(run / "kubeconfig"))
    return api


def _install(run: Path, objects: list[dict[str, Any]], state: State) -> None:
    """Apply CRDs, certificates, settings and every component."""
    api = _api(run)
    _quiet_dns(api)
    apply.objects(api, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in NAMESPACES])
    known = build.built()
    keda.define(api, known.keda_crds if known else build.source(build.KEDA_MODULE, "kubernetes") / "config" / "crd" / "bases")
    authority = Authority(run / "certs")
    hosts = ("keda-operator.keda.svc", "keda-operator.keda.svc.cluster.local", "keda-metrics-apiserver.keda.svc")
    external = "127.0.0.1:" + state.bootstrap.rpartition(":")[2]
    settings = [
        _certificate(authority, "kedaorg-certs", keda.NAMESPACE, hosts),
        _certificate(authority, "metrics-server-certs", "kube-system", ("metrics-server.kube-system.svc",)),
        aggregated.api_service(keda.EXTERNAL_METRICS, "keda-metrics-apiserver", keda.NAMESPACE, 443, authority.cert),
        aggregated.api_service(metrics.RESOURCE_METRICS, "metrics-server", "kube-system", 443, authority.cert),
        _config_map("prometheus", "monitoring", {"prometheus.yml": metrics.prometheus_settings(ADDRESSES)}),
        *_kafka_settings(external),
    ]
    first = [item for item in objects if item["kind"] == "Namespace"]
    apply.objects(
        api, [*first, *settings, *(fit.kind(state.pods, state.images)(item) for item in objects if item not in first)]
    )


def _quiet_dns(api: client.ApiClient) -> None:
    """CoreDNS as one small pod that asks no one: the lab looks up nothing outside the cluster."""
    core, apps = client.CoreV1Api(api), client.AppsV1Api(api)
    corefile = (core.read_namespaced_config_map("coredns", "kube-system").data or {})["Corefile"]
    alone = re.sub(r"\n\s+forward [^{\n]*(\{[^}]*\})?", "", corefile)
    core.patch_namespaced_config_map("coredns", "kube-system", {"data": {"Corefile": alone}})
    container = {"name": "coredns", "resources": {"requests": {"cpu": "5m"}}}
    body = {"spec": {"replicas": 1, "template": {"spec": {"containers": [container]}}}}
    apps.patch_namespaced_deployment("coredns", "kube-system", body)


def _certificate(authority: Authority, name: str, namespace: str, hosts: Sequence[str]) -> dict[str, Any]:
    pair = authority.issue(name, hosts[0], hosts=hosts)
    files = {"ca.crt": authority.cert, "tls.crt": pair.cert, "tls.key": pair.key}
    data = {key: base64.b64encode(file.read_bytes()).decode() for key, file in files.items()}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": data}


def _config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def _kafka_settings(external: str) -> list[dict[str, Any]]:
    listeners = {"INTERNAL": "0.0.0.0:9092", "EXTERNAL": "0.0.0.0:9094"}
    advertised = {"INTERNAL": POD_BOOTSTRAP, "EXTERNAL": external}
    files = {
        "server.properties": broker.properties("/data/log", listeners, advertised, "127.0.0.1:9093"),
        "log4j2.properties": jars.log4j("WARN"),
    }
    environment = {"CLUSTER_ID": broker.cluster_id(), "JVM": " ".join(broker.JVM)}
    return [_config_map("kafka-settings", "kafka", files), _config_map("kafka", "kafka", environment)]


def _wait_ready(cluster: Kind, objects: list[dict[str, Any]]) -> None:
    """Wait until every Deployment and StatefulSet is there, and every API answers."""
    api = cluster.api()
    apps = client.AppsV1Api(api)

    def there() -> bool:
        return not _lacking(apps, objects)

    try:
        until(there, READY_DEADLINE_S, "Kafka, KEDA and the metrics stack Available", cluster.check, every_s=0.5)
    except LabFault as fault:
        raise LabFault(f"{fault}: {', '.join(_lacking(apps, objects)) or 'none'} not there") from None
    for name in (keda.EXTERNAL_METRICS, metrics.RESOURCE_METRICS):
        wait_api.api_service_available(api, name, READY_DEADLINE_S, cluster.check)
    broker.wait_for(cluster.bootstrap, cluster.check)
    until(lambda: metrics.prometheus_ready(cluster.prometheus_url), READY_DEADLINE_S, "Prometheus's /-/ready", cluster.check)


def _lacking(apps: client.AppsV1Api, objects: list[dict[str, Any]]) -> list[str]:
    """Workloads whose replicas are not all Ready."""
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
        if (
            found.status.ready_replicas or 0
        ) < found.spec.replicas or found.status.observed_generation != found.metadata.generation:
            lacking.append(named["name"])
    return lacking


def _stayed_inside() -> None:
    seen = network.packets()
    log.info("no packet of the cluster's left the machine while it came up; %d were turned back", seen.rejected)
    if seen.escaped:
        raise LabFault(f"{seen.escaped} packets of the cluster's left the machine: allowed: none")


def main() -> None:
    """Take down the cluster of the run folder named on the command line."""
    run = Path(sys.argv[1])
    state = _state(run)
    assert state is not None, f"{run} has no {STATE}"
    _kind(run, "delete", "cluster", "--name", state.name, "--kubeconfig", str(run / "kubeconfig"))
    if state.versions["images"] == "made here":
        network.open_again()
    network.remove()


if __name__ == "__main__":
    main()
