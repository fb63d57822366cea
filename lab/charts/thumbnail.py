"""The small chart of a test: lag and replicas of its trials over one axis of time, and what is seen in it in words.

It is an SVG of some kilobytes. It follows the reader's light or dark scheme, and a style has a colour and a dash of its own. Of
a trial that was repeated the line is the median of its runs, and a band holds all of them where no more than four overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import altair as alt
import pandas as pd

from lab.charts import bands, drawing
from lab.charts.comparison import COLOURS, DASHES, MOST_TRIALS, reach
from lab.charts.curves import compared_runs
from lab.number_format import number
from lab.record.store import Record

WIDTH, HEIGHTS = 400, {"lag": 92, "replicas": 60}
TITLES = {"lag": "Lag (messages)", "replicas": "Desired pods"}
WHOLE = "datum.value % 1 ? '' : format(datum.value, '~s')"  # there is no half of a pod, nor of a message
BUCKETS = 100
MOMENTS = 100  # of the median of several runs, and of their band
MOST_BANDS = 4  # more of them lie upon each other, and none can be told
COLUMNS = ["trial", "t", "value"]
DARK = {"#222222": "#e6e6e6", "#000": "#e6e6e6", "#000000": "#e6e6e6", "#ececec": "#3a3f44", "#999999": "#8b9299"}
DARK |= {"#0072B2": "#4FA8DE", "#cccccc": "#3a3f44", "white": "none"}
STYLE = "<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"


def thumbnail(runs: Mapping[str, list[Record]]) -> tuple[str, str]:
    """(SVG, its text) of the first trials of ``runs``, as many as can be told apart.

    Raises :class:`NoData` where a record has no curve, ``ValueError`` where there is none.
    """
    shown = dict(list(runs.items())[:MOST_TRIALS])
    curves = compared_runs(shown)
    curves = curves.assign(end=curves.groupby(["trial", "run"])["t"].transform("max"))
    curves = curves[curves["panel"].isin(list(HEIGHTS))]
    names = list(shown)
    return _adapted(drawing.svg(_chart(curves, names))), _text(curves, names, len(runs) - len(shown))


def _chart(curves: pd.DataFrame, names: list[str]) -> alt.VConcatChart:
    domain = list(reach(curves["t"]))
    panels = [_panel(curves[curves["panel"] == panel], panel, names, domain) for panel in HEIGHTS]
    chart = alt.vconcat(*panels, spacing=6).resolve_scale(x="shared", color="shared", strokeDash="shared")
    styled = drawing.styled(chart)
    styled.padding = 2
    return styled


def _panel(part: pd.DataFrame, panel: str, names: list[str], domain: list[float]) -> alt.LayerChart:
    ends = part.groupby(["trial", "run"])["end"].first() if panel == "replicas" else None
    spread = bands.spread(part, ends, MOMENTS)
    rows = [spread[COLUMNS]] if len(spread) else []
    for _, series in part[~part["trial"].isin(spread["trial"])].groupby("trial", sort=False):
        if panel == "lag":
            rows.append(drawing.thin(series, "value", most=BUCKETS * 4, buckets=BUCKETS)[COLUMNS])
        else:  # a count is in force to the end of its trial
            counts = drawing.steps(series, "value")[COLUMNS]
            rows += [counts, counts.tail(1).assign(t=series["end"].max())]
    last = panel == list(HEIGHTS)[-1]
    legend = None
    if len(names) > 1:
        columns = 1 if max(map(len, names)) > 26 else 2
        legend = alt.Legend(title=None, orient="top", offset=4, columns=columns, labelLimit=WIDTH, symbolSize=500, rowPadding=0)
    axis = alt.Axis(labels=last, ticks=last, tickCount=6, format=",~f", labelFontSize=10, titleFontSize=10)
    side = alt.Axis(labelExpr=WHOLE, tickCount=3, minExtent=30, maxExtent=30, labelFontSize=10, titleFontSize=10)
    top = max([1.0, *part["value"].dropna()]) * 1.05
    line = alt.Chart(drawing.records(pd.concat(rows), t=1, value=0)).mark_line(
        strokeWidth=1.5, clip=True, interpolate="step-after" if panel == "replicas" else "linear"
    )
    x: dict[str, Any] = {
        "scale": alt.Scale(domain=domain, nice=False),
        "axis": axis,
        "title": "s since the spike began" if last else None,
    }
    encoded = line.encode(
        x=alt.X("t:Q", **x),
        y=alt.Y("value:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=side, title=TITLES[panel]),
        color=alt.Color("trial:N", scale=alt.Scale(domain=names, range=COLOURS[: len(names)]), legend=legend),
        strokeDash=alt.StrokeDash("trial:N", scale=alt.Scale(domain=names, range=DASHES[: len(names)]), legend=legend),
    )
    areas = bands.band(spread, names, COLOURS, x, encoded) if len(names) <= MOST_BANDS else []
    return alt.LayerChart(layer=[encoded, *areas], width=WIDTH, height=HEIGHTS[panel])


def _adapted(svg: str) -> str:
    """The picture with colours for a dark page, and without a ground of its own."""
    rules = " ".join(
        f'[{attribute}="{light}"] {{ {attribute}: {dark} }}' for light, dark in DARK.items() for attribute in ("fill", "stroke")
    )
    head, mark, rest = svg.partition(">")
    return head + mark + STYLE.format(rules=rules) + rest


def _text(curves: pd.DataFrame, names: list[str], left_out: int) -> str:
    """What the chart shows, for a reader who does not see it."""
    said = []
    for name in names:
        own = curves[curves["trial"] == name].groupby("panel")["value"].max()
        of = f"{name}: " if len(names) > 1 else ""
        said.append(f"{of}peak lag {number(float(own['lag']))} messages, at most {number(float(own['replicas']))} replicas")
    more = f"; {left_out} more trials are not drawn" if left_out else ""
    return f"Lag and replicas over time. {'; '.join(said)}{more}."
