"""Waiting until objects and APIs of the apiserver are there."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from kubernetes import client
from kubernetes.client.exceptions import ApiException

from lab.cluster.certs import Pair
from lab.wait import until


def ready(server: str, ca: Path, pair: Pair, deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until ``/readyz`` answers; ``check`` raises when the apiserver has died."""
    context = ssl.create_default_context(cafile=str(ca))
    context.load_cert_chain(pair.cert, pair.key)

    def answers() -> bool:
        try:
            with urllib.request.urlopen(f"{server}/readyz", context=context, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            return False

    until(answers, deadline_s, "kube-apiserver's /readyz", check)


def api_service_available(api: client.ApiClient, name: str, deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until the APIService ``name`` is Available, so that its metrics can be asked for."""
    registration = client.ApiregistrationV1Api(api)

    def available() -> bool:
        try:
            status = registration.read_api_service_status(name).status
        except ApiException:
            return False
        return any(item.type == "Available" and item.status == "True" for item in (status and status.conditions) or [])

    until(available, deadline_s, f"APIService {name}", check)


def established(api: client.ApiClient, names: list[str], deadline_s: float, check: Callable[[], None]) -> None:
    """Wait until every CustomResourceDefinition in ``names`` is Established."""
    definitions = client.ApiextensionsV1Api(api)

    def all_established() -> bool:
        for name in names:
            status = definitions.read_custom_resource_definition_status(name).status
            if not any(item.type == "Established" and item.status == "True" for item in (status and status.conditions) or []):
                return False
        return True

    until(all_established, deadline_s, "KEDA's CustomResourceDefinitions", check)
