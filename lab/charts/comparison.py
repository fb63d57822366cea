"""Trials side by side: their curves over one axis of time. Pure: tables in, one Vega-Lite spec out.

In the chart a colour, with a dash of its own for print, is a trial and nothing else. Of a trial that was repeated the line is
the median of its runs, and a band reaches from the least to the greatest. Below the sides of a duet is their difference.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import bands, drawing
from lab.charts.drawing import ASKED, DELIVERED, DOWN, FAULT, INK, QUIET, UP, WIDTH, inline, records, styled

MOST_TRIALS = 6
COLOURS = [DELIVERED, ASKED, UP, DOWN, INK, FAULT]
DASHES = [[1, 0], [7, 3], [2, 2], [10, 3, 2, 3], [14, 4], [5, 2, 1, 2, 1, 2]]
PANELS = {
    "lag": ("Lag (messages)", 190),
    "replicas": ("Desired replicas (pods)", 140),
    "throughput": ("Consumed (messages/s)", 150),
}
COLUMNS = ("trial", "panel", "t", "value")
MOST_POINTS, BUCKETS = 1720, 430
CURSOR_STEPS = 300
EARLIEST = 0.2  # of the time after the begin: what is drawn of the time before
LETTER = 6.2


def comparison_chart(
    curves: pd.DataFrame, title: str, subtitle: str, pairs: Sequence[tuple[str, str]] = ()
) -> alt.VConcatChart:
    """Lag, replicas and consumed rate of up to six trials, in three panels over one axis of time.

    ``curves`` [trial, panel: lag | replicas | throughput, t, value, and run where trials are repeated], ``t`` in seconds since
    the spike began; a replica count is in force until its run's next one or its run's end. ``pairs`` are the trials that are
    sides of a duet, whose runs belong together; a fourth panel has the lag of the first less that of the second.
    ``ValueError`` if a panel is empty or the trials are too many.
    """
    trials = _trials(curves, title)
    domain = reach(curves["t"])
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"])
    cursor = alt.selection_point(name="cursor", fields=["t"], nearest=True, on="pointermove", clear="pointerout")
    panels = []
    for name, (_, height) in PANELS.items():
        part = curves[curves["panel"] == name]
        x = _time_axis(domain, labelled=name == list(PANELS)[-1] and not pairs)
        spread = bands.spread(part, _ends(curves) if name == "replicas" else None)
        lines = _lines(_drawn(part, curves, name, spread), name, trials, x, max([1.0, *part["value"].dropna()]))
        marks = _cursor(bands.median(part, spread), trials, domain, x).add_params(zoom, cursor)
        areas = bands.band(spread, trials, COLOURS, x, lines)
        panels.append(alt.layer(lines, *areas, marks).properties(width=WIDTH, height=height, name=name))
    if pairs:
        x = _time_axis(domain, labelled=True)
        panels.append(bands.differences(curves[curves["panel"] == "lag"], pairs, x).properties(name="difference"))
    with warnings.catch_warnings():  # one zoom and one cursor for the three panels is the intent
        warnings.filterwarnings("ignore", message="Automatically deduplicated")
        chart = alt.vconcat(*panels, spacing=24 if pairs else 14)
    chart.title = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=10)
    return styled(chart.resolve_scale(x="shared", color="shared", strokeDash="shared"))


def reach(times: pd.Series) -> tuple[float, float]:
    """From when to when trials are drawn beside each other: what one of them did long before its traffic began is no part."""
    first, last = float(times.min()), float(times.max())
    return (max(first, -EARLIEST * last) if last > 0 else first), last if last > first else first + 1.0


def _trials(curves: pd.DataFrame, title: str) -> list[str]:
    lacking = [name for name in COLUMNS if name not in curves]
    if lacking:
        raise ValueError(f"comparison {title!r}: the table has no column {', '.join(lacking)}")
    unknown = sorted(set(curves["panel"]) - set(PANELS))
    if unknown:
        raise ValueError(f"comparison {title!r}: {unknown[0]!r} is not one of {', '.join(PANELS)}")
    for name in PANELS:
        if not (curves["panel"] == name).any():
            raise ValueError(f"comparison {title!r}: the panel {name!r} is empty")
    trials = list(dict.fromkeys(curves["trial"].astype(str)))
    if len(trials) > MOST_TRIALS:
        raise ValueError(f"comparison {title!r}: {len(trials)} trials, at most {MOST_TRIALS} can be told apart")
    return trials


def _time_axis(domain: tuple[float, float], *, labelled: bool) -> dict[str, Any]:
    axis = alt.Axis(format=",~f", tickCount=12) if labelled else alt.Axis(labels=False, ticks=False, tickCount=12)
    title = "Time since the spike began (s)" if labelled else None
    return {"scale": alt.Scale(domain=list(domain), nice=False), "axis": axis, "title": title}


def _ends(curves: pd.DataFrame) -> pd.Series | None:
    """The last moment of each (trial, run); None where nothing was repeated."""
    return curves.groupby(["trial", "run"])["t"].max() if "run" in curves else None


def _drawn(part: pd.DataFrame, curves: pd.DataFrame, name: str, spread: pd.DataFrame) -> pd.DataFrame:
    """A panel's rows as drawn: thinned, or only the steps with the last count kept to its trial's end; of runs the median."""
    drawn = []
    for trial, series in part.groupby("trial", sort=False):
        if len(own := spread[spread["trial"] == trial]):
            drawn.append(own)
        elif name == "replicas":
            counts = drawing.steps(series, "value")
            drawn += [counts, counts.tail(1).assign(t=curves.loc[curves["trial"] == trial, "t"].max())]
        else:
            drawn.append(drawing.thin(series, "value", most=MOST_POINTS, buckets=BUCKETS))
    return pd.concat(drawn)[["trial", "t", "value"]]


def _lines(drawn: pd.DataFrame, name: str, trials: list[str], x: dict[str, Any], greatest: float) -> alt.Chart:
    axis = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5, minExtent=52, maxExtent=52, titlePadding=4)
    if name == "replicas":
        axis.tickMinStep = 1
    legend = alt.Legend(
        title=None,
        orient="top",
        offset=6,
        direction="horizontal",
        columns=_columns(trials),
        labelLimit=WIDTH - 80,
        symbolSize=1200,
        symbolStrokeWidth=2,
    )
    colour = alt.Scale(domain=trials, range=COLOURS[: len(trials)])
    dash = alt.Scale(domain=trials, range=DASHES[: len(trials)])
    chart = alt.Chart(records(drawn.astype({"trial": str}), t=2, value=1))
    line = chart.mark_line(strokeWidth=1.7, clip=True, strokeJoin="round", tooltip=None)
    if name == "replicas":
        line = chart.mark_line(strokeWidth=1.7, clip=True, interpolate="step-after", tooltip=None)
    encoded: alt.Chart = line.encode(
        x=alt.X("t:Q", **x),
        y=alt.Y("value:Q", title=PANELS[name][0], axis=axis, scale=alt.Scale(domain=[0, greatest * 1.07], nice=False)),
        color=alt.Color("trial:N", scale=colour, legend=legend),
        strokeDash=alt.StrokeDash("trial:N", scale=dash, legend=legend),
    )
    return encoded


def _columns(trials: list[str]) -> int:
    """The most columns in which the legend's labels are no wider than the chart."""
    widths = [len(trial) * LETTER + 50 for trial in trials]
    fits = [n for n in range(1, len(trials) + 1) if sum(max(widths[k::n]) for k in range(n)) <= WIDTH]
    return max(fits, default=1)


def _cursor(part: pd.DataFrame, trials: list[str], domain: tuple[float, float], x: dict[str, Any]) -> alt.Chart:
    """A rule at the pointer that names every trial's value in force; columns are numbered since a label may hold anything."""
    times = np.linspace(*domain, CURSOR_STEPS)
    known = part.assign(trial=part["trial"].astype(str))
    found = [drawing.values_at(times, known[known["trial"] == trial], "value") for trial in trials]
    columns = {f"v{n}": values for n, values in enumerate(found)}
    moments = [{"t": round(float(t), 2), **{name: values[k] for name, values in columns.items()}} for k, t in enumerate(times)]
    tips = [alt.Tooltip("t:Q", title="time (s)", format=",.1f")]
    tips += [alt.Tooltip(f"v{n}:Q", title=trial, format=",.0f") for n, trial in enumerate(trials)]
    shown = alt.OpacityValue(0, condition={"param": "cursor", "empty": False, "value": 0.8})
    rule = alt.Chart(inline(moments)).mark_rule(color=QUIET, strokeWidth=1, aria=False)
    drawn: alt.Chart = rule.encode(x=alt.X("t:Q", **x), opacity=shown, tooltip=tips)
    return drawn
