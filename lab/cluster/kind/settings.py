"""The settings of a kind cluster: kind's configuration, Kafka's settings, versions. Pure but for reading ``manifests/``."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import yaml

from lab import paths, yamlfile
from lab.cluster import broker
from lab.cluster.controlplane import CLIENT_RATE, HPA_LOG, hpa_flags
from lab.cluster.images import catalog
from lab.components import build, jars
from lab.spec.scale import Scale

MADE_HERE, PULLED = "made here", "pulled"
POD_BOOTSTRAP = "kafka-0.kafka.kafka.svc.cluster.local:9092"
POD_PROMETHEUS = "http://prometheus.monitoring.svc.cluster.local:9090"
PROMETHEUS_PORT, KAFKA_PORT, GRAFANA_PORT = (
    30090,
    30092,
    30030,
)  # the node's ports; the host's are picked when the cluster is made
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
PARTS = (
    "keda/keda",
    "kafka/broker",
    "metrics-server/metrics-server",
    "kube-state-metrics/kube-state-metrics",
    "prometheus/deployment",
)


def infrastructure() -> list[dict[str, Any]]:
    """Every object of Kafka, KEDA and the metrics stack, as ``manifests/`` has them."""
    return [item for part in PARTS for item in yamlfile.documents(paths.MANIFESTS / f"{part}.yaml")]


def beside_control_plane(item: Mapping[str, Any]) -> dict[str, Any]:
    """``item`` with its pods, if it has any, on the control plane's node. The other node is the workload's."""
    placed = copy.deepcopy(dict(item))
    if list(catalog.containers(placed)):
        pod = placed["spec"]["template"]["spec"]
        pod["nodeSelector"] = {CONTROL_PLANE: ""}
        pod["tolerations"] = [{"key": CONTROL_PLANE, "operator": "Exists", "effect": "NoSchedule"}]
    return placed


def cluster_settings(scale: Scale, made_here: bool, ports: dict[int, int]) -> dict[str, Any]:
    """``manifests/kind/cluster.yaml`` with the scale's HPA flags, the host's ``ports`` by the node's, and our image names."""
    settings = yamlfile.read(paths.MANIFESTS / "kind" / "cluster.yaml")
    settings["nodes"][0]["extraPortMappings"] = [
        {"listenAddress": "127.0.0.1", "hostPort": there, "containerPort": here, "protocol": "TCP"}
        for here, there in ports.items()
    ]
    configuration: dict[str, Any] = {
        "kind": "ClusterConfiguration",
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        # A patch replaces a list: the first entry is kind's own.
        "controllerManager": {
            "extraArgs": _arguments({"enable-hostpath-provisioner": "true", **CLIENT_RATE, **HPA_LOG, **hpa_flags(scale)})
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


def kafka_settings(external: str) -> list[dict[str, Any]]:
    """The ConfigMaps of Kafka's pod; ``external`` is the address that clients on the host get."""
    listeners = {"INTERNAL": "0.0.0.0:9092", "EXTERNAL": "0.0.0.0:9094"}
    advertised = {"INTERNAL": POD_BOOTSTRAP, "EXTERNAL": external}
    files = {
        "server.properties": broker.properties("/data/log", listeners, advertised, "127.0.0.1:9093"),
        "log4j2.properties": jars.log4j("WARN"),
    }
    environment = {"CLUSTER_ID": broker.cluster_id(), "JVM": " ".join(broker.JVM)}
    return [config_map("kafka-settings", "kafka", files), config_map("kafka", "kafka", environment)]


def config_map(name: str, namespace: str, data: dict[str, str]) -> dict[str, Any]:
    """A ConfigMap."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace}, "data": data}


def versions(made_here: bool) -> dict[str, str]:
    """The version of every component by the binary runtime's names, kind's version, and the origin of the images.

    An upstream node image contains its own etcd, whose version is then not known here.
    """
    ours = {part.name: part.version for part in build.COMPONENTS if made_here or part.name != "etcd"}
    return ours | {"kafka": broker.VERSION, "kind": f"v{build.KIND}", "images": MADE_HERE if made_here else PULLED}
