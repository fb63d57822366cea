"""The ScaledObject in a user's file: one of several documents, of a List, or of JSON.

A file often holds more than one object, as Helm and ``kubectl get`` print them. The one ScaledObject in it is taken; of several
the one that is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import yamlfile, yamltext
from lab.errors import InputError, Unusable, closest, report, together
from lab.inputs import hpa_on_lag, remarks, scaledobject
from lab.inputs.scaledobject import ScaledObject
from lab.yamlfile import Fields
from lab.yamltext import Document

KIND = "ScaledObject"
_FLAG = "--name"
_SPEC = ("scaleTargetRef", "triggers", "pollingInterval", "cooldownPeriod", "minReplicaCount", "maxReplicaCount")
_PLAIN = "a plain HPA, simulated without KEDA; its metric is the sum of its series"
_DEEPEST = 12  # mappings and lists in each other, in which a chart's values have triggers
_TRIGGER = {"triggers", "consumerGroup", "lagThreshold"}
_WORDS: dict[type, str] = {str: "text", list: "a list"}


@dataclass(frozen=True)
class Found:
    """A ScaledObject, as it is written in its file, and what about it, or beside it, is allowed and deserves a line."""

    scaled: ScaledObject
    written: Document
    remarks: tuple[str, ...]


def load(
    path: Path, name: str = "", also: Callable[[Mapping[str, Any], object], None] | None = None, *, hpa: bool = False
) -> Found:
    """The ScaledObject in the file at ``path``, the one of this ``name`` where there are several; "-" is standard input.

    Raises like :func:`read`.
    """
    return read(yamlfile.text(path), yamlfile.name(path), name, also, hpa=hpa)


def read(
    text: str,
    where: object,
    name: str = "",
    also: Callable[[Mapping[str, Any], object], None] | None = None,
    *,
    hpa: bool = False,
) -> Found:
    """:func:`load` of a ``text``, whose source ``where`` names.

    Raises :class:`InputError` for everything in it that can't be used, and for what ``also`` reports of the object.
    With ``hpa`` a text without a ScaledObject may hold one plain HPA instead (:mod:`lab.inputs.hpa_on_lag`).
    """
    with together():
        objects = _objects(yamltext.documents(text, where), where)
        plain = [one for one in objects if one.content.get("kind") == hpa_on_lag.KIND]
        if hpa and len(plain) == 1 and not any(one.content.get("kind") == KIND for one in objects):
            written = hpa_on_lag.Written.of(where, plain[0].where.text, plain[0].where.number, plain[0].where.path)
            made = Document(hpa_on_lag.scaledobject_of(plain[0].content, plain[0].where), written)
            if also:
                also(made.content, written)
            return Found(scaledobject.parse(made.content, written), made, (f"{where}: {_PLAIN}",))
        chosen = _choose(objects, where, name)
        if also:
            also(chosen.content, chosen.where)
        scaled = scaledobject.parse(chosen.content, chosen.where)
        return Found(scaled, chosen, remarks.remarks(chosen, [one for one in objects if one is not chosen]))


def _objects(documents: list[Document], where: object) -> list[Document]:
    """The mappings among ``documents``, and those in Lists, each with its own source. Raises where there is none."""
    if not documents:
        raise Unusable(where, f"nothing is in it; allowed: a {KIND}")
    found = list(mappings(documents))
    if not found:
        raise Unusable(where, f"no {KIND} is in it, but {_shape(documents[0].content)}")
    return found


def _shape(content: object) -> str:
    """What a document is that holds no object."""
    if isinstance(content, list) and any(isinstance(one, dict) and "op" in one for one in content):
        return "a patch: bring what it makes of the object (kustomize build)"
    return _WORDS.get(type(content), "an empty List")


def mappings(documents: list[Document]) -> Iterator[Document]:
    """The mappings among ``documents``, and those in Lists."""
    for one in documents:
        content = one.content
        if (
            isinstance(content, dict)
            and str(content.get("kind", "")).endswith("List")
            and isinstance(content.get("items"), list)
        ):
            yield from mappings([Document(item, one.where.under("items", n)) for n, item in enumerate(content["items"])])
        elif isinstance(content, dict):
            yield one


def _choose(objects: list[Document], where: object, name: str) -> Document:
    """The ScaledObject among ``objects`` of the file ``where``."""
    there = [one for one in objects if one.content.get("kind") == KIND]
    names = ", ".join(_titles(there)) or "none"
    if name:
        there = [one for one in there if name in (remarks.name(one.content), _whole_name(one.content))]
        if not there:
            raise InputError("command line", _FLAG, name, f"a {KIND} of {where}: {names}")
    there = there or [one for one in objects if _meant(one.content)]
    if len(there) > 1:
        raise Unusable(where, f"{len(there)} {KIND}s are in it: {names}; choose one with {_FLAG} (pytest: --lab-name)")
    if not there:
        raise Unusable(where, _without([one.content for one in objects]))
    return _whole(there[0])


def _titles(there: list[Document]) -> list[str]:
    """The names of objects, with the namespace of those that have one name."""
    names = [remarks.name(one.content) or "(without a name)" for one in there]
    pairs = zip(there, names, strict=True)
    return [_whole_name(one.content) if names.count(name) > 1 else name for one, name in pairs]


def _whole_name(content: Mapping[str, Any]) -> str:
    space = remarks.space(content)
    return f"{space and f'{space}/'}{remarks.name(content) or '(without a name)'}"


def _meant(content: Mapping[str, Any]) -> bool:
    """Whether a mapping of another kind was probably meant as a ScaledObject, so that its errors are worth telling."""
    kind, there = content.get("kind"), any(field in content for field in _SPEC)
    if kind is None:
        return str(content.get("apiVersion", "")).startswith("keda.") or "spec" in content or there
    flat = there and "spec" in content and not content["spec"]
    return flat or (kind != "ScaledJob" and bool(closest(kind, [KIND])))


def _whole(found: Document) -> Document:
    """``found``, with the fields of a spec that stand beside it under it, which is reported. Raises for lost indentation."""
    content, spec = found.content, found.content.get("spec") or {}
    if not isinstance(spec, dict):
        return found
    edge = [field for field in scaledobject.SPEC if field in content and spec.get(field) is None]
    if not edge:
        return found
    if "spec" in content and not spec:
        known = Fields(content, found.where)  # what is wrong wherever it belongs
        if content.get("kind") == KIND:  # the kind of a target may have come in its place
            scaledobject.check_type(known)
        if "deploymentName" in content:
            known.refuse("deploymentName", "", "scaleTargetRef.name")
        raise Unusable(found.where, f"the indentation is lost: spec is empty, and {', '.join(edge)} stand beside it")
    report(Unusable(found.where, f"no whole {KIND}: {', '.join(edge)} must stand under spec"))
    rest = {field: value for field, value in content.items() if field not in edge}
    return Document(rest | {"spec": spec | {field: content[field] for field in edge}}, found.where)


def _without(contents: list[Mapping[str, Any]]) -> str:
    """What is said of a file without a ScaledObject."""
    kinds = [f"{one['kind']} {remarks.name(one)}".strip() for one in contents if "kind" in one]
    if kinds:
        return f"no {KIND} is in it, but {', '.join(kinds)}"
    if {"specVersion", "runtime"} <= contents[0].keys():
        return f"no {KIND}, but a function's func.yaml: bring what it makes (kubectl get scaledobject -o yaml)"
    if _has_trigger(contents[0]):
        return f"no {KIND}: these look like a chart's values; render the chart (helm template), and bring what it makes"
    return f"no {KIND}: apiVersion, kind, metadata and spec are missing"


def _has_trigger(content: object, level: int = 0) -> bool:
    """Whether triggers, or a field of one on lag, are anywhere in plain data."""
    if level > _DEEPEST:
        return False
    if isinstance(content, dict):
        return bool(_TRIGGER & content.keys()) or any(_has_trigger(one, level + 1) for one in content.values())
    return isinstance(content, list) and any(_has_trigger(one, level + 1) for one in content)
