"""Reads YAML files strictly, and plain data field by field: one clear line names what can not be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from lab.errors import InputError


def parse(text: str, where: object) -> dict[str, Any]:
    """The mapping in ``text``. Raises :class:`InputError` when it is not YAML or not a mapping."""
    try:
        content = load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}" if mark else "somewhere"
        raise InputError(where, line, getattr(error, "problem", None) or "unreadable", "YAML") from None
    if not isinstance(content, dict):
        raise InputError(where, "(whole file)", type(content).__name__, "a mapping of fields")
    return content


def load(text: str) -> Any:
    """The one document in ``text``, with libyaml where PyYAML has it: it takes a tenth of the time.

    Raises :class:`yaml.YAMLError` in the words of PyYAML's own parser.
    """
    try:
        return yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except yaml.YAMLError:
        return yaml.safe_load(text)


def read(path: Path) -> dict[str, Any]:
    """The mapping in the file at ``path``. Raises :class:`InputError` when there is none."""
    return parse(_text(path), path)


def documents(path: Path) -> list[dict[str, Any]]:
    """The mappings in the file at ``path``, which are separated by ``---``. Raises :class:`InputError` like :func:`read`."""
    return [parse(part, path) for part in re.split(r"(?m)^---$", _text(path))]


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise InputError(path, "(file)", reason, "a readable YAML file") from None


def present(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """``content`` without its nulls: to the API server a null field is one that is not written."""
    return {field: value for field, value in content.items() if value is not None}


_NAMES = {str: "text", dict: "a mapping", int: "a whole number", list: "a list"}


@dataclass(frozen=True)
class Fields:
    """A mapping that is read field by field. It lies at ``place``, such as "spec.", in its source ``where``.

    Every reader raises :class:`InputError` with source, field, value and what is allowed.
    """

    content: Mapping[str, Any]
    where: object
    place: str = ""

    def error(self, field: str, allowed: str) -> InputError:
        """The error that says that what ``field`` holds is not ``allowed``."""
        return InputError(self.where, f"{self.place}{field}", self.content.get(field), allowed)

    def known(self, *allowed: str) -> None:
        """Refuse the first field that is not ``allowed``."""
        for field in self.content:
            if field not in allowed:
                raise self.error(field, f"one of the fields {', '.join(sorted(allowed))}")

    def number(self, field: str, least: float, most: float, default: float | None = None) -> float:
        """The number in ``field``, within [least, most]."""
        value = self.content.get(field, default)
        if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
            raise self.error(field, f"a number from {least:g} to {most:g}")
        return float(value)

    def whole(self, field: str, least: int, most: int, default: int | None = None) -> int:
        """The whole number in ``field``, within [least, most]."""
        value = self.number(field, least, most, default)
        if value != int(value):
            raise self.error(field, f"a whole number from {least} to {most}")
        return int(value)

    def flag(self, field: str) -> bool:
        """Whether ``field`` is true; it is false where it is not written."""
        value = self.content.get(field, False)
        if not isinstance(value, bool):
            raise self.error(field, "true or false")
        return value

    def text(self, field: str, allowed: str) -> str:
        """The words in ``field``, one at least."""
        value = self.content.get(field)
        if not isinstance(value, str) or not value:
            raise self.error(field, allowed)
        return value

    def choice(self, field: str, *choices: str, default: str | None = None) -> str:
        """The one of ``choices`` that ``field`` names."""
        value = self.content.get(field, default)
        if value not in choices:
            raise self.error(field, " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1]))))
        return str(value)

    def value(self, field: str, kind: type) -> Any:
        """What is in ``field``, of this ``kind``."""
        value = self.content.get(field)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise self.error(field, _NAMES[kind])
        return value

    def under(self, field: str, *allowed: str, optional: bool = False) -> Fields:
        """The mapping in ``field`` without its nulls, with no other fields than those ``allowed``, if any are named.

        One that is ``optional`` is empty where it is null or not written.
        """
        found = {} if optional and self.content.get(field) is None else self.value(field, dict)
        fields = Fields(present(found), self.where, f"{self.place}{field}.")
        if allowed:
            fields.known(*allowed)
        return fields

    def each(self, field: str) -> list[Fields]:
        """The mappings in the list ``field``, without their nulls; none where it is not written."""
        found = self.content.get(field, [])
        if not isinstance(found, list) or not all(isinstance(item, dict) for item in found):
            raise self.error(field, "a list of mappings")
        return [Fields(present(item), self.where, f"{self.place}{field}[{n}].") for n, item in enumerate(found)]
