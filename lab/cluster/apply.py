"""Server-side apply of plain objects, as ``kubectl apply --server-side`` does it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kubernetes import client
from kubernetes.dynamic import DynamicClient
from kubernetes.dynamic.exceptions import DynamicApiError

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
