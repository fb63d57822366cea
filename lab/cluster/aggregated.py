"""The registration of an aggregated API. Pure."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any


def api_service(name: str, service: str, namespace: str, port: int, ca: Path) -> dict[str, Any]:
    """The APIService ``name`` ("v1beta1.metrics.k8s.io"), served by ``service``:``port`` with a certificate of ``ca``'s."""
    version, _, group = name.partition(".")
    return {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": name},
        "spec": {
            "group": group,
            "version": version,
            "groupPriorityMinimum": 100,
            "versionPriority": 100,
            "caBundle": base64.b64encode(ca.read_bytes()).decode(),
            "service": {"name": service, "namespace": namespace, "port": port},
        },
    }
