"""How a cost grows with a size: its values, its exponent, and the tables that are printed of them.

``python -m benchmarks growth`` measures (:mod:`benchmarks.sizes`) and keeps the numbers in docs/growth.json, one run each, on
cores that do nothing else. ``--of`` without a part measures nothing. Both print the tables of all that is kept.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import linear_regression

from lab import paths
from lab.host import machine

NUMBERS = paths.PROJECT / "docs" / "growth.json"


@dataclass(frozen=True)
class Growth:
    """The cost ``what`` in ``unit`` at each size: ``values`` by size."""

    what: str
    unit: str
    values: dict[int, float]

    def exponent(self) -> float | None:
        """The slope of log(cost) over log(size) by least squares; None with fewer than two sizes, or where a cost is 0."""
        return _slope(sorted(self.values.items()))

    def last(self) -> float | None:
        """The slope between the two largest sizes; None as for :meth:`exponent`."""
        return _slope(sorted(self.values.items())[-2:])


@dataclass(frozen=True)
class Part:
    """The costs by one kind of size, with what was measured (``how``), the day and the machine."""

    of: str
    how: str
    date: str
    machine: str
    costs: tuple[Growth, ...]


def part(of: str, how: str, costs: Iterable[Growth]) -> Part:
    """A part that was measured just now, on this machine."""
    this = machine.describe()
    return Part(of, how, date.today().isoformat(), f"{this.cores} cores, {this.cpu}, {this.memory_gib:.0f} GiB", tuple(costs))


def read(file: Path = NUMBERS) -> list[Part]:
    """The parts that are kept in ``file``; none where there is no file."""
    if not file.exists():
        return []
    kept = json.loads(file.read_text())
    return [Part(**one | {"costs": tuple(map(_growth, one["costs"]))}) for one in kept]


def _growth(kept: dict[str, object]) -> Growth:
    values = kept["values"]
    assert isinstance(values, dict)
    return Growth(str(kept["what"]), str(kept["unit"]), {int(size): float(cost) for size, cost in values.items()})


def keep(measured: Part, file: Path = NUMBERS) -> list[Part]:
    """Put ``measured`` in the place of the part of its kind in ``file``; returns all that are there then, by kind."""
    every = sorted([*(one for one in read(file) if one.of != measured.of), measured], key=lambda one: one.of)
    file.write_text(json.dumps([asdict(one) for one in every], indent=1) + "\n")
    return every


def tables(parts: Iterable[Part]) -> str:
    """A table of each part, as Markdown.

    The exponent is the slope of a straight line through the logarithms: 1 is in proportion, 0 is a cost that stays. *Last step*
    is that between the two largest sizes alone.
    """
    return "\n".join(map(_section, parts))


def _section(shown: Part) -> str:
    sizes = sorted({size for cost in shown.costs for size in cost.values})
    head = ["cost", *(f"{size:,}" for size in sizes), "exponent", "last step"]
    rows = [
        [
            f"{cost.what}, {cost.unit}",
            *(_cell(cost.values.get(size)) for size in sizes),
            _power(cost.exponent()),
            _power(cost.last()),
        ]
        for cost in shown.costs
    ]
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---", *["---:"] * (len(head) - 1)], *rows)]
    return "\n".join(
        [f"## {shown.of[0].upper()}{shown.of[1:]}", shown.how, "", *lines, "", f"{shown.date}, {shown.machine}.", ""]
    )


def _cell(value: float | None) -> str:
    """Three digits, or a dash for what was not measured."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def _power(value: float | None) -> str:
    """Two decimals, without a sign of 0."""
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"


def _slope(points: list[tuple[int, float]]) -> float | None:
    if len(points) < 2 or any(cost <= 0 for _, cost in points):
        return None
    return linear_regression([math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]).slope
