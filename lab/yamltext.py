"""YAML and JSON text as plain data, read as Kubernetes' tools read it, and the line of each field in it. Pure."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from lab import yamlnodes
from lab.errors import InputError, Unusable, report
from lab.yamlnodes import DEEPEST, Loader, line_of

MOST_BYTES = 10_000_000  # of a file
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))
TEMPLATE = re.compile(r"\{\{.*?(?:\}\}|$)|\{%.*?(?:%\}|$)|\$\{[^}\n]*\}?|\$\([A-Za-z_][\w.-]*\)")
_QUOTED = re.compile(r"""'[^']*'|"(?:[^"\\]|\\.)*"|(?:^|\s)#.*""")  # words in quotes, and comments


class Source(str):
    """The name of a file, in errors, which knows the lines of one of its objects: of document ``number``, under ``path``."""

    text: str
    number: int
    path: tuple[Hashable, ...]

    @classmethod
    def of(cls, name: object, text: str, number: int = 0, path: Sequence[Hashable] = ()) -> Source:
        """The source ``name`` of ``text``."""
        made = cls(name)
        made.text, made.number, made.path = text, number, tuple(path)
        return made

    def under(self, *path: Hashable) -> Source:
        """The source of what lies under ``path`` of this object."""
        return Source.of(str(self), self.text, self.number, (*self.path, *path))

    def line(self, field: str) -> int | None:
        """The line, from 1, of ``field``, such as "spec.triggers[0].type", or of the last part of it that is written."""
        nodes = _nodes(self.text)
        if self.number >= len(nodes):
            return None
        return _line_below(nodes[self.number], self.path, field, first=self.number > 0)

    def node(self) -> yaml.Node | None:
        """The node of this object; None for JSON that is no YAML."""
        nodes = _nodes(self.text)
        node = nodes[self.number] if self.number < len(nodes) else None
        for part in self.path:
            node = _child(node, part)
        return node


@functools.lru_cache(maxsize=1)  # a file has one text, and may have many errors
def _nodes(text: str) -> list[yaml.Node]:
    """The nodes of the documents in ``text``; none for JSON that is no YAML."""
    try:
        return list(yaml.compose_all(text, Loader))
    except (yaml.YAMLError, RecursionError):
        return []


@dataclass(frozen=True)
class Document:
    """What one document of a text holds: plain data, and where it was read."""

    content: Any
    where: Source


def decoded(raw: bytes, where: object, most: int = MOST_BYTES) -> str:
    """The text in ``raw``, ``most`` bytes of it: UTF-8, or what its byte order mark says. Raises :class:`InputError`."""
    if len(raw) > most:
        raise Unusable(where, f"more than {most:,} bytes")
    mark, name = next(((mark, name) for mark, name in _MARKS if raw.startswith(mark)), (b"", "utf-8"))
    try:
        return raw.removeprefix(mark).decode(name)
    except UnicodeDecodeError as error:
        raise Unusable(where, f"no text: byte {error.start + len(mark):,} is not {name.upper()}") from None


def lenient(raw: bytes) -> str:
    """:func:`decoded`, with a mark in place of what is no text."""
    try:
        return decoded(raw, "")
    except InputError:
        return raw.decode(errors="replace")


def documents(text: str, where: object) -> list[Document]:
    """The documents in ``text``, which ``---`` separates, without the empty ones. One that begins with a brace may be JSON.

    Raises :class:`InputError` for what can't be read, with its line. A key that is written twice is reported
    (:func:`lab.errors.report`), and its last value taken.
    """
    found = _json(text, where) if text.lstrip()[:1] in ("{", "[") else None
    if found is None:
        try:
            found = list(_yaml(text, where))
        except yaml.YAMLError as error:
            raise _unreadable(text, where, error) from None
    return [one for one in found if one.content is not None]


def written(content: Any, **style: Any) -> str:
    """``content`` as YAML that Kubernetes' tools and :func:`documents` read as it is; ``style`` is PyYAML's."""
    return str(yaml.dump(content, Dumper=yamlnodes.Dumper, sort_keys=False, **style))


