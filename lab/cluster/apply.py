"""Server-side apply of plain objects, as ``kubectl apply --server-side`` does it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError, NotFoundError

from lab.errors import LabFault

MANAGER = "elastic-lab"


def objects(api: client.ApiClient, wanted: Iterable[Mapping[str, Any]], namespace: str | None = None) -> None:
    """Apply each object, in ``namespace`` unless it names its own. Raises :class:`LabFault` with the apiserver's reason."""
    dynamic = DynamicClient(api)
    for item in wanted:
        resource = dynamic.resources.get(api_version=item["apiVersion"], kind=item["kind"])
        name = item["metadata"]["name"]
        try:
            dynamic.server_side_apply(
                resource,
                body=dict(item),
                name=name,
                namespace=item["metadata"].get("namespace", namespace),
                field_manager=MANAGER,
                force_conflicts=True,
            )
        except DynamicApiError as error:
            raise LabFault(f"{item['kind']} {name} could not be applied: {error.summary()}") from None


def delete(api: client.ApiClient, unwanted: Iterable[Mapping[str, Any]], namespace: str) -> None:
    """Delete each object and its dependents, in the background; an object that is not there is no fault."""
    dynamic = DynamicClient(api)
    for item in unwanted:
        resource = dynamic.resources.get(api_version=item["apiVersion"], kind=item["kind"])
        body = {"propagationPolicy": "Background"}
        with contextlib.suppress(NotFoundError):
            dynamic.delete(resource, name=item["metadata"]["name"], namespace=namespace, body=body)
