"""Where a ScaledObject finds what it asks, and its login: known only when it is applied, on either runtime. Pure."""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from lab.spec.triggers.kafka import APACHE, KAFKA

SCALER_PORT = 6000
_NAMESPACE = re.compile(r'\bnamespace="[^"]*"')


def asks_scaler(item: Mapping[str, Any]) -> bool:
    """Whether ``item`` is a ScaledObject with an external trigger, whose scaler must be there before it."""
    return item["kind"] == "ScaledObject" and any(one["type"] == "external" for one in item["spec"]["triggers"])


def located(item: Mapping[str, Any], namespace: str, prometheus: str, scaler: str, login: str | None = None) -> dict[str, Any]:
    """``item`` as it is applied in ``namespace``: a ScaledObject's triggers get the URL ``prometheus`` and the IP ``scaler``.

    An object of another namespace comes to this one, and a query that names one asks for this one. Triggers that ask Kafka log
    in with the TriggerAuthentication ``login``, if there is one.
    """
    placed = copy.deepcopy(dict(item))
    placed["metadata"].pop("namespace", None)
    if placed["kind"] != "ScaledObject":
        return placed
    for trigger in placed["spec"]["triggers"]:
        metadata = trigger["metadata"]
        if trigger["type"] == "prometheus":
            metadata["serverAddress"] = prometheus
            metadata["query"] = _NAMESPACE.sub(f'namespace="{namespace}"', metadata["query"])
        elif trigger["type"] == "external":
            metadata["scalerAddress"] = f"{scaler}:{SCALER_PORT}"
        elif trigger["type"] in (KAFKA, APACHE) and login is not None:
            trigger["authenticationRef"] = {"name": login}
    return placed