def _json(text: str, where: object) -> list[Document] | None:
    """The JSON in ``text``; None where it is none, as YAML may be."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) < len(items):
            keys = [key for key, _ in items]
            twice.extend(key for key in made if keys.count(key) > 1)
        return made

    def constant(word: str) -> Any:
        raise ValueError(word)

    try:
        content = json.loads(text, object_pairs_hook=pairs, parse_constant=constant)
        _check_letters(text, content)
    except (ValueError, RecursionError):
        return None  # the same text is refused as YAML
    if _depth(content) > DEEPEST:
        return None
    for key in twice:
        report(Unusable(where, f"{key} is written twice in one object: kubectl refuses it"))
    return [Document(content, Source.of(where, text))]


def _depth(content: Any, level: int = 0) -> int:
    """How deep plain data is; the walk ends where it is too deep."""
    if level > DEEPEST or not isinstance(content, dict | list):
        return level
    inner = content.values() if isinstance(content, dict) else content
    return max((_depth(one, level + 1) for one in inner), default=level + 1)


def _yaml(text: str, where: object) -> Iterator[Document]:
    """The documents of YAML text. Raises :class:`yaml.YAMLError`, and :class:`InputError` for what Kubernetes' tools refuse."""
    yamlnodes.check_depth(text, where)
    loader, number = Loader(text), 0
    try:
        while loader.check_node():
            node = loader.get_node()
            if node is not None:
                yield Document(_built(loader, node, text, where), Source.of(where, text, number))
            number += 1
    finally:
        loader.dispose()


def _built(loader: Loader, node: yaml.Node, text: str, where: object) -> Any:
    try:
        yamlnodes.check(node, where)
    except Unusable as error:
        raise _template(text, where) or error from None
    try:
        content = loader.construct_document(node)
        _check_letters(text, content)
    except (ValueError, LookupError, AttributeError) as error:  # of a tag, and of what does not fit it
        raise Unusable(where, f"a value that can't be read ({error})", line_of(node)) from None
    return content


def _check_letters(text: str, content: Any) -> None:
    """Raise :class:`ValueError` for half a character, which an escape can write and no terminal or file can take."""
    if "\\" in text:
        json.dumps(content, ensure_ascii=False, default=str, skipkeys=True).encode()


def _line_below(node: yaml.Node, path: Sequence[Hashable], field: str, first: bool) -> int | None:
    """The line of ``field`` below ``path`` in ``node``, or of the last part that is there.

    Where no part is there it is the ``first`` line of the object, or None.
    """
    for part in path:
        inner = _child(node, part)
        if inner is None:
            return None
        node = inner
    line = line_of(node) if path or first else None
    while field:
        if isinstance(node, yaml.SequenceNode) and (found := re.match(r"\[(\d{1,9})\]\.?", field)):
            if int(found[1]) >= len(node.value):
                break
            node, field = node.value[int(found[1])], field[found.end() :]
            line = line_of(node)
        elif isinstance(node, yaml.MappingNode):
            fits = [
                (key, value) for key, value in reversed(node.value) if isinstance(key.value, str) and _begins(field, key.value)
            ]
            if not fits:
                field = field.partition(".")[2]  # a part that is not written may only be missing around the next
                continue
            key, node = max(fits, key=lambda pair: len(pair[0].value))
            field = field[len(key.value) :].removeprefix(".")
            line = line_of(key)
        else:
            break
    return line


def _fields(node: yaml.Node) -> dict[Hashable, yaml.Node]:
    """The values in a mapping by their fields, or in a list by their places."""
    if isinstance(node, yaml.SequenceNode):
        return dict(enumerate(node.value))
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key.value, str)}


def _child(node: yaml.Node | None, part: Hashable) -> yaml.Node | None:
    """The value at ``part``, a field or a place, of ``node``."""
    if isinstance(node, yaml.SequenceNode) and isinstance(part, int):
        return node.value[part] if part < len(node.value) else None
    return _fields(node).get(part) if node is not None else None


def _begins(field: str, key: str) -> bool:
    return bool(key) and field.startswith(key) and field[len(key) : len(key) + 1] in ("", ".", "[")


def _unreadable(text: str, where: object, error: yaml.YAMLError) -> InputError:
    """What ``error`` says, with its line, and whether the text is a template that has not been rendered."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    words = str(getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable")
    if mark is not None:
        line, column = mark.line + 1, f" at column {mark.column + 1}"
    else:
        line, column = text.count("\n", 0, int(getattr(error, "position", None) or 0)) + 1, ""
    return _template(text, where, words) or Unusable(where, f"no YAML{column}: {words}", line)


def _template(text: str, where: object, words: str = "") -> InputError | None:
    """The error of a text with a bare ``{{ … }}`` or the like; ``words`` are those of the reader. None where there is none."""
    lines = text.splitlines()
    bare = (TEMPLATE.search(_QUOTED.sub(lambda quoted: " " * len(quoted[0]), line)) for line in lines)
    number, found = next(((number, one) for number, one in enumerate(bare, start=1) if one), (0, None))
    if found is None:
        return None
    left = lines[number - 1][found.start() : found.end()]
    stumbled = f" (no YAML: {words})" if words else ""
    return Unusable(where, f"{left[:60]} is left of a template: render it first (helm template, envsubst){stumbled}", number)
