"""The page that sets the same trials on two runtimes side by side: every figure of every pair, and the versions behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from statistics import median
from typing import Any

from lab.host.machine import speed_in_words
from lab.report.build import closed
from lab.report.runtimes import Comparison, Pair, ratio
from lab.report.tables import Table, number, render

NOT_HARDWARE = ("load", "speed")


def write(comparison: Comparison, page: Path) -> tuple[Path, Path]:
    """Write the page and, beside it, the same as Markdown; returns both files. ``page`` ends in ``.html``."""
    content = document(comparison)
    twin = page.with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(closed(render("runtimes.html", **content)), encoding="utf-8")
    twin.write_text(render("runtimes.md", **content), encoding="utf-8")
    return page, twin


def document(comparison: Comparison) -> dict[str, Any]:
    """What both templates show."""
    base, other = comparison.runtimes
    head = ("part", "figure", base, other, f"{other} / {base}")
    left_out = [(f"{runtime}, no counterpart", identity) for runtime, ids in comparison.alone.items() for identity in ids]
    return {
        "title": f"The same trials on {base} and on {other}",
        "runtimes": (base, other),
        "pairs": [
            (pair.name, list(_runs(pair)), Table(head, list(_rows(pair, (base, other))), frozenset({2, 3, 4})))
            for pair in comparison.pairs
        ],
        "environment": Table(("version or machine", base, other), list(_environment(comparison))),
        "left_out": [*left_out, *(("unfinished", one) for one in comparison.unfinished)],
    }


def _runs(pair: Pair) -> Iterator[tuple[str, str]]:
    """(runtime, record) of each run, with how it ended and how busy the machine was when it began."""
    for runtime, records in pair.runs.items():
        for record in records:
            busy = f"load average {record.trial.machine.load[0]:.2f} at its start"
            yield runtime, f"{record.id}, {record.trial.ended}, {busy}"


def _rows(pair: Pair, names: tuple[str, str]) -> Iterator[tuple[str, ...]]:
    """A row a figure, and one for each part that a runtime has no data for, with the reason."""
    for row in pair.rows:
        if not pair.withheld(row.part, row.name):
            one, two = (row.middle(name) for name in names)
            values = (_values(row.values[name]) for name in names)
            yield row.part, row.name, *values, _rounded(ratio(one, two))
    for part, reasons in pair.lacking.items():
        yield part, "no data: " + "; ".join(f"{name}: {why}" for name, why in reasons.items()), "", "", ""


def _values(values: tuple[float, ...]) -> str:
    """One run's value; of several the median, the least and the most."""
    if len(values) < 2:
        return _rounded(values[0] if values else None)
    return f"{_rounded(median(values))} ({_rounded(min(values))} to {_rounded(max(values))}, n = {len(values)})"


def _rounded(value: float | None) -> str:
    """A value with two decimals below a hundred, none from there on: more can't be told of a trial."""
    return number(None if value is None else round(value, 2 if abs(value) < 100 else 0))


def _environment(comparison: Comparison) -> Iterator[tuple[str, str, str]]:
    """Each version and fact of the machine, by runtime."""
    facts = [_facts(comparison, runtime) for runtime in comparison.runtimes]
    for name in dict.fromkeys([*facts[0], *facts[1]]):
        yield name, facts[0].get(name, "n/a"), facts[1].get(name, "n/a")


def _facts(comparison: Comparison, runtime: str) -> Mapping[str, str]:
    """Every value that the records of a runtime have for each name, in order."""
    found: dict[str, dict[str, None]] = {}
    records = [record for pair in comparison.pairs for record in pair.runs[runtime]]
    for record in records:
        machine = {name: value for name, value in asdict(record.trial.machine).items() if name not in NOT_HARDWARE}
        for name, value in (record.trial.versions | machine).items():
            found.setdefault(name, {})[str(value)] = None
    facts = {name: "; ".join(values) for name, values in found.items()}
    speed = speed_in_words([record.trial.machine for record in records])
    return facts | ({"speed": speed} if speed else {})
