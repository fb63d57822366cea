"""The small chart of a test: lag and replicas of its trials over one axis of time, and what is seen in it in words.

It is an SVG of some kilobytes that follows the reader's light or dark scheme.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from lab.charts import bands, drawing
from lab.charts.comparison import COLOURS, MOST_TRIALS, drawn_rows, ends, reach, trial_lines
from lab.charts.curves import compared_runs
from lab.number_format import number
from lab.record.store import Record

WIDTH, HEIGHTS = 400, {"lag": 92, "replicas": 60}
TITLES = {"lag": "Lag (messages)", "replicas": "Desired pods"}
WHOLE = "datum.value % 1 ? '' : format(datum.value, '~s')"  # there is no half of a pod, nor of a message
MOST_POINTS = 400
MOMENTS = 100  # of the median of several runs, and of their band
MOST_BANDS = 4  # more of them lie upon each other, and none can be told
DARK = {"#222222": "#e6e6e6", "#000": "#e6e6e6", "#000000": "#e6e6e6", "#ececec": "#3a3f44", "#999999": "#8b9299"}
DARK |= {"#0072B2": "#4FA8DE", "#cccccc": "#3a3f44", "white": "none"}
STYLE = "<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"


def thumbnail(runs: Mapping[str, list[Record]]) -> tuple[str, str]:
    """(SVG, its text) of the first trials of ``runs``, as many as can be told apart.

    Raises :class:`NoData` where a record has no curve, ``ValueError`` where there is none.
    """
    shown = dict(list(runs.items())[:MOST_TRIALS])
    curves = compared_runs(shown)
    panels = [panel(curves, name, list(shown)) for name in HEIGHTS]
    chart = drawing.styled(alt.vconcat(*panels, spacing=6).resolve_scale(x="shared", color="shared", strokeDash="shared"))
    chart.padding = 2
    return _adapted(drawing.svg(chart)), _text(curves, list(shown), len(runs) - len(shown))


def panel(curves: pd.DataFrame, name: str, trials: list[str]) -> alt.LayerChart:
    """The panel ``name`` of the ``curves`` of these trials."""
    part, last = curves[curves["panel"] == name], name == list(HEIGHTS)[-1]
    spread = bands.spread(part, ends(curves) if name == "replicas" else None, MOMENTS)
    legend = None
    if len(trials) > 1:
        columns = 1 if max(map(len, trials)) > 26 else 2
        legend = alt.Legend(title=None, orient="top", offset=4, columns=columns, labelLimit=WIDTH, symbolSize=500, rowPadding=0)
    small: dict[str, Any] = {"labelFontSize": 10, "titleFontSize": 10}
    x = drawing.time_axis(reach(curves["t"]), "s since the spike began" if last else None)
    x["axis"] = alt.Axis(labels=last, ticks=last, tickCount=6, format=",~f", **small)
    axis = alt.Axis(labelExpr=WHOLE, tickCount=3, minExtent=30, maxExtent=30, **small)
    scale = alt.Scale(domain=[0, max([1.0, *part["value"].dropna()]) * 1.05], nice=False)
    y = alt.Y("value:Q", scale=scale, axis=axis, title=TITLES[name])
    lines = trial_lines(drawn_rows(part, curves, spread, MOST_POINTS), trials, x, y, legend, steps=name == "replicas")
    areas = bands.band(spread, trials, COLOURS, x, lines) if len(trials) <= MOST_BANDS else []
    return alt.LayerChart(layer=[lines, *areas], width=WIDTH, height=HEIGHTS[name])


def _adapted(svg: str) -> str:
    """The picture with colours for a dark page, and without a ground of its own."""
    rules = " ".join(
        f'[{attribute}="{light}"] {{ {attribute}: {dark} }}' for light, dark in DARK.items() for attribute in ("fill", "stroke")
    )
    head, mark, rest = svg.partition(">")
    return head + mark + STYLE.format(rules=rules) + rest


def _text(curves: pd.DataFrame, trials: list[str], left_out: int) -> str:
    """What the chart shows, for a reader who does not see it."""
    said = []
    for name in trials:
        own = curves[curves["trial"] == name].groupby("panel")["value"].max()
        of = f"{name}: " if len(trials) > 1 else ""
        said.append(f"{of}peak lag {number(float(own['lag']))} messages, at most {number(float(own['replicas']))} replicas")
    more = f"; {left_out} more trials are not drawn" if left_out else ""
    return f"Lag and replicas over time. {'; '.join(said)}{more}."
