"""The small chart of a test: lag and replicas of its trials over one axis of time, and what is seen in it in words.

It is an SVG of some kilobytes. It follows the reader's light or dark scheme, and a style has a colour and a dash of its own.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from html import escape

import altair as alt
import pandas as pd

from lab.record.store import Record
from lab.report import drawing
from lab.report.compare import COLOURS, DASHES, MOST_TRIALS
from lab.report.curves import compared
from lab.report.tables import number

WIDTH, HEIGHTS = 400, {"lag": 92, "replicas": 60}
TITLES = {"lag": "Lag (messages)", "replicas": "Replicas"}
BUCKETS = 100
COLUMNS = ["trial", "run", "t", "value"]
DARK = {"#222222": "#e6e6e6", "#000": "#e6e6e6", "#000000": "#e6e6e6", "#ececec": "#3a3f44", "#999999": "#8b9299"}
DARK |= {"#0072B2": "#4FA8DE", "#cccccc": "#3a3f44", "white": "none"}
STYLE = "<style>@media (prefers-color-scheme: dark) {{ {rules} }}</style>"


def glance(runs: Mapping[str, list[Record]]) -> tuple[str, str]:
    """(SVG, its text) of the first trials of ``runs``, as many as can be told apart; runs of one trial share a style.

    Raises :class:`NoData` where a record has no curve, ``ValueError`` where there is none.
    """
    shown = dict(list(runs.items())[:MOST_TRIALS])
    curves = pd.concat(
        [compared({name: record}).assign(run=n) for name, several in shown.items() for n, record in enumerate(several)],
        ignore_index=True,
    )
    curves = curves.assign(end=curves.groupby(["trial", "run"])["t"].transform("max"))
    curves = curves[curves["panel"].isin(list(HEIGHTS))]
    names = list(shown)
    return _adapted(drawing.svg(_chart(curves, names))), _text(curves, names, len(runs) - len(shown))


def image(svg: str, alt: str) -> str:
    """The picture as an HTML image that needs no other file; "" for none."""
    return f'<img src="{address(svg)}" alt="{escape(alt)}">' if svg else ""


def address(svg: str) -> str:
    """The picture as an address that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def _chart(curves: pd.DataFrame, names: list[str]) -> alt.VConcatChart:
    domain = [float(curves["t"].min()), float(curves["t"].max())]
    panels = [_panel(curves[curves["panel"] == panel], panel, names, domain) for panel in HEIGHTS]
    chart = alt.vconcat(*panels, spacing=6).resolve_scale(x="shared", color="shared", strokeDash="shared")
    styled = drawing.styled(chart)
    styled.padding = 2
    return styled


def _panel(part: pd.DataFrame, panel: str, names: list[str], domain: list[float]) -> alt.Chart:
    rows = []
    for (_, _), series in part.groupby(["trial", "run"], sort=False):
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
    side = alt.Axis(
        labelExpr="format(datum.value, '~s')", tickCount=3, minExtent=30, maxExtent=30, labelFontSize=10, titleFontSize=10
    )
    top = max([1.0, *part["value"].dropna()]) * 1.05
    line = alt.Chart(drawing.records(pd.concat(rows), t=1, value=0)).mark_line(
        strokeWidth=1.5, clip=True, interpolate="step-after" if panel == "replicas" else "linear"
    )
    chart: alt.Chart = line.encode(
        x=alt.X(
            "t:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis, title="s since the spike began" if last else None
        ),
        y=alt.Y("value:Q", scale=alt.Scale(domain=[0, top], nice=False), axis=side, title=TITLES[panel]),
        color=alt.Color("trial:N", scale=alt.Scale(domain=names, range=COLOURS[: len(names)]), legend=legend),
        strokeDash=alt.StrokeDash("trial:N", scale=alt.Scale(domain=names, range=DASHES[: len(names)]), legend=legend),
        detail="run:N",
    ).properties(width=WIDTH, height=HEIGHTS[panel])
    return chart


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
