"""Plain tables and curves for a terminal, pieces of Markdown, and JSON. Pure: values go in, text comes out."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from lab import number_format

SCHEMA = 1  # of lab.commands.answers
BARS = "▁▂▃▄▅▆▇█"
WIDTH = 60  # of a curve


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


def curve(t: npt.NDArray[np.float64], values: npt.NDArray[Any], end: float, most: float) -> str:
    """Return bars for the greatest of ``values``, each of which holds from its ``t`` on, in each part of 0 to ``end``.

    A full bar is ``most``.
    """
    starts = np.searchsorted(t, np.linspace(0, end, WIDTH, endpoint=False), side="right") - 1
    peaks = np.maximum.reduceat(values, np.maximum(starts, 0))
    return "".join(BARS[min(len(BARS) - 1, int(len(BARS) * one / most))] if most > 0 else BARS[0] for one in peaks.tolist())


def fenced(language: str, lines: Sequence[str]) -> list[str]:
    """Return ``lines`` as a block of Markdown, with a longer fence than any in them."""
    fence = "`" * max([3, *(len(run) + 1 for line in lines for run in re.findall("`+", line))])
    return [f"{fence}{language}", *lines, fence]


def escaped(text: str) -> str:
    """Return ``text`` as one line of Markdown, in which code alone is markup."""
    return re.sub(r"([|<>*\[\]\\])", r"\\\1", " ".join(text.split()))


def code(text: str) -> str:
    """Return ``text`` as code within a line of Markdown."""
    plain = " ".join(text.replace("`", "'").split())
    return f"`{plain}`"


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
