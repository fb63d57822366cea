"""Reads files of YAML or JSON strictly, and plain data field by field: one clear line names each thing that can't be used."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab import yamltext
from lab.errors import InputError, Unusable, closest, refused, report
from lab.yamltext import Document

STDIN = Path("-")


def parse(text: str, where: object) -> dict[str, Any]:
    """The mapping in ``text``. Raises :class:`InputError` when it is not YAML, or not one mapping."""
    found: dict[str, Any] = one(text, where).content
    return found


def one(text: str, where: object) -> Document:
    """The one document of ``text``, a mapping, with the source that knows its lines. Raises like :func:`parse`."""
    found = yamltext.documents(text, where)
    if not found:
        raise Unusable(where, "nothing is in it")
    if len(found) > 1:
        raise Unusable(where, f"{len(found)} documents are in it; allowed: one", found[1].where.line("") or None)
    return _mapping(found[0])


def _mapping(found: Document) -> Document:
    if not isinstance(found.content, dict):
        raise Unusable(found.where, f"{type(found.content).__name__} is all that is in it; allowed: a mapping of fields")
    return found


def load(text: str) -> Any:
    """The one document in ``text``, of whatever kind. Raises :class:`InputError`."""
    found = yamltext.documents(text, "text")
    return found[0].content if found else None


def read(path: Path) -> dict[str, Any]:
    """The mapping in the file at ``path``. Raises :class:`InputError` when there is none."""
    found: dict[str, Any] = document(path).content
    return found


def document(path: Path) -> Document:
    """The one document of the file at ``path``, a mapping, or of standard input for "-". Raises like :func:`read`."""
    return one(text(path), name(path))


def documents(path: Path) -> list[dict[str, Any]]:
    """The mappings in the file at ``path``, which are separated by ``---``. Raises :class:`InputError` like :func:`read`."""
    return [_mapping(found).content for found in yamltext.documents(text(path), path)]


def name(path: Path) -> str:
    """What errors call the file at ``path``."""
    return "standard input" if path == STDIN else str(path)


def text(path: Path, most: int = yamltext.MOST_BYTES) -> str:
    """The text in the file at ``path``, or of standard input for "-": ``most`` bytes of it. Raises :class:`InputError`."""
    try:
        if path == STDIN:
            return yamltext.decoded(sys.stdin.buffer.read(most + 1), name(path), most)
        with path.open("rb") as file:
            return yamltext.decoded(file.read(most + 1), path, most)
    except (OSError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise Unusable(path, f"{getattr(error, 'strerror', None) or error}; allowed: a readable file") from None


def present(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """``content`` without its nulls: to the API server a null field is one that is not written."""
    return {field: value for field, value in content.items() if value is not None}


_NAMES = {str: "text", dict: "a mapping", int: "a whole number", list: "a list"}
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_NUMBER = re.compile(r"[-+]?\d{1,15}(\.\d{1,9})?([eE][-+]?\d{1,2})?")
_DURATION = re.compile(rf"(\d{{1,9}}(?:\.\d{{1,9}})?)\s*({'|'.join(_SECONDS)})")
_CLOCK = re.compile(r"(?:(\d{1,3}):)?(\d{1,3}):(\d{1,2})")


def as_number(value: object, unit: str) -> str:
    """The number that text such as "300", "1e3", "5m" or "30:00" probably means in ``unit``; "" where it is none."""
    if not isinstance(value, str):
        return ""
    seconds = None
    if _NUMBER.fullmatch(value):
        return f"{float(value):.15g}"
    if unit == "s" and (found := _DURATION.fullmatch(value)):
        seconds = float(found[1]) * _SECONDS[found[2]]
    elif unit == "s" and (found := _CLOCK.fullmatch(value)):
        hours, minutes, rest = (int(part or 0) for part in found.groups())
        seconds = hours * 3600 + minutes * 60 + rest
    return "" if seconds is None else f"{seconds:.10g}"


@dataclass(frozen=True)
class Fields:
    """A mapping that is read field by field. It lies at ``place``, such as "spec.", in its source ``where``.

    Every reader reports (:func:`lab.errors.report`) an :class:`InputError` with source, field, value and what is allowed. Where
    errors are gathered it then gives what is allowed in place of what is written.
    """

    content: Mapping[str, Any]
    where: object
    place: str = ""

    def error(self, field: str, allowed: str, meant: str = "") -> InputError:
        """The error that says that what ``field`` holds is not ``allowed``, and what was probably ``meant``."""
        return InputError(self.where, f"{self.place}{field}", self.content.get(field), allowed, meant)

    def refuse(self, field: str, allowed: str, meant: str = "") -> None:
        """Report :meth:`error`."""
        report(self.error(field, allowed, meant))

    def sound(self, *fields: str) -> bool:
        """Whether nothing in ``fields`` was refused, so that it can be compared with others."""
        return not refused(self.where, *(f"{self.place}{field}" for field in fields))

    def known(self, *allowed: str, mistaken: Mapping[str, str] | None = None) -> None:
        """Refuse each field that is not ``allowed``; ``mistaken`` says what is meant by a common mistake."""
        for field in self.content:
            if field in allowed:
                continue
            meant = (mistaken or {}).get(field) or closest(field, allowed)
            others = "" if meant else f"one of the fields {', '.join(sorted(allowed))}"
            instead = [f"{self.place}{meant}"] if meant in allowed and meant not in self.content else []
            error = self.error(field, others, meant)
            if error.value is None:  # the field is there, and holds nothing
                error = InputError(self.where, error.field, "", others, meant)
            report(error, *instead)

    def number(self, field: str, least: float, most: float, default: float | None = None, unit: str = "") -> float:
        """The number in ``field``, within [least, most], in ``unit``."""
        return self._number(field, least, most, default, unit, whole=False)

    def whole(self, field: str, least: int, most: int, default: int | None = None, unit: str = "") -> int:
        """The whole number in ``field``, within [least, most], in ``unit``."""
        return int(self._number(field, least, most, default, unit, whole=True))

    def _number(self, field: str, least: float, most: float, default: float | None, unit: str, *, whole: bool) -> float:
        value = self.content.get(field, default)
        number = isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most
        if not number or (whole and value != int(value)):
            kind = "a whole number" if whole else "a number"
            meant = as_number(value, unit)
            meant = meant if meant and least <= float(meant) <= most else ""
            self.refuse(field, f"{kind} from {least:.15g} to {most:.15g}{unit and f' {unit}'}", meant)
            return least if default is None else default
        return float(value)

    def flag(self, field: str) -> bool:
        """Whether ``field`` is true; it is false where it is not written."""
        value = self.content.get(field, False)
        if not isinstance(value, bool):
            self.refuse(field, "true or false")
            return False
        return value

    def text(self, field: str, allowed: str) -> str:
        """The words in ``field``, one at least."""
        value = self.content.get(field)
        if not isinstance(value, str) or not value:
            self.refuse(field, allowed)
            return ""
        return value

    def texts(self, *fields: str) -> None:
        """Refuse each of ``fields`` that is written and no text."""
        for field in fields:
            if not isinstance(self.content.get(field, ""), str):
                self.refuse(field, _NAMES[str])

    def choice(self, field: str, *choices: str, default: str | None = None) -> str:
        """The one of ``choices`` that ``field`` names."""
        value = self.content.get(field, default)
        if value not in choices:
            allowed = " or ".join(filter(None, (", ".join(choices[:-1]), choices[-1])))
            self.refuse(field, allowed, closest(value, choices) if choices[1:] else "")
            return choices[0] if default is None else default
        return str(value)

    def value(self, field: str, kind: type) -> Any:
        """What is in ``field``, of this ``kind``."""
        value = self.content.get(field)
        if not isinstance(value, kind) or isinstance(value, bool):
            self.refuse(field, _NAMES[kind])
            return kind()
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
            self.refuse(field, "a list of mappings")
            return []
        return [Fields(present(item), self.where, f"{self.place}{field}[{n}].") for n, item in enumerate(found)]
