"""The table of all verdicts of the archive's sessions, for tools and people: ``docs/evidence/verdicts.csv``."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import Any

from lab import wholefile
from lab.archive.lock import TABLE
from lab.errors import InputError


@dataclass(frozen=True)
class Row:
    """One verdict, every field as text; "" where there is none.

    ``value`` (of several runs their median), ``bound``, ``low`` and ``high`` are in ``unit``. ``low`` to ``high`` holds the
    true median with ``confidence``, from 0 to 1; ``n`` is the number of runs or pairs, ``held`` in how many the claim held.
    ``scale`` is the one that the test ran at, ``real_time`` the mark of a compressed one: what its claim is worth at real time.
    """

    session: str
    test: str
    claim: str
    quantity: str
    value: str
    unit: str
    operator: str
    bound: str
    kind: str
    low: str
    high: str
    confidence: str
    n: str
    held: str
    verdict: str
    scale: str
    real_time: str
    runtime: str
    machine: str
    commit: str
    source: str


COLUMNS = [one.name for one in fields(Row)]


def rows(session: str, content: Mapping[str, Any]) -> list[Row]:
    """The rows of ``session``, whose session.json has ``content``."""
    head = content["head"]
    place = {name: str(head.get(name, "")) for name in ("runtime", "machine", "commit")}
    scales = [one.partition(":")[0] for one in str(head.get("scale", "")).split("; ")]
    found = []
    for test in content["tests"]:
        marks = [verdict["real_time"] for verdict in test["rows"]]
        # A test may have a scale of its own: the marks of its claims name it.
        own = next((name for name in scales if any(mark.startswith((f"{name} ", f"{name};")) for mark in marks)), scales[0])
        found += [_row(session, test["id"], verdict, place | {"scale": own}) for verdict in test["rows"]]
    return found


def _row(session: str, test: str, verdict: Mapping[str, Any], place: Mapping[str, str]) -> Row:
    several = verdict.get("repeats") or verdict.get("pairs") or {}
    return Row(
        session=session,
        test=test,
        claim=verdict["why"],
        quantity=verdict["objective"],
        value=_number(verdict["measured"]),
        unit=verdict["unit"],
        operator=verdict["operator"],
        bound=_number(verdict["bound"]),
        kind=verdict["kind"],
        low=_number(several.get("low")),
        high=_number(several.get("high")),
        confidence=_number(several.get("confidence")),
        n=str(several.get("n", 1)),
        held=str(several.get("held", "")),
        verdict=verdict["verdict"],
        real_time=verdict["real_time"],
        source=verdict["source"],
        **place,
    )


def _number(value: float | None) -> str:
    """Seven digits: more than any measure means."""
    return "" if value is None else f"{value:.7g}"


def read(folder: Path) -> list[Row]:
    """The table in ``folder``. Raises :class:`InputError` without one, and for one of other columns."""
    file = folder / TABLE
    if not file.is_file():
        raise InputError(file, "file", "none", "the table of verdicts, as a clone of the lab's repository has it")
    with file.open(newline="") as text:
        reader = csv.DictReader(text)
        if reader.fieldnames != COLUMNS:
            raise InputError(file, "columns", reader.fieldnames, ", ".join(COLUMNS))
        return [Row(**row) for row in reader]


def write(table: Iterable[Row], folder: Path) -> None:
    """Write the table into ``folder``, session by session, the rows of each in their order."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(astuple(row) for row in sorted(table, key=lambda row: row.session))
    wholefile.write(folder / TABLE, text.getvalue())
