"""Plain data, as YAML and JSON have it, read as a type by pydantic: one line names the first field that can't be used.

The programs of pods don't import this module: how fast a pod starts is measured. pydantic is of an extra, so only a reading
imports it.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lab.errors import InputError

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")
_ALLOWED = {
    "missing": "a value",
    **dict.fromkeys(("unexpected_keyword_argument", "extra_forbidden"), "no field of that name"),
    **dict.fromkeys(("dataclass_type", "dict_type"), "a mapping"),
    "int_type": "a whole number",
    "string_type": "text",
}


class Strict:
    """A dataclass that derives from it refuses a field that it does not declare."""

    __pydantic_config__ = {"extra": "forbid"}


def read_file(kind: type[T], file: Path, schema: int | None = None, otherwise: str = "") -> T:
    """The JSON object in ``file`` as a ``kind``. Raises :class:`InputError`, which says ``otherwise`` of another ``schema``."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(file, "content", str(error), "what the lab writes") from None
    if not isinstance(content, dict):
        raise InputError(file, "content", content, "what the lab writes")
    if schema is not None and content.get("schema") != schema:
        raise InputError(file, "schema", content.get("schema"), f"{schema}: {otherwise}")
    return read(kind, content, file)


def read(kind: type[T], content: Any, where: object, prefix: str = "") -> T:
    """``content``, which lies at ``prefix`` of ``where``, as a ``kind``; nothing is converted but a whole number to a float.

    Raises :class:`InputError`.
    """
    from pydantic import ValidationError

    model: Any = kind
    try:
        found: T = adapter(model).validate_json(json.dumps(content, default=str), strict=True, context=where)
        return found
    except ValidationError as refused:
        raise error(refused, where, prefix) from None


@cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """What pydantic makes of ``kind``."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def error(refused: ValidationError, where: object, prefix: str = "") -> InputError:
    """The first error of ``refused`` in one line; one of the lab's own as it is."""
    first = refused.errors()[0]
    if isinstance(own := first.get("ctx", {}).get("error"), InputError):
        return own
    place = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"]).removeprefix(".")
    value = None if first["type"] == "missing" else first["input"]
    allowed = _ALLOWED.get(first["type"], first["msg"].removeprefix("Input should be "))
    return InputError(where, f"{prefix}{place}" or "(whole file)", value, allowed)
