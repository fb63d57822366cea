"""What about a ScaledObject is allowed and deserves a line: a placeholder, a target without /scale, a rival beside it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lab.errors import one_line, shortened
from lab.inputs.triggers import prometheus
from lab.yamltext import TEMPLATE, Document

_SCALING = ("ScaledObject", "HorizontalPodAutoscaler")
_UNSCALED = ("DaemonSet", "Job", "CronJob", "Pod", "ConfigMap", "Service")  # kinds of which the API server serves no /scale
_APPS = "apps/v1"  # in which KEDA looks for a kind without an apiVersion
_OF_APPS = ("Deployment", "StatefulSet", "ReplicaSet")
_GONE = ("v1", "apps/v1beta1", "apps/v1beta2", "extensions/v1beta1")
_PLACEHOLDER = re.compile(rf"<[A-Za-z][\w .-]*>|{TEMPLATE.pattern}")
_EXPRESSIONS = ("query", "formula")  # where < and > compare
_PORT = re.compile(r"(?!.*://).+:\d{1,5}")
_MOST = 6  # places that are told one by one


def name(content: Mapping[str, Any]) -> str:
    """The name of an object; "" where it has none."""
    metadata = content.get("metadata")
    return str(metadata.get("name") or "") if isinstance(metadata, dict) else ""


def space(content: Mapping[str, Any]) -> str:
    """The namespace of an object; "" where it has none."""
    metadata = content.get("metadata")
    return str(metadata.get("namespace") or "") if isinstance(metadata, dict) else ""


def remarks(chosen: Document, others: Sequence[Document]) -> tuple[str, ...]:
    """Lines on the ScaledObject ``chosen``, which was read without an error, and on the ``others`` of its file."""
    return (*_rivals(chosen, others), *_target(chosen), *_left(chosen), *_ports(chosen), *_ignored(chosen))


def _rivals(chosen: Document, others: Sequence[Document]) -> Iterator[str]:
    """Other objects that scale what ``chosen`` scales."""
    for other in others:
        kind = other.content.get("kind")
        if kind in _SCALING and _scaled(other.content) == _scaled(chosen.content):
            words = f"{kind} {name(other.content)} beside it scales the same {' '.join(_scaled(chosen.content)[1:])}"
            yield _said(other, "spec.scaleTargetRef", f"{words}: KEDA refuses that, or both stop (AmbiguousSelector)")


def _scaled(content: Mapping[str, Any]) -> tuple[str, str, str]:
    """Namespace, kind and name of what an object scales."""
    spec = content.get("spec")
    target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    if not isinstance(target, dict):
        return "", "", ""
    return space(content), str(target.get("kind") or "Deployment"), str(target.get("name"))


def _target(chosen: Document) -> Iterator[str]:
    target = chosen.content["spec"]["scaleTargetRef"]
    api, kind = str(target.get("apiVersion") or _APPS), target.get("kind") or "Deployment"
    if kind in _UNSCALED:
        what = f"a Knative {kind}" if api.startswith("serving.knative.dev/") else f"a {kind}"
        yield _said(chosen, "spec.scaleTargetRef.kind", f"{what} has no /scale: KEDA can't scale it; simulated as if it had")
    elif api in _GONE if kind in _OF_APPS else api == _APPS:
        yield _said(
            chosen, "spec.scaleTargetRef", f"there is no {kind} of {api}: KEDA can't scale it; simulated as if it could"
        )


def _left(chosen: Document) -> Iterator[str]:
    """What a template or a person has still to fill in."""
    metadata = {field: value for field, value in chosen.content["metadata"].items() if field in ("namespace", "labels")}
    texts = [*_texts(metadata, "metadata"), *_texts(chosen.content["spec"], "spec")]
    found = [(place, left[0]) for place, text in texts if (left := _PLACEHOLDER.search(text))]
    for place, words in found[:_MOST]:
        yield _said(chosen, place, f"{shortened(words, 60)} looks like a placeholder that is not filled in")
    if len(found) > _MOST:
        yield _said(chosen, "spec", f"{len(found) - _MOST} more such placeholders")


def _texts(content: object, place: str) -> Iterator[tuple[str, str]]:
    """Each text in plain data with its place."""
    if isinstance(content, dict):
        for field, value in content.items():
            if field not in _EXPRESSIONS:
                yield from _texts(value, f"{place}.{field}")
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _texts(value, f"{place}[{number}]")
    elif isinstance(content, str):
        yield place, content


def _ports(chosen: Document) -> Iterator[str]:
    """Addresses of brokers that are no HOST:PORT."""
    for number, trigger in enumerate(chosen.content["spec"]["triggers"]):
        servers = trigger["metadata"].get("bootstrapServers") or ""
        lacking = [one.strip() for one in servers.split(",") if one.strip() and not _PORT.fullmatch(one.strip())]
        if lacking and not _PLACEHOLDER.search(servers):
            place = f"spec.triggers[{number}].metadata.bootstrapServers"
            wrong = "begins with a listener's name" if "://" in lacking[0] else "has no port"
            yield _said(chosen, place, f"{shortened(lacking[0], 80)} {wrong}: Kafka's client takes HOST:PORT alone")


def _ignored(chosen: Document) -> Iterator[str]:
    """Fields that KEDA no longer reads, and most public files still have."""
    for number, trigger in enumerate(chosen.content["spec"]["triggers"]):
        for field in prometheus.IGNORED if trigger["type"] == "prometheus" else ():
            if field in trigger["metadata"]:
                yield _said(chosen, f"spec.triggers[{number}].metadata.{field}", "KEDA ignores it")


def _said(document: Document, field: str, words: str) -> str:
    """The line on a ``field`` of ``document``."""
    line = document.where.line(field)
    return one_line(f"{document.where}{f':{line}' if line else ''}: {field}: {words}")
