"""What the API server's schema of a ScaledObject refuses: fields that it lacks, and values of another type. Pure.

Source: ``config/crd/bases/keda.sh_scaledobjects.yaml`` of KEDA 2.21. A field that is not there kubectl refuses; Helm and others
drop it, and its default stays in force. The metadata of triggers has rules of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from lab.audit.objects import Path
from lab.audit.rules import REMOVED, Hit
from lab.errors import closest, shown
from lab.inputs.scaledobject import MISTAKEN
from lab.yamlfile import as_number

WHOLE, TEXT, FLAG, ANY = "whole number", "string", "true or false", ""
_RULES = {
    "stabilizationWindowSeconds": WHOLE,
    "selectPolicy": TEXT,
    "policies": [{"type": TEXT, "value": WHOLE, "periodSeconds": WHOLE}],
    "tolerance": ANY,
}
_TRIGGER = {
    **dict.fromkeys(("type", "name", "metricType"), TEXT),
    "metadata": ANY,
    "useCachedMetrics": FLAG,
    "authenticationRef": {"name": TEXT, "kind": TEXT},
}
_COUNTS = (
    "pollingInterval",
    "cooldownPeriod",
    "initialCooldownPeriod",
    "idleReplicaCount",
    "minReplicaCount",
    "maxReplicaCount",
)
SPEC = {
    **dict.fromkeys(_COUNTS, WHOLE),
    "scaleTargetRef": dict.fromkeys(("name", "kind", "apiVersion", "envSourceContainerName"), TEXT),
    "fallback": {"failureThreshold": WHOLE, "replicas": WHOLE, "behavior": TEXT},
    "advanced": {
        "restoreToOriginalReplicaCount": FLAG,
        "horizontalPodAutoscalerConfig": {"name": TEXT, "behavior": {"scaleUp": _RULES, "scaleDown": _RULES}},
        "scalingModifiers": dict.fromkeys(("formula", "target", "activationTarget", "metricType"), TEXT),
    },
    "triggers": [_TRIGGER],
}


def wrong(value: Any, schema: Any = SPEC, path: Path = ("spec",)) -> Iterator[Hit]:
    """What of the ``value`` at ``path`` is not as its ``schema`` says; null is not written."""
    if value is None or schema == ANY:
        return
    if isinstance(schema, str):
        if not _fits(value, schema):
            meant = _meant(value, schema)
            words = f"{shown(value)} is no {schema}: the API server refuses it"
            yield Hit(path, words, changes={} if meant is None else {path: meant}, cure=f"a {schema}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            yield Hit(path, f"{shown(value)} is no list: the API server refuses it", cure="a list")
        for number, one in enumerate(value if isinstance(value, list) else ()):
            yield from wrong(one, schema[0], (*path, number))
    elif not isinstance(value, Mapping):
        yield Hit(path, f"{shown(value)} is no mapping: the API server refuses it", cure="a mapping of fields")
    else:
        for field, inner in value.items():
            if field in schema:
                yield from wrong(inner, schema[field], (*path, field))
            else:
                yield _unknown(value, schema, path, str(field))


def _unknown(value: Mapping[str, Any], schema: Mapping[str, Any], path: Path, field: str) -> Hit:
    meant = (MISTAKEN.get(field, "") if path == ("spec",) else "") or closest(field, schema)
    words = "no such field: kubectl refuses it, others drop it, and the default stays in force"
    changes: dict[Path, Any] = {(*path, field): REMOVED}
    if meant in schema and meant not in value:
        changes[*path, meant] = value.get(field)
    return Hit((*path, field), words, changes=changes if meant in schema else {}, cure=meant or "remove it")


def _fits(value: Any, schema: str) -> bool:
    if schema == WHOLE:
        return isinstance(value, int | float) and not isinstance(value, bool) and value % 1 == 0
    return isinstance(value, str if schema == TEXT else bool)


def _meant(value: Any, schema: str) -> Any:
    """What of another type was meant by ``value``; None where that can't be told."""
    if schema == WHOLE:
        number = as_number(value, "s")
        return int(number) if number.isdecimal() else None
    if schema == TEXT:
        return None if isinstance(value, dict | list) else value if isinstance(value, str) else json.dumps(value, default=str)
    return {"true": True, "false": False}.get(value) if isinstance(value, str) else None
