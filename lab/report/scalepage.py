"""The page of scales (docs/scale-measured.md): tables of an :class:`Outcome`, and curves of all scales over real time. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from lab.measure.outcome import Outcome, Runs
from lab.measure.similarity import FAITHFUL, MOST_NOISE, NO_DATA, TOLERANCE, UNDECIDED, UNFAITHFUL, WORTH, Row
from lab.record.store import Record
from lab.report import drawing
from lab.report.compare import comparison_chart
from lab.report.curves import compared
from lab.report.tables import Cell, Table, number

MARKS = {FAITHFUL: "✔", UNFAITHFUL: "✘", UNDECIDED: "~", NO_DATA: ""}
NOTHING = "Nothing is shown yet: no session has been published."
MOMENTS = 600  # at which the median curve of a scale is drawn
HEAD = f"""# Scales, measured

`elastic-lab scale FOLDER --publish` writes this page from the records of `pytest -m scale`, and a test holds it against
[the numbers](../lab/measure/similarity.yaml). [What a scale keeps](scale.md) explains them.

Times, messages and pod-minutes are stretched to real time by the scale's factor. A cell is the error against real time: the
median, and an interval that holds the true error with the confidence above it (two samples, Mann and Whitney). Each block is
one value, the mean of its two sides.

- ✔ faithful: the whole interval is within {TOLERANCE:.0%} of the number, or within what two sides differ by at real time (up to
  {MOST_NOISE:.0%}).
- ✘ not faithful: the whole interval is outside of that.
- ~ undecided: neither, or an interval of less than {WORTH:.0%} confidence.
- No mark: no data at that scale or at real time.
""".replace("0%", "0 %")


def page(outcome: Outcome) -> str:
    """The whole page as GitHub's Markdown."""
    if not outcome.rows:
        return f"{HEAD}\n{NOTHING}\n"
    parts = [HEAD]
    for profile in dict.fromkeys(one.profile for one in outcome.runs):
        rows = [row for row in outcome.rows if row.profile == profile]
        runs = [one for one in outcome.runs if one.profile == profile]
        picture = f"![{profile}: lag, replicas and throughput at each scale over real time](img/{picture_name(profile)})"
        parts += [f"## {profile}\n", picture, "", run_table(runs).markdown, error_table(rows, runs, outcome.reference).markdown]
    return "\n".join(parts)


def picture_name(profile: str) -> str:
    """The file of a profile's curves."""
    return f"scale-{profile}.svg"


def run_table(runs: Sequence[Runs]) -> Table:
    """The sessions that the tables stand on."""
    head = ("scale", "blocks", "records left out as invalid", "dates", "machine", "commit", "policy", "rate of the traffic")
    rows = [
        [one.scale, str(one.blocks), str(one.left_out), one.dates, one.machine, one.commit, one.policy, number(one.rate)]
        for one in runs
    ]
    return Table(head, rows, frozenset({1, 2, 7}))


def error_table(rows: Sequence[Row], runs: Sequence[Runs], reference: str) -> Table:
    """A row for each number, a column for each scale; numbers without data at any scale are left out."""
    scales = [one.scale for one in runs if one.scale != reference]
    worth = {one.scale: max((row.confidence for row in rows if row.scale == one.scale), default=0.0) for one in runs}
    blocks = {one.scale: one.blocks for one in runs}
    titles = [f"{one} (n = {blocks[one]}, {worth[one]:.0%})".replace("%", " %") for one in scales]
    body: list[list[str | Cell]] = []
    for name, unit in dict.fromkeys((row.name, row.unit) for row in rows if row.verdict != NO_DATA):
        # Two measures may have one number: the first speaks for it.
        same = {row.scale: row for row in reversed(rows) if (row.name, row.unit) == (name, unit)}
        middle = next((row.reference for row in same.values() if row.reference is not None), None)
        body.append([name, unit, number(middle), *(_cell(same.get(scale)) for scale in scales)])
    head = ["measure", "unit", f"{reference} (n = {blocks.get(reference, 0)})", *titles]
    return Table(head, body, frozenset(range(2, len(head))))


def _cell(row: Row | None) -> str:
    if row is None or row.estimate is None or row.low is None or row.high is None:
        return number(None)
    if row.relative:
        return f"{MARKS[row.verdict]} {100 * row.estimate:+.0f} % ({100 * row.low:+.0f} to {100 * row.high:+.0f})"
    return f"{MARKS[row.verdict]} {row.estimate:+.3g} ({row.low:+.3g} to {row.high:+.3g})"


def overlay(profile: str, found: Mapping[str, Sequence[Record]]) -> Any:
    """The curves of one profile at each scale of ``found``, over time as it would be at real time.

    A line is the median over the runs of its scale at each moment. Raises :class:`NoData` for a record without its curves.
    """
    curves = pd.concat([_median_curves(f"{scale} (n = {len(runs)})", runs) for scale, runs in found.items()])
    title = f"{profile} at {len(found)} scales, over real time"
    subtitle = "times and messages times the scale's factor; a line is the median of the runs at a scale, sides included"
    return comparison_chart(curves, title, subtitle)


def _median_curves(name: str, runs: Sequence[Record]) -> pd.DataFrame:
    stretched = [_stretched(record) for record in runs]
    first, last = max(one["t"].min() for one in stretched), min(one["t"].max() for one in stretched)
    times = np.linspace(first, last, MOMENTS)
    parts = []
    for panel in ("lag", "replicas", "throughput"):
        each = [_values(one[one["panel"] == panel], times, mean=panel == "throughput") for one in stretched]
        middle = pd.DataFrame(each, dtype=float).median().to_numpy()
        parts.append(pd.DataFrame({"trial": name, "panel": panel, "t": times, "value": middle}).dropna())
    return pd.concat(parts)


def _stretched(record: Record) -> pd.DataFrame:
    """The curves of one record, times and messages stretched to real time, rates by what the scale multiplies them by."""
    scale, curves = record.scale, compared({"": record})
    factor = curves["panel"].map({"lag": scale.time / scale.rate, "replicas": 1.0, "throughput": 1 / scale.rate})
    return curves.assign(t=curves["t"] * scale.time, value=curves["value"] * factor)


def _values(curve: pd.DataFrame, times: np.ndarray, *, mean: bool) -> list[float | None]:
    """The value in force at each of ``times`` or, where samples are closer than those, the ``mean`` from it to the next."""
    if mean:
        places = np.searchsorted(times, curve["t"].to_numpy(dtype=float), side="right") - 1
        means = curve["value"].groupby(places).mean().reindex(range(len(times)))
        if means.notna().mean() > 0.5:
            return [float(value) for value in means.interpolate(limit_area="inside")]
    return drawing.values_at(times, curve, "value")
