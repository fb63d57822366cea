"""Deployments that a trial puts beside its consumers: the persistent-lag scaler, and pods that only start."""

from __future__ import annotations

import copy
from typing import Any

from lab import paths, yamlfile


def lag_scaler() -> dict[str, Any]:
    """The persistent-lag scaler's Deployment as a trial has it: of its own, one replica, so that its record is all there is."""
    file = paths.MANIFESTS / "lagscaler" / "lag-scaler.yaml"
    deployment = next(item for item in yamlfile.documents(file) if item["kind"] == "Deployment")
    del deployment["metadata"]["namespace"]
    deployment["spec"] |= {"replicas": 1, "minReadySeconds": 0}
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    container["resources"]["requests"]["cpu"] = "50m"  # beside 24 consumers on two cores
    return deployment


def bystander(consumer: dict[str, Any]) -> dict[str, Any]:
    """The Deployment ``consumer`` again, without replicas yet, whose pods start alike but never join the group."""
    twin = copy.deepcopy(consumer)
    twin["metadata"] = {"name": "bystander", "labels": {"app": "bystander"}}
    twin["spec"]["replicas"] = 0
    twin["spec"]["selector"]["matchLabels"] = {"app": "bystander"}
    twin["spec"]["template"]["metadata"]["labels"] = {"app": "bystander"}
    twin["spec"]["template"]["spec"]["containers"][0]["env"].append({"name": "JOIN", "value": "off"})
    return twin
