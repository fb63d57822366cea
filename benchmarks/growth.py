"""How a cost grows with a size: its values, the exponent, and the page and picture that are made of them.

``python -m benchmarks growth`` measures (:mod:`benchmarks.sizes`), keeps the numbers in docs/growth.json and writes
docs/growth.md. A test holds the two together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import linear_regression
from typing import Any

import altair as alt

from lab import paths
from lab.charts import drawing
from lab.host import machine

NUMBERS = paths.PROJECT / "docs" / "growth.json"
PAGE = paths.PROJECT / "docs" / "growth.md"
COLOURS = 10  # of the palette: an eleventh cost of a panel has the colour of the first
PICTURE = paths.PROJECT / "docs" / "img" / "growth.svg"
HEAD = """# How cost grows

`python -m benchmarks growth` writes this page from [the numbers](growth.json); `--of partitions` measures one part alone.
A test holds page and numbers together.

Each cost is measured at several sizes, once each, on two cores that do nothing else. The exponent is the slope of a straight
line through the logarithms: 1 is in proportion, 0 is a cost that stays. *Last step* is the exponent between the two largest
sizes alone, which says more about what comes next. One run has no interval: read a difference of 0.1 in an exponent as none.

[Decision 68](decisions/68-600-active-scaledobjects-use-up-kedas-requests.md) says what limits ScaledObjects, and
[46](decisions/46-twenty-million-fit-two-cores.md) what the ledger's objectives are.

![costs by size, both axes logarithmic](img/growth.svg)
"""


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


def page(parts: Iterable[Part]) -> str:
    """The page of these parts, as Markdown."""
    return "\n".join([HEAD, *map(_section, parts)])


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


def chart(parts: Iterable[Part]) -> str:
    """Panels for each part, both axes logarithmic, each cost relative to that at the smallest size: as SVG."""
    panels = [_panel(shown.of, title, costs) for shown in parts for title, costs in _panels(shown)]
    pairs = [
        alt.hconcat(*panels[at : at + 2], spacing=40).resolve_scale(color="independent") for at in range(0, len(panels), 2)
    ]
    whole = alt.vconcat(*pairs).resolve_scale(color="independent")
    whole.title = alt.TitleParams(
        "How cost grows", subtitle="both axes logarithmic; each cost over that at its smallest size", anchor="start"
    )
    return drawing.svg(drawing.styled(whole))


def _panels(shown: Part) -> list[tuple[str, list[Growth]]]:
    """(title, costs) of the panels of a part: memory has its own where one panel would have more costs than colours."""
    memory = [one for one in shown.costs if one.unit == "MB"]
    rest = [one for one in shown.costs if one.unit != "MB"]
    if len(shown.costs) <= COLOURS or not memory:
        return [(shown.of, list(shown.costs))]
    return [(shown.of, rest), (f"{shown.of}: memory", memory)]


def _panel(of: str, title: str, costs: Iterable[Growth]) -> Any:
    rows = [
        {"size": size, "times": cost / cost_of_least, "cost": one.what}
        for one in costs
        for cost_of_least in [one.values[min(one.values)]]
        for size, cost in sorted(one.values.items())
        if cost_of_least > 0 and cost > 0
    ]
    line = alt.Chart(drawing.inline(rows), title=title).mark_line(point=True)
    x = alt.X("size:Q", title=of, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=4))
    y = alt.Y("times:Q", title="times the smallest", scale=alt.Scale(type="log"), axis=alt.Axis(format="~g", tickCount=5))
    colour = alt.Color("cost:N", title=None, legend=alt.Legend(orient="bottom", columns=1, labelLimit=400))
    return line.encode(x=x, y=y, color=colour).properties(width=330, height=230)


def _slope(points: list[tuple[int, float]]) -> float | None:
    if len(points) < 2 or any(cost <= 0 for _, cost in points):
        return None
    return linear_regression([math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]).slope
