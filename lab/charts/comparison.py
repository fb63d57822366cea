"""Trials side by side: their curves over one axis of time. Pure: tables in, one Vega-Lite spec out.

A colour, with a dash for print, is a trial and nothing else. Of a repeated one the line is the median, in a band of all runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import bands, drawing
from lab.charts.drawing import ASKED, DELIVERED, DOWN, FAULT, INK, UP, WIDTH, records

MOST_TRIALS = 6
COLOURS = [DELIVERED, ASKED, UP, DOWN, INK, FAULT]
STYLES = list(zip(COLOURS, [[1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2]], strict=True))
PANELS = {
    "lag": ("Lag (messages)", 190),
    "replicas": ("Desired replicas (pods)", 140),
    "throughput": ("Consumed (messages/s)", 150),
}
MOST_POINTS = 1720
TIME = "Time since the spike began (s)"
EARLIEST = 0.2  # of the time after the begin: what is drawn of the time before
LETTER = 6.2


def comparison_chart(
    curves: pd.DataFrame,
    title: str,
    subtitle: str,
    pairs: Sequence[tuple[str, str]] = (),
    panels: Mapping[str, tuple[str, int]] = PANELS,
    time: str = TIME,
) -> alt.VConcatChart:
    """Lag, replicas and consumed rate of up to six trials, in three panels over one axis of time.

    Other ``panels`` have a title and a height in pixels each; ``time`` is the title of the axis.

    ``curves`` [trial, panel: lag | replicas | throughput, t, value, and run where trials are repeated], ``t`` in seconds since
    the spike began; a replica count is in force until its run's next one or its end. ``pairs`` are the sides of duets, of which
    a fourth panel has the lag of the first less that of the second. ``ValueError`` for an empty panel or too many trials.
    """
    trials = list(dict.fromkeys(curves["trial"].astype(str)))
    if empty := [name for name in panels if name not in set(curves["panel"])]:
        raise ValueError(f"comparison {title!r}: the panel {empty[0]!r} is empty")
    if len(trials) > MOST_TRIALS:
        raise ValueError(f"comparison {title!r}: {len(trials)} trials, at most {MOST_TRIALS} can be told apart")
    domain = reach(curves["t"])
    zoom, pointer = drawing.zoom(), drawing.pointer()
    times = np.linspace(*domain, drawing.CURSOR_STEPS)
    place: dict[str, Any] = {"orient": "top", "offset": 6, "direction": "horizontal", "columns": _columns(trials)}
    legend = alt.Legend(title=None, labelLimit=WIDTH - 80, symbolSize=1200, symbolStrokeWidth=2, **place)
    drawn: list[Any] = []
    for name, (words, height) in panels.items():
        x = drawing.time_axis(domain, time if name == list(panels)[-1] and not pairs else None)
        part = curves[curves["panel"] == name].astype({"trial": str})
        spread = bands.spread(part, ends(curves) if name == "replicas" else None)
        scale = alt.Scale(domain=[0, max([1.0, *part["value"].dropna()]) * 1.07], nice=False)
        y = alt.Y("value:Q", title=words, axis=drawing.value_axis(whole=name == "replicas"), scale=scale)
        lines = trial_lines(drawn_rows(part, curves, spread), trials, x, y, legend, steps=name == "replicas")
        shown = bands.median(part, spread)
        values = {trial: drawing.values_at(times, shown[shown["trial"] == trial], "value") for trial in trials}
        marks = drawing.cursor(values, times, x).add_params(zoom, pointer)
        areas = bands.band(spread, trials, COLOURS, x, lines)
        drawn.append(alt.layer(lines, *areas, marks).properties(width=WIDTH, height=height, name=name))
    if pairs:
        x = drawing.time_axis(domain, time)
        drawn.append(bands.differences(curves[curves["panel"] == "lag"], pairs, x).properties(name="difference"))
    return drawing.stacked(drawn, title, subtitle, spacing=24 if pairs else 14, legends="shared")


def reach(times: pd.Series) -> tuple[float, float]:
    """From when to when trials are drawn beside each other: what one of them did long before its traffic began is no part."""
    first, last = float(times.min()), float(times.max())
    return (max(first, -EARLIEST * last) if last > 0 else first), last if last > first else first + 1.0


def ends(curves: pd.DataFrame) -> pd.Series | None:
    """The last moment of each (trial, run); None where nothing was repeated."""
    return curves.groupby(["trial", "run"])["t"].max() if "run" in curves else None


def drawn_rows(part: pd.DataFrame, curves: pd.DataFrame, spread: pd.DataFrame, most: int = MOST_POINTS) -> pd.DataFrame:
    """The rows [trial, t, value] of a panel as drawn: of runs the median, of replicas the steps, else at most ``most``."""
    drawn = [spread[["trial", "t", "value"]]] if len(spread) else []
    for trial, series in part[~part["trial"].isin(spread["trial"])].groupby("trial", sort=False):
        if (series["panel"] == "replicas").all():
            drawn.append(drawing.steps(series, "value", curves.loc[curves["trial"] == trial, "t"].max()))
        else:
            drawn.append(drawing.thin(series, "value", most=most, buckets=most // 4))
    return pd.concat(drawn)[["trial", "t", "value"]]


def trial_lines(
    rows: pd.DataFrame, trials: Sequence[str], x: dict[str, Any], y: alt.Y, legend: alt.Legend | None, *, steps: bool
) -> alt.Chart:
    """A line for each trial in its colour and dash; with ``steps`` a value is in force until the next one."""
    known: dict[str, Any] = {"interpolate": "step-after"} if steps else {}
    styles = dict(zip(trials, STYLES, strict=False))
    chart = drawing.series(records(rows, t=2, value=1), "trial:N", styles, x, y, legend=legend)
    line: alt.Chart = chart.mark_line(strokeWidth=1.7, clip=True, strokeJoin="round", tooltip=None, **known)
    return line


def _columns(trials: list[str]) -> int:
    """The most columns in which the legend's labels are no wider than the chart."""
    widths = [len(trial) * LETTER + 50 for trial in trials]
    fits = [n for n in range(1, len(trials) + 1) if sum(max(widths[k::n]) for k in range(n)) <= WIDTH]
    return max(fits, default=1)
