"""The numbers of the handbook and of the page on scales: ``python -m tests.handbook`` fills them in from the table of verdicts.

An entry names its numbers once, in a comment, and shows each where a sentence needs it::

    <!-- numbers
    late = 2026-11-26-any-point | test_reactions_at_any_point | slowest reaction
    -->
    no reaction took longer than <!--late:most:.1f-->72.4<!----> s

A number is the session, a part of the test's id, and a part of ``quantity: claim``. Rows that differ in quantity or claim are
not one number. Besides sessions there are ``docs/growth.json | PART | COST, SIZE`` and ``lab/measure/similarity.yaml | SCALE |
MEASURE``, whose rows are the relative errors against real time on each profile. The fields are ``value``, ``low``, ``high`` (of
the interval), ``bound``, ``n``, ``held`` and ``fell`` (runs), ``verdict``, and ``least`` and ``most`` of several rows. A format
is one of Python's; in % a space is added.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial

from lab import paths, yamlfile

PAGE, *_ = PAGES = tuple(paths.PROJECT / "docs" / f"{name}.md" for name in ("handbook", "scale", "kind"))
VERDICTS, GROWTH, SIMILARITY = "docs/evidence/verdicts.csv", "docs/growth.json", "lab/measure/similarity.yaml"
_BLOCK = re.compile(r"<!-- numbers\n(?P<names>.*?)-->", re.DOTALL)
_NAME = re.compile(r"^([\w-]+) = (.+)$", re.MULTILINE)
_MARK = re.compile(r"<!--(?P<name>[\w-]+):(?P<field>[a-z]+)(?::(?P<format>[^>]*?))?-->(?P<shown>[^<\n]*)<!---->")
_HTML = re.compile(r"^\s*(?:[-*>]\s+)?<!--[\w-]+:.*$", re.MULTILINE)

Row = Mapping[str, str]


@cache
def verdicts() -> list[Row]:
    """The rows of the table, and those of costs by size and of errors of scales in its form."""
    rows: list[Row] = list(csv.DictReader(_text(VERDICTS).splitlines()))
    for part in json.loads(_text(GROWTH)):
        for cost in part["costs"]:
            rows += [_row(GROWTH, part["of"], f"{cost['what']}, {size}", value) for size, value in cost["values"].items()]
    for error in yamlfile.load(_text(SIMILARITY))["rows"]:
        if error["relative"] and error["estimate"] is not None:
            rows.append(_row(SIMILARITY, error["scale"], error["name"], error["estimate"], error["n"]))
    return rows


def rows_of(source: str, table: Sequence[Row]) -> list[Row]:
    """The rows of one quantity of one claim that ``source`` names, at least one. Raises ValueError."""
    session, test, what = [part.strip() for part in source.split("|")]
    of = [row for row in table if row["session"] == session and test in row["test"]]
    of = [row for row in of if row["test"] == test] or of
    found = [row for row in of if what in (row["quantity"], row["claim"])] or [row for row in of if what in _sentence(row)]
    if len({(row["test"], _sentence(row)) for row in found}) != 1:
        raise ValueError(f"{source!r} is not one number: {sorted({_sentence(row) for row in found})}")
    return found


def filled(page: str, table: Sequence[Row]) -> str:
    """``page`` with each number as ``table`` has it. Raises ValueError for a number that is not there, or is named in vain."""
    if line := _HTML.search(page):
        raise ValueError(f"{line[0]!r}: Markdown takes a line that begins with a comment for HTML")
    blocks = [*_BLOCK.finditer(page)]
    ends = [*(block.end() for block in blocks), len(page)]
    text = page[: ends[0]]
    for block, end in zip(blocks, ends[1:], strict=True):
        numbers = {name: rows_of(source, table) for name, source in _NAME.findall(block["names"])}
        entry = page[block.end() : end]
        if numbers.keys() != (shown := {mark["name"] for mark in _MARK.finditer(entry)}):
            raise ValueError(f"named and shown differ: {sorted(numbers.keys() ^ shown)}")
        text += _MARK.sub(partial(_filled, numbers), entry)
    return text


def _filled(numbers: Mapping[str, Sequence[Row]], mark: re.Match[str]) -> str:
    number = _formatted(_value(numbers[mark["name"]], mark["field"]), mark["format"])
    return mark[0].removesuffix(f"{mark['shown']}<!---->") + f"{number}<!---->"


def _value(rows: Sequence[Row], field: str) -> str:
    if field in ("least", "most"):
        return str((min if field == "least" else max)(float(row["value"]) for row in rows))
    values = {_runs(row, field) if field in ("held", "fell") else row[field] for row in rows}
    if len(values) != 1 or "" in values:
        raise ValueError(f"{rows[0]['session']}, {_sentence(rows[0])}: no one {field} in {sorted(values)}")
    return values.pop()


def _runs(row: Row, field: str) -> str:
    held = int(row["held"] or row["verdict"] == "held")  # of a single run the table has the verdict alone
    return str(held if field == "held" else int(row["n"]) - held)


def _formatted(value: str, form: str | None) -> str:
    if value.isalpha():
        return value
    text = format(float(value), form or "g")
    return f"{text[:-1]} %" if text.endswith("%") else text


def _sentence(row: Row) -> str:
    return f"{row['quantity']}: {row['claim']}"


def _row(session: str, test: str, quantity: str, value: float, n: int = 1) -> Row:
    texts = {"session": session, "test": test, "quantity": quantity, "claim": quantity, "value": str(value)}
    return texts | {"n": str(n), "held": "", "verdict": "", "low": "", "high": "", "bound": ""}


def _text(name: str) -> str:
    return (paths.PROJECT / name).read_text(encoding="utf-8")


if __name__ == "__main__":
    for one in PAGES:
        one.write_text(filled(one.read_text(encoding="utf-8"), verdicts()), encoding="utf-8")
