"""The nodes of YAML text as Kubernetes' tools take them. Pure.

Refused are a key that is written twice, tags, keys that are no text, and aliases that hold themselves or blow the text up. A
date is its text. So is a number that only YAML 1.1 knows: 30:00, which would be 1,800.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import yaml

from lab.errors import Unusable, report

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml takes a tenth of the time

MOST_VALUES = 1_000_000  # in a file
MOST_BY_ALIAS = 10_000  # in a file with aliases, each of which counts as all that it stands for
DEEPEST = 100  # levels of mappings and lists in each other
TAG = "tag:yaml.org,2002:"
_PLAIN = tuple(f"{TAG}{name}" for name in ("str", "int", "float", "bool", "null", "merge", "map", "seq"))
_REPLACED = ("int", "float", "timestamp")
_POWER = r"[eE](-[0-9]{1,3}|\+?([0-9]{1,2}|[12][0-9]{2}|30[0-7]))"  # that no float overflows with
_NUMBER = r"\.[0-9][0-9_]{0,99}|[0-9][0-9_]{0,99}(\.[0-9_]{0,99})?"
_FLOAT = rf"[-+]?({_NUMBER})({_POWER})?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
_INT = r"[-+]?(0|[1-9][0-9_]{0,99}|0o?[0-7]{1,99}|0b[01]{1,99}|0x[0-9a-fA-F]{1,99})"


class Loader(_Base):
    """PyYAML's safe loader, to which a date and a number with a colon are text."""


Loader.yaml_implicit_resolvers = {
    first: [(tag, words) for tag, words in pairs if tag.removeprefix(TAG) not in _REPLACED]
    for first, pairs in _Base.yaml_implicit_resolvers.items()
}
Loader.add_implicit_resolver(f"{TAG}int", re.compile(f"{_INT}$"), list("-+0123456789"))
Loader.add_implicit_resolver(f"{TAG}float", re.compile(f"({_FLOAT})$"), list("-+0123456789."))  # what is no int, as 1e3 and 08


class Dumper(yaml.SafeDumper):
    """PyYAML's safe dumper, which also quotes text that Kubernetes' tools take for a number or a truth value."""


for _tag, _words in (("int", _INT), ("float", f"({_FLOAT})"), ("bool", "[yYnN]")):
    Dumper.add_implicit_resolver(f"{TAG}{_tag}", re.compile(f"{_words}$"), list("-+0123456789.yYnN"))


def line_of(node: yaml.Node) -> int:
    """The line at which ``node`` begins, from 1."""
    return int(node.start_mark.line) + 1


def check_depth(text: str, where: object) -> None:
    """Raise :class:`InputError` for nesting so deep that to build it would exhaust the stack."""
    depth = 0
    for event in yaml.parse(text, Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEEPEST:
            mark = event.start_mark
            raise Unusable(where, f"more than {DEEPEST} levels of mappings and lists", mark.line + 1 if mark else None)


def check(node: yaml.Node, where: object) -> None:
    """Raise :class:`InputError` for what can't be taken; report a key that is written twice."""
    checked = _Checked(where)
    values, depth = checked.size(node, "")
    if values > (MOST_BY_ALIAS if checked.aliases else MOST_VALUES) or depth > DEEPEST:
        words = "aliases that blow the text up" if checked.aliases else "more values than any such file has"
        raise Unusable(where, words, line_of(node))


class _Checked:
    """The nodes of one document that were seen, and what each stands for."""

    def __init__(self, where: object) -> None:
        self.aliases = False
        self._where = where
        self._sizes: dict[int, tuple[int, int]] = {}
        self._open: set[int] = set()

    def size(self, node: yaml.Node, place: str) -> tuple[int, int]:
        """How many values and how many levels ``node`` stands for, each alias counted as what it stands for."""
        if id(node) in self._open:
            raise Unusable(self._where, "an alias that stands for itself", line_of(node))
        if id(node) in self._sizes:
            self.aliases = True
            return self._sizes[id(node)]
        if node.tag not in _PLAIN:
            raise Unusable(self._where, f"the tag {node.tag.replace(TAG, '!!')}: write plain data", line_of(node))
        self._open.add(id(node))
        parts = [self.size(one, at) for at, one in self._parts(node, place)]
        self._open.discard(id(node))
        made = 1 + sum(values for values, _ in parts), 1 + max((depth for _, depth in parts), default=0)
        self._sizes[id(node)] = made
        return made

    def _parts(self, node: yaml.Node, place: str) -> Iterator[tuple[str, yaml.Node]]:
        if isinstance(node, yaml.MappingNode):
            self._check_keys(node, place)
            yield from ((f"{place}{key.value}.", value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            yield from ((f"{place.removesuffix('.')}[{n}].", one) for n, one in enumerate(node.value))

    def _check_keys(self, node: yaml.MappingNode, place: str) -> None:
        first: dict[tuple[str, str], yaml.Node] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode) or key.tag not in _PLAIN:
                raise Unusable(self._where, "a mapping or a list stands where a field's name must be", line_of(key))
            earlier = first.setdefault((key.tag, key.value), key)
            if earlier is not key:
                why = f"{place}{key.value} is written twice, first in line {line_of(earlier)}: kubectl refuses it"
                report(Unusable(self._where, why, line_of(key)))
