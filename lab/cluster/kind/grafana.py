"""Grafana as Kubernetes objects, with the committed dashboards. Pure but for reading ``manifests/``."""

from __future__ import annotations

from typing import Any

from lab import paths, yamlfile

FOLDER = paths.MANIFESTS / "grafana"
CONFIG_MAP = "grafana-dashboards"


def objects() -> list[dict[str, Any]]:
    """Everything to apply for Grafana with its dashboards, in order: the committed YAML, and the JSON as a ConfigMap."""
    committed = [item for file in sorted(FOLDER.glob("*.yaml")) for item in yamlfile.documents(file)]
    namespace = next(item["metadata"]["namespace"] for item in committed if item["kind"] == "Deployment")
    files = {file.name: file.read_text() for file in sorted((FOLDER / "dashboards").glob("*.json"))}
    boards = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CONFIG_MAP, "namespace": namespace, "labels": {"app": "grafana"}},
        "data": files,
    }
    order = {"Namespace": 0, "ConfigMap": 1, "Deployment": 2, "Service": 3}
    return sorted([*committed, boards], key=lambda item: order[item["kind"]])
