"""Reads YAML files strictly, and plain data field by field: one clear line names what can not be used."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


def known(content: Mapping[str, Any], allowed: Iterable[str], where: object, prefix: str = "") -> None:
    """Raise :class:`InputError` for the first field of ``content`` that is not ``allowed``."""
    names = sorted(allowed)
    for field in content:
        if field not in names:
            raise InputError(where, f"{prefix}{field}", content[field], f"one of the fields {', '.join(names)}")


def number(
    content: Mapping[str, Any],
    field: str,
    where: object,
    least: float,
    most: float,
    default: float | None = None,
    prefix: str = "",
) -> float:
    """The finite number in ``field``. Raises :class:`InputError` when it is missing, not a number or outside [least, most]."""
    value = content.get(field, default)
    allowed = f"a number from {least:g} to {most:g}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise InputError(where, f"{prefix}{field}", value, allowed)
    return float(value)


def whole(
    content: Mapping[str, Any], field: str, where: object, least: int, most: int, default: int | None = None, prefix: str = ""
) -> int:
    """The whole number in ``field``. Raises :class:`InputError` like :func:`number`."""
    value = number(content, field, where, least, most, default, prefix)
    if value != int(value):
        raise InputError(where, f"{prefix}{field}", value, f"a whole number from {least} to {most}")
    return int(value)


def mapping(content: Mapping[str, Any], field: str, where: object) -> Mapping[str, Any]:
    """The mapping in ``field``. Raises :class:`InputError` when it is none."""
    value = content.get(field)
    if not isinstance(value, dict):
        raise InputError(where, field, value, "a mapping")
    return value


_NAMES = {str: "text", dict: "a mapping", int: "a whole number", list: "a list"}


def field_value(content: Mapping[str, Any], field: str, kind: type, where: object, prefix: str) -> Any:
    """The ``kind`` in ``field`` of ``content``, which lies at ``prefix``. Raises :class:`InputError` for anything else."""
    found = content.get(field)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise InputError(where, f"{prefix}{field}", found, _NAMES[kind])
    return found
