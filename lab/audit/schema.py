"""What the API server's schema of a ScaledObject refuses: fields that it lacks or wants, and values of another type. Pure.

Source: ``config/crd/bases/keda.sh_scaledobjects.yaml`` of KEDA 2.21, and ``validateScalingRules`` of Kubernetes for the words
and numbers of a behavior. A field that is not there kubectl refuses; Helm and others drop it, and its default stays in force.
The metadata of triggers has rules of its own.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lab.audit.objects import Path
from lab.audit.rules import REMOVED, Hit
from lab.errors import closest, shown
from lab.inputs.scaledobject import MISTAKEN
from lab.yamlfile import as_number

WHOLE, TEXT, FLAG, ANY = "whole number", "string", "true or false", "anything"
REFUSED = "the API server refuses it"


@dataclass(frozen=True)
class Of:
    """A value of a ``kind``: one of the ``words``, or a number from ``least``."""

    kind: str
    words: tuple[str, ...] = ()
    least: int = 0

    def __str__(self) -> str:
        return " or ".join(self.words) or (f"{self.kind} from {self.least}" if self.kind == WHOLE else self.kind)


@dataclass(frozen=True)
class Object:
    """A mapping of ``fields``, of which some are ``needed``."""

    fields: Mapping[str, Schema]
    needed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Items:
    """A list of ``each``."""

    each: Object


Schema = Of | Object | Items

_RULES = Object(
    {
        "stabilizationWindowSeconds": Of(WHOLE),
        "selectPolicy": Of(TEXT, ("Max", "Min", "Disabled")),
        "policies": Items(
            Object(
                {"type": Of(TEXT, ("Pods", "Percent")), "value": Of(WHOLE, least=1), "periodSeconds": Of(WHOLE, least=1)},
                ("type", "value", "periodSeconds"),
            )
        ),
        "tolerance": Of(ANY),
    }
)
_LOGIN = {"name": Of(TEXT), "kind": Of(TEXT, ("TriggerAuthentication", "ClusterTriggerAuthentication"))}
_TRIGGER: dict[str, Schema] = {
    "type": Of(TEXT),
    "name": Of(TEXT),
    "metadata": Of(ANY),
    "metricType": Of(TEXT),
    "useCachedMetrics": Of(FLAG),
    "authenticationRef": Object(_LOGIN, ("name",)),
}
_BEHAVIORS = ("static", "currentReplicas", "currentReplicasIfHigher", "currentReplicasIfLower", "scalingModifiers")
_FALLBACK = {"failureThreshold": Of(WHOLE), "replicas": Of(WHOLE), "behavior": Of(TEXT, _BEHAVIORS)}
_MODIFIERS = dict.fromkeys(("formula", "target", "activationTarget"), Of(TEXT))
_HPA: dict[str, Schema] = {"name": Of(TEXT), "behavior": Object({"scaleUp": _RULES, "scaleDown": _RULES})}
_ADVANCED: dict[str, Schema] = {
    "restoreToOriginalReplicaCount": Of(FLAG),
    "horizontalPodAutoscalerConfig": Object(_HPA),
    "scalingModifiers": Object({**_MODIFIERS, "metricType": Of(TEXT, ("AverageValue", "Value"))}),
}
SPEC = Object(
    {
        **dict.fromkeys(("cooldownPeriod", "initialCooldownPeriod", "idleReplicaCount", "minReplicaCount"), Of(WHOLE)),
        **dict.fromkeys(("pollingInterval", "maxReplicaCount"), Of(WHOLE, least=1)),
        "scaleTargetRef": Object(dict.fromkeys(("name", "kind", "apiVersion", "envSourceContainerName"), Of(TEXT))),
        "fallback": Object(_FALLBACK, ("failureThreshold", "replicas")),
        "advanced": Object(_ADVANCED),
        "triggers": Items(Object(_TRIGGER)),
    }
)


def wrong(value: Any, schema: Schema = SPEC, path: Path = ("spec",)) -> Iterator[Hit]:
    """What of the ``value`` at ``path`` is not as its ``schema`` says; null is not written."""
    if value is None:
        return
    if isinstance(schema, Of):
        if not _fits(value, schema):
            meant = _meant(value, schema)
            words = f"{shown(value)} is {'not' if schema.words else 'no'} {schema}: {REFUSED}"
            yield Hit(path, words, changes={} if meant is None else {path: meant}, cure=f"{schema}")
    elif isinstance(schema, Items):
        if not isinstance(value, list):
            yield Hit(path, f"{shown(value)} is no list: {REFUSED}", cure="a list")
        for number, one in enumerate(value if isinstance(value, list) else ()):
            yield from wrong(one, schema.each, (*path, number))
    elif not isinstance(value, Mapping):
        yield Hit(path, f"{shown(value)} is no mapping: {REFUSED}", cure="a mapping of fields")
    else:
        yield from _in(value, schema, path)


def _in(value: Mapping[str, Any], schema: Object, path: Path) -> Iterator[Hit]:
    for name in schema.needed:
        if value.get(name) is None:
            yield Hit((*path, name), f"no {name}: {REFUSED}", cure=f"{schema.fields[name]}")
    for name, inner in value.items():
        if name in schema.fields:
            yield from wrong(inner, schema.fields[name], (*path, name))
        else:
            yield _unknown(value, schema, path, str(name))


def _unknown(value: Mapping[str, Any], schema: Object, path: Path, name: str) -> Hit:
    meant = (MISTAKEN.get(name, "") if path == ("spec",) else "") or closest(name, schema.fields)
    words = "no such field: kubectl refuses it, others drop it, and the default stays in force"
    changes: dict[Path, Any] = {(*path, name): REMOVED}
    if meant in schema.fields and meant not in value:
        changes[*path, meant] = value.get(name)
    return Hit((*path, name), words, changes=changes if meant in schema.fields else {}, cure=meant or "remove it")


def _fits(value: Any, schema: Of) -> bool:
    match schema.kind:
        case "whole number":
            number = isinstance(value, int | float) and not isinstance(value, bool)
            return number and value % 1 == 0 and value >= schema.least
        case "string":
            return isinstance(value, str) and (not schema.words or value in schema.words)
        case "true or false":
            return isinstance(value, bool)
    return True


def _meant(value: Any, schema: Of) -> Any:
    """What was meant by ``value``, of another type or another spelling; None where that can't be told."""
    if schema.kind == WHOLE:
        number = as_number(value, "s")
        return int(number) if number.isdecimal() and int(number) >= schema.least else None
    if schema.kind == FLAG:
        return {"true": True, "false": False}.get(value) if isinstance(value, str) else None
    if schema.words:
        return closest(value, schema.words) or None
    return None if isinstance(value, dict | list) else json.dumps(value, default=str)
