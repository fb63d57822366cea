"""The numbers of the handbook and of the page on scales: ``python -m tests.handbook`` fills them in from the table of verdicts.

An entry names its numbers once, in a comment, and shows each where a sentence needs it::

    <!-- numbers
    late = 2026-11-26-any-point | test_reactions_at_any_point | slowest reaction
    -->
    no reaction took longer than <!--late:most:.1f-->72.4<!----> s

A number is the session, a part of the test's id, and a part of ``quantity: claim``. Rows that differ in quantity or claim are
not one number. Besides sessions there are ``growth | PART | COST, SIZE`` (docs/growth.json) and ``scales | SCALE | MEASURE``,
whose rows are the relative errors against real time on each profile (lab/measure/similarity.yaml). The fields are ``value``,
``low``, ``high`` (of the interval), ``bound``, ``n``, ``held`` and ``fell`` (runs), ``verdict``, and ``least`` and ``most`` of
several rows. The format is that of Python; in % a space is added.
"""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Mapping, Sequence

import yaml

from lab import paths

PAGE, _ = PAGES = (paths.PROJECT / "docs" / "handbook.md", paths.PROJECT / "docs" / "scale.md")
VERDICTS = paths.PROJECT / "docs" / "evidence" / "verdicts.csv"
GROWTH = paths.PROJECT / "docs" / "growth.json"
SIMILARITY = paths.PROJECT / "lab" / "measure" / "similarity.yaml"
_BLOCK = re.compile(r"<!-- numbers\n(?P<names>.*?)-->", re.DOTALL)
_NAME = re.compile(r"^([\w-]+) = (.+)$", re.MULTILINE)
_MARK = re.compile(r"<!--(?P<name>[\w-]+):(?P<field>[a-z]+)(?::(?P<format>[^>]*?))?-->(?P<shown>[^<\n]*)<!---->")

Row = Mapping[str, str]


def verdicts() -> list[Row]:
    """The rows of the table, and those of costs by size and of errors of scales in its form."""
    with VERDICTS.open(encoding="utf-8", newline="") as file:
        rows: list[Row] = list(csv.DictReader(file))
    for part in json.loads(GROWTH.read_text(encoding="utf-8")):
        for cost in part["costs"]:
            rows += [_row("growth", part["of"], f"{cost['what']}, {size}", value) for size, value in cost["values"].items()]
    for error in yaml.safe_load(SIMILARITY.read_text(encoding="utf-8"))["rows"]:
        if error["relative"] and error["estimate"] is not None:
            rows.append(
                _row("scales", error["scale"], error["name"], error["estimate"], n=error["n"], verdict=error["verdict"])
            )
    return rows


def rows_of(source: str, table: Sequence[Row]) -> list[Row]:
    """The rows of one quantity of one claim that ``source`` names, at least one. Raises ValueError."""
    parts = [part.strip() for part in source.split("|")]
    if len(parts) != 3:
        raise ValueError(f"{source!r}: three parts are wanted, session | test | quantity or claim")
    session, test, what = parts
    of = [row for row in table if row["session"] == session and test in row["test"]]
    of = [row for row in of if row["test"] == test] or of
    found = [row for row in of if what in (row["quantity"], row["claim"])] or [row for row in of if what in _sentence(row)]
    if len({(row["test"], _sentence(row)) for row in found}) != 1:
        raise ValueError(f"{source!r} is not one number: {sorted({_sentence(row) for row in found})}")
    return found


def shown(rows: Sequence[Row], field: str, form: str | None) -> str:
    """A ``field`` of ``rows`` in the format ``form``. Raises ValueError where they have none, or several that differ."""
    if field in ("least", "most"):
        value = (min if field == "least" else max)(float(row["value"]) for row in rows)
        return _formatted(value, form)
    values = {_runs(row, field) if field in ("held", "fell") else row[field] for row in rows}
    if len(values) != 1 or "" in values:
        raise ValueError(f"{rows[0]['session']}, {_sentence(rows[0])}: no one {field} in {sorted(values)}")
    text = values.pop()
    return text if field == "verdict" else _formatted(float(text), form)


def filled(page: str, table: Sequence[Row]) -> str:
    """``page`` with each number as ``table`` has it. Raises ValueError for a name or a number that is not there."""
    text, done, names = "", 0, dict[str, str]()
    for block in _BLOCK.finditer(page):
        text += _refilled(page[done : block.end()], names, table)
        done, names = block.end(), dict(_NAME.findall(block["names"]))
        for source in names.values():
            rows_of(source, table)
    return text + _refilled(page[done:], names, table)


def _refilled(text: str, names: Mapping[str, str], table: Sequence[Row]) -> str:
    def number(mark: re.Match[str]) -> str:
        if mark["name"] not in names:
            raise ValueError(f"{mark[0]}: {mark['name']} is none of the entry's numbers: {sorted(names)}")
        new = shown(rows_of(names[mark["name"]], table), mark["field"], mark["format"])
        return mark[0].removesuffix(f"{mark['shown']}<!---->") + f"{new}<!---->"

    return _MARK.sub(number, text)


def _row(session: str, test: str, quantity: str, value: float, n: int = 1, verdict: str = "") -> Row:
    texts = {"session": session, "test": test, "quantity": quantity, "claim": quantity, "value": str(value)}
    return texts | {"n": str(n), "held": "", "verdict": verdict, "low": "", "high": "", "bound": ""}


def _runs(row: Row, field: str) -> str:
    held = int(row["held"] or row["verdict"] == "held")  # of a single run the table has the verdict alone
    return str(held if field == "held" else int(row["n"]) - held)


def _sentence(row: Row) -> str:
    return f"{row['quantity']}: {row['claim']}"


def _formatted(value: float, form: str | None) -> str:
    text = format(value, form or "g")
    return f"{text[:-1]} %" if text.endswith("%") else text


def main() -> int:
    """Write the pages with the numbers of the table."""
    for page in PAGES:
        page.write_text(filled(page.read_text(encoding="utf-8"), verdicts()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
