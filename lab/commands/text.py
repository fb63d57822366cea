"""Plain tables for a terminal, and JSON. Pure: rows go in, text comes out."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from lab import number_format

SCHEMA = 1  # of lab.commands.answers


def table(rows: Sequence[Sequence[str]], *, numbers: Sequence[int] = ()) -> str:
    """Return ``rows`` in columns. The first row is the head, and the columns ``numbers`` are set to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        places = enumerate(zip(row, widths, strict=True))
        cells = [cell.rjust(width) if n in numbers else cell.ljust(width) for n, (cell, width) in places]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def number(value: float | None) -> str:
    """Return a figure for people, or ``no data`` for None."""
    return "no data" if value is None else number_format.number(value)


def as_json(content: Mapping[str, object], *, schema: bool = True) -> str:
    """Return ``content`` as readable JSON, after the version of its ``schema`` if it has one. Infinity and NaN become null."""
    return json.dumps(_plain(({"schema": SCHEMA} if schema else {}) | dict(content)), indent=1)


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(name): _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float):
        return round(value, 3) if abs(value) < float("inf") else None
    return value
