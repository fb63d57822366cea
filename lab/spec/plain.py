"""Reading plain data back into types: what JSON of the lab's own holds, checked field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from lab.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_NAMES = {str: "text", dict: "a mapping", int: "a whole number", list: "a list"}


def value(content: Mapping[str, Any], field: str, kind: type, where: object, prefix: str) -> Any:
    """The ``kind`` in ``field`` of ``content``, which lies at ``prefix``. Raises :class:`InputError` for anything else."""
    found = content.get(field)
    if not isinstance(found, kind) or isinstance(found, bool):
        raise InputError(where, f"{prefix}{field}", found, _NAMES[kind])
    return found


def fields_of(kind: type[DataclassInstance], content: object, where: object, place: str) -> dict[str, Any]:
    """The mapping ``content`` at ``place``, which has exactly the fields of ``kind``. Raises :class:`InputError` otherwise."""
    names = [field.name for field in fields(kind)]
    if not isinstance(content, dict) or set(content) != set(names):
        raise InputError(where, place, content, f"a mapping of {', '.join(names)}")
    return content
