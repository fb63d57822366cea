"""A YAML or JSON text with some values of an object changed: other lines, their order and their comments stay. Pure.

A comment beside a changed value goes: it may be wrong now, and the diff still shows it.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from lab import yamltext
from lab.yamlnodes import Loader

SCALED_OBJECT = "ScaledObject"
_STEP, _WIDE = "  ", 1000
_COMMENT = re.compile(r"""'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|([ \t]+#[^\r\n]*)|(\n)""")  # or words in quotes, or the line's end


@dataclass(frozen=True)
class _Edit:
    """The characters from ``start`` to ``end`` become ``text``."""

    start: int
    end: int
    text: str


def edited(text: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """``text``, whose ScaledObject ``before`` becomes ``after``: they differ in their spec alone.

    A text that can't be changed line by line, as one in which the changed block is an alias, becomes ``after`` alone, written
    anew without comments.
    """
    try:
        nodes = _scaled_objects(text, before)
    except yaml.YAMLError:  # as JSON that is indented by tabs
        nodes = []
    for node in nodes:
        made = rewritten(text, node, before, after)
        if _spec_of(made, after) == after["spec"]:
            return made
    return yamltext.written(dict(after))


def rewritten(text: str, node: Node, before: Mapping[str, Any], after: Mapping[str, Any]) -> str:
    """``text``, whose ``node``, which is ``before``, becomes ``after``. What lies behind an alias stays."""
    edits = set(_edits(text, node, before, after, False, ""))
    edits |= {comment for one in edits if one.text for comment in _comments(text, one)}
    made = text
    for one in sorted(edits, key=lambda one: (one.start, one.end), reverse=True):
        made = made[: one.start] + one.text + made[one.end :]
    return made


def difference(name: str, before: str, after: str) -> str:
    """The unified diff of two texts of the file ``name``; "" where they are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), f"a/{name}", f"b/{name}", lineterm="")
    return "\n".join(lines)


def _scaled_objects(text: str, wanted: Mapping[str, Any]) -> list[Node]:
    """The nodes of the ScaledObject in ``text``: of several those with the name of the ``wanted`` one."""
    found = [node for node in _objects(text) if _word(node, "kind") == SCALED_OBJECT]
    name = (wanted.get("metadata") or {}).get("name")
    return found if len(found) == 1 else [node for node in found if _word(_child(node, "metadata"), "name") == name]


def _objects(text: str) -> Iterator[Node]:
    """The objects of every document, and those of a List."""
    for document in yaml.compose_all(text, Loader):
        items = _child(document, "items")
        yield from items.value if isinstance(items, SequenceNode) else [document]


def _child(node: Node | None, name: str) -> Node | None:
    pairs = node.value if isinstance(node, MappingNode) else []
    return next((value for key, value in pairs if key.value == name), None)


def _word(node: Node | None, name: str) -> str | None:
    child = _child(node, name)
    return child.value if isinstance(child, ScalarNode) else None


def _spec_of(text: str, wanted: Mapping[str, Any]) -> object:
    """The spec of the ScaledObject in ``text``; None where the text is no YAML any more, or has several."""
    try:
        found = [Loader(yaml.serialize(node)).get_single_data() for node in _scaled_objects(text, wanted)]
    except yaml.YAMLError:
        return None
    return found[0].get("spec") if len(found) == 1 else None


def _edits(text: str, node: Node, before: Any, after: Any, flow: bool, indent: str) -> Iterator[_Edit]:
    """The edits that make ``node``, which is ``before``, ``after``. Its key has this ``indent``; in brackets it is ``flow``."""
    if before == after:
        return
    flow = flow or bool(isinstance(node, MappingNode | SequenceNode) and node.flow_style)
    gone = _deletions(text, node, before, after, flow)
    if isinstance(node, MappingNode) and isinstance(before, dict) and isinstance(after, dict) and gone is not None:
        yield from gone
        there = {key.value: (key, value) for key, value in node.value}
        own = " " * node.start_mark.column
        for name in before:
            if name in there and name in after:
                yield from _edits(text, there[name][1], before[name], after[name], flow, own)
        if more := {name: value for name, value in after.items() if name not in before}:
            yield _insertion(text, node, more, flow, own)
    elif isinstance(node, SequenceNode) and isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for child, old, new in zip(node.value, before, after, strict=True):
            yield from _edits(text, child, old, new, flow, indent)
    else:
        yield _replacement(text, node, after, flow, indent)


def _deletions(text: str, node: Node, before: Any, after: Any, flow: bool) -> list[_Edit] | None:
    """Takes away the lines of fields that ``before`` has and ``after`` lacks; None where they share lines."""
    if not isinstance(node, MappingNode) or not isinstance(before, dict) or not isinstance(after, dict):
        return None
    found = []
    for key, value in node.value:
        if key.value not in before or key.value in after:
            continue
        begin, end = text.rfind("\n", 0, key.start_mark.index), text.find("\n", _end(text, value))
        if flow or begin < 0 or text[begin : key.start_mark.index].strip() or before.keys().isdisjoint(after):
            return None
        found.append(_Edit(begin, len(text) if end < 0 else end, ""))
    return found if len(found) == len(before.keys() - after.keys()) else None


def _insertion(text: str, node: MappingNode, more: Mapping[str, Any], flow: bool, indent: str) -> _Edit:
    """Adds the fields ``more`` after the last one of the mapping ``node``, whose fields begin with ``indent``."""
    if flow:
        at = _end(text, node.value[-1][1]) if node.value else node.start_mark.index + 1
        fields = ", ".join(f"{json.dumps(name)}: {_json(value)}" for name, value in more.items())
        return _Edit(at, at, f", {fields}" if node.value else fields)
    line_end = text.find("\n", _end(text, node))
    at = len(text) if line_end < 0 else line_end
    return _Edit(at, at, "".join(f"\n{indent}{line}" for line in _block(more)))


def _replacement(text: str, node: Node, value: Any, flow: bool, indent: str) -> _Edit:
    start, end = node.start_mark.index, _end(text, node)
    if isinstance(node, ScalarNode) and not flow and isinstance(value, dict | list):  # null, where there is a block now
        start = len(text[:start].rstrip(" "))
        return _Edit(start, max(start, end), "".join(f"\n{indent}{_STEP}{line}" for line in _block(value)))
    if isinstance(value, dict | list) and not flow:
        brackets = isinstance(node, SequenceNode) and all(getattr(one, "flow_style", False) for one in node.value)
        return _Edit(start, end, f"\n{' ' * node.start_mark.column}".join(_block(value, None if brackets else False)))
    style = node.style if isinstance(node, ScalarNode) else '"'
    if isinstance(value, str) and style == "'":
        return _Edit(start, end, "'{}'".format(value.replace("'", "''")))
    return _Edit(start, end, value if isinstance(value, str) and not style and _is_plain(value) else _json(value))


def _end(text: str, node: Node) -> int:
    """Where the text of ``node`` ends: PyYAML's own mark of a block is behind the comments that follow it."""
    if isinstance(node, MappingNode | SequenceNode) and not node.flow_style and node.value:
        last = node.value[-1]
        return _end(text, last[1] if isinstance(last, tuple) else last)
    end: int = node.end_mark.index
    return len(text[:end].rstrip()) if isinstance(node, ScalarNode) and node.value else end


def _comments(text: str, edit: _Edit) -> Iterator[_Edit]:
    """Takes away the comments beside what ``edit`` changes: on the line where it ends, and on that of the key above a block."""
    begin = text.rfind("\n", 0, edit.start) + 1
    above = text.rfind("\n", 0, max(0, begin - 1)) + 1
    own = [above] if begin and not text[begin : edit.start].strip() and text[above:begin].lstrip()[:1] != "#" else []
    for at in (edit.end, *own):
        found = next((one for one in _COMMENT.finditer(text, at) if one.lastindex), None)
        if found and found[1]:
            yield _Edit(found.start(), found.end(), "")


def _block(value: Any, flow: bool | None = False) -> list[str]:
    """The lines of ``value``; with ``flow`` None its innermost collections are in brackets."""
    return yamltext.written(value, default_flow_style=flow, width=_WIDE).splitlines()


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether ``text`` means itself without quotes, in brackets too."""
    return re.fullmatch(r"[A-Za-z][\w./-]*", text) is not None and yamltext.written(text).startswith(text)
