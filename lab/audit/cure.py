"""The cure of a finding as a unified diff of its file, which ``git apply`` takes. Pure.

The lines of the one object are changed, and not the whole text: a fleet's file has thousands of them.
"""

from __future__ import annotations

import copy
import difflib
import functools
import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lab.audit.objects import Item, Path
from lab.audit.rules import REMOVED
from lab.inputs import yaml_edit
from lab.yamlnodes import Loader

_HUNK = re.compile(r"^@@ -(\d+)(,\d+)? \+(\d+)(,\d+)? @@")
_NO_BREAK = "\n\\ No newline at end of file\n"
_CONTEXT = 3  # lines on each side of a change: fewer mean the end of the file to git apply


@dataclass(frozen=True)
class Lines:
    """The lines of an object in its file, from ``first`` (0 is the first line).

    Its first line stands behind ``prefix``, such as the dash of a list, and its last one before ``tail``, such as a bracket's
    comma. ``end`` is the break of its last line, "" where the file ends without one. ``above`` and ``below`` are those beside.
    """

    first: int
    prefix: str
    text: str
    tail: str
    end: str
    above: Sequence[str]
    below: Sequence[str]

    def whole(self, text: str) -> list[str]:
        """The lines in the file and those beside, with ``text`` in place of the object's own."""
        *every, last = f"{self.prefix}{text[len(self.prefix) :]}{self.tail}".split("\n")
        return [*self.above, *(f"{line}\n" for line in every), f"{last}{self.end}", *self.below]


def difference(item: Item, changes: Mapping[Path, Any]) -> str:
    """The diff that makes ``changes`` of ``item``; "" where there are none, or where they can't be made line by line."""
    found = lines(item) if changes else None
    if found is None or not isinstance(item.content, dict):
        return ""
    after = apply(item.content, changes)
    try:
        node = yaml.compose(found.text, Loader)
        made = yaml_edit.rewritten(found.text, node, item.content, after) if node else ""
        if yaml.load(made, Loader) != after:  # as where an alias stands for the block
            return ""
    except yaml.YAMLError:
        return ""
    name = str(item.where)
    diff = difflib.unified_diff(found.whole(found.text), found.whole(made), f"a/{name}", f"b/{name}")
    moved = (_HUNK.sub(functools.partial(_moved, found.first - len(found.above)), line) for line in diff)
    return "".join(line if line.endswith("\n") else f"{line}{_NO_BREAK}" for line in moved).removesuffix("\n")


def apply(content: Mapping[str, Any], changes: Mapping[Path, Any]) -> dict[str, Any]:
    """``content`` with ``changes``: mappings on the way are made, and those that become empty stay."""
    made: Any = copy.deepcopy(dict(content))
    for path, value in changes.items():
        place = made
        for part, below in itertools.pairwise(path):
            if isinstance(place, dict) and not isinstance(place.get(part), list if isinstance(below, int) else dict):
                place[part] = {}
            place = place[part]
        if value is not REMOVED:
            place[path[-1]] = value
        elif isinstance(place, dict):
            place.pop(path[-1], None)
    found: dict[str, Any] = made
    return found


def lines(item: Item) -> Lines | None:
    """The lines of ``item`` in its file; None where they are not known."""
    node, every = item.where.node(), _lines(item.where.text)
    if node is None or node.end_mark.line > len(every):  # as where a text has breaks of its own
        return None
    start, end = node.start_mark, node.end_mark
    first = every[start.line]
    if getattr(node, "flow_style", False):
        last, tail = end.line + 1, every[end.line][end.column :]
    else:
        last, tail = end.line + (end.column > 0 and end.line == len(every) - 1), ""
    own = [" " * start.column + first[start.column :], *every[start.line + 1 : last]]
    own[-1] = own[-1][: len(own[-1]) - len(tail)]
    above = _broken(every, max(0, start.line - _CONTEXT), start.line)
    below = _broken(every, last, last + _CONTEXT)
    return Lines(start.line, first[: start.column], "\n".join(own), tail, "\n" if last < len(every) else "", above, below)


def _broken(every: list[str], begin: int, end: int) -> list[str]:
    """Lines with their breaks: the last one of a text has none, and is none where it is empty."""
    last = len(every) - 1
    return [
        f"{line}\n" if place < last else line
        for place, line in enumerate(every[begin:end], start=begin)
        if place < last or line
    ]


@functools.lru_cache(maxsize=1)
def _lines(text: str) -> list[str]:
    return text.split("\n")


def _moved(by: int, hunk: re.Match[str]) -> str:
    return f"@@ -{int(hunk[1]) + by}{hunk[2] or ''} +{int(hunk[3]) + by}{hunk[4] or ''} @@"
