"""A trial drawn: lag, replicas and throughput over one axis of time. Pure: tables in, one Vega-Lite spec out.

The same spec gives the interactive page (zoom, pan, one cursor across the panels) and the static image for print.
Colours are Okabe and Ito's, legible to colour-blind readers: orange is what is asked for, blue what is delivered.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import vl_convert as vlc

from lab.report import sampling

WIDTH = 860
HEIGHTS = {"lag": 190, "replicas": 150, "throughput": 150}
LABEL_ROWS = 3
LINE = 13
CURSOR_STEPS = 300

INK, QUIET, ASKED, DELIVERED, BETWEEN = "#222222", "#6b6b6b", "#D55E00", "#0072B2", "#56B4E9"
UP, DOWN, MOVED, FAULT = "#009E73", "#AA4499", "#000000", "#E69F00"
EVENTS = {"scale up": (UP, [1, 0]), "scale down": (DOWN, [5, 3]), "rebalance": (MOVED, [1, 0])}
LINES: dict[str, dict[str, tuple[str, list[int]]]] = {
    "lag": {"lag": (INK, [1, 0]), "lagThreshold": (ASKED, [6, 4])},
    "replicas": {"desired": (ASKED, [6, 4]), "current": (BETWEEN, [1, 0]), "ready": (DELIVERED, [1, 0])},
    "throughput": {"produced": (ASKED, [6, 4]), "consumed": (DELIVERED, [1, 0])},
}
TITLES = {"lag": "Lag (messages)", "replicas": "Replicas (pods)", "throughput": "Throughput (messages/s)"}
LEGENDS = {"lag": "Lag", "replicas": "Replicas", "throughput": "Throughput"}
GROUPS = [DELIVERED, FAULT, UP, BETWEEN, DOWN, ASKED, QUIET]
VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def _empty(*columns: str) -> Any:
    return field(default_factory=lambda: pd.DataFrame(columns=list(columns)))


@dataclass(frozen=True)
class Timeline:
    """What one trial's timeline shows. Every ``t``, ``start`` and ``end`` is in seconds since the spike's start.

    ``lag`` [t, lag] in messages; ``lag_objective`` the lagThreshold, in messages over the whole group; ``replicas``
    [t, kind: desired | current | ready, replicas], each in force until its next row; ``throughput`` [t, series:
    produced | consumed, rate] in messages/s; ``spans`` [start, end, label] the profile's phases; ``marks``
    [t, kind: scale up | scale down | rebalance, label, detail]; ``faults`` [start, end, label].
    """

    title: str
    subtitle: str
    lag: pd.DataFrame
    lag_objective: float
    replicas: pd.DataFrame
    throughput: pd.DataFrame
    spans: pd.DataFrame = _empty("start", "end", "label")
    marks: pd.DataFrame = _empty("t", "kind", "label", "detail")
    faults: pd.DataFrame = _empty("start", "end", "label")


def timeline(data: Timeline) -> alt.VConcatChart:
    """The three panels over one axis of time; ``ValueError`` if there is no lag, no replicas or no throughput to draw."""
    for name in HEIGHTS:
        if getattr(data, name).empty:
            raise ValueError(f"timeline {data.title!r}: the table {name!r} is empty")
    domain = _domain(data)
    zoom = alt.selection_interval(name="zoom", bind="scales", encodings=["x"])
    cursor = alt.selection_point(name="cursor", fields=["t"], nearest=True, on="pointermove", clear="pointerout")
    values = _cursor_rows(data, domain)
    panels = []
    for name in HEIGHTS:
        x = _time_axis(domain, labelled=name == "throughput")
        layers = [
            *_shading(data, x, named=name == "lag"),
            _lines(data, name, x),
            _cursor(values, x).add_params(zoom, cursor),
            *_marks(data, x, domain, named=name == "lag"),
        ]
        panel = alt.layer(*layers).resolve_scale(color="independent", strokeDash="independent")
        panels.append(panel.properties(width=WIDTH, height=HEIGHTS[name], name=name))
    with warnings.catch_warnings():  # one zoom and one cursor for the three panels is the intent
        warnings.filterwarnings("ignore", message="Automatically deduplicated")
        chart = alt.vconcat(*panels, spacing=14)
    chart.title = alt.TitleParams(data.title, subtitle=data.subtitle, anchor="start", frame="bounds", offset=10)
    return _styled(chart.resolve_scale(x="shared", color="independent", strokeDash="independent"))


def breakdown(parts: pd.DataFrame, *, bound: float = 90.0, what: str = "Reaction") -> alt.VConcatChart:
    """One stacked bar of the reaction's parts in order, over a cascade that names each part and its seconds.

    ``parts`` [part, seconds, group] in the order they happened; ``bound`` in seconds. ``ValueError`` if there is none,
    or one has no finite, non-negative length.
    """
    seconds = parts["seconds"].to_numpy(dtype=float)
    if not len(seconds) or not np.isfinite(seconds).all() or (seconds < 0).any():
        raise ValueError(f"breakdown: every part needs a length of 0 s or more, got {seconds.tolist()}")
    ends = np.cumsum(seconds)
    total = float(ends[-1])
    names = [f"{n} · {part}" for n, part in enumerate(parts["part"], 1)]
    rows = [
        {
            "part": name,
            "group": str(group),
            "seconds": round(length, 3),
            "start": end - length,
            "end": end,
            "text": f"{length:.3g} s",
        }
        for name, group, length, end in zip(names, parts["group"], seconds.tolist(), ends.tolist(), strict=True)
    ]
    groups = list(dict.fromkeys(parts["group"].astype(str)))
    scale = alt.Scale(domain=[0, max(total, bound) * 1.08], nice=False)
    x = alt.X("start:Q", scale=scale, title="Time since the reaction's start (s)")
    squares = alt.Legend(symbolType="square", symbolStrokeWidth=0, symbolSize=140)
    colour = alt.Color("group:N", title="Where", sort=groups, scale=alt.Scale(domain=groups, range=GROUPS), legend=squares)
    tips = [alt.Tooltip("part:N"), alt.Tooltip("group:N"), alt.Tooltip("seconds:Q", title="seconds (s)")]
    limit = alt.Chart(_inline([{"x": bound, "text": f"bound {bound:g} s"}])).encode(x=alt.X("x:Q", scale=scale))
    rule = limit.mark_rule(color=INK, strokeDash=[5, 3], strokeWidth=1.5)
    bars = alt.Chart(_inline(rows)).encode(x=x, x2="end:Q", color=colour, tooltip=tips)
    whole = alt.layer(
        bars.mark_bar(stroke="white", strokeWidth=1, height=30).encode(x=x.axis(None)),
        rule,
        limit.mark_text(align="right", dx=-4, dy=-26, fontSize=11, color=INK).encode(text="text:N"),
        alt.Chart(_inline([{"x": total, "text": f"{total:.1f} s"}]))
        .mark_text(align="left", dx=5, fontSize=13, fontWeight="bold", color=INK)
        .encode(x=alt.X("x:Q", scale=scale), text="text:N"),
    ).properties(width=WIDTH - 230, height=44, view=alt.ViewBackground(stroke=None))
    y = alt.Y("part:N", sort=names, title=None, axis=alt.Axis(labelLimit=320, ticks=False, domain=False, labelPadding=8))
    cascade = alt.layer(
        bars.mark_bar(height=13).encode(y=y),
        rule,
        alt.Chart(bars.data)
        .mark_text(align="left", dx=5, fontSize=11)
        .encode(x=alt.X("end:Q", scale=scale), y=y, color=alt.value(INK), text="text:N"),
    ).properties(width=WIDTH - 230, height=alt.Step(22))
    verdict = "within" if total <= bound else "over"
    title = alt.TitleParams(
        f"{what}: {total:.1f} s, {verdict} the bound of {bound:g} s", anchor="start", frame="bounds", offset=8
    )
    return _styled(alt.vconcat(whole, cascade, spacing=4, title=title).resolve_scale(x="shared", color="shared"))


def html(chart: Any) -> str:
    """The chart as one interactive page with its scripts inside: nothing is fetched when it is opened."""
    return vlc.vegalite_to_html(chart.to_dict(), vl_version=VEGA_LITE, bundle=True, renderer="canvas")


def svg(chart: Any) -> str:
    """The chart as a static SVG document, its text kept as text."""
    return vlc.vegalite_to_svg(chart.to_dict(), vl_version=VEGA_LITE)


def png(chart: Any, scale: float = 2.0) -> bytes:
    """The chart as a PNG image on white, ``scale`` image pixels to each pixel of the chart."""
    return vlc.vegalite_to_png(chart.to_dict(), vl_version=VEGA_LITE, scale=scale)


def _domain(data: Timeline) -> tuple[float, float]:
    tables = (
        data.lag["t"],
        data.replicas["t"],
        data.throughput["t"],
        data.marks["t"],
        data.faults["start"],
        data.faults["end"],
    )
    times = pd.concat([column for column in tables if len(column)]).astype(float)
    first, last = float(times.min()), float(times.max())
    return first, last if last > first else first + 1.0


def _time_axis(domain: tuple[float, float], *, labelled: bool) -> dict[str, Any]:
    axis = alt.Axis(format=",~f", tickCount=12) if labelled else alt.Axis(labels=False, ticks=False, tickCount=12)
    title = "Time since the spike began (s)" if labelled else None
    return {"scale": alt.Scale(domain=list(domain), nice=False), "axis": axis, "title": title}


def _inline(rows: list[dict[str, Any]]) -> alt.InlineData:
    return alt.InlineData(values=rows)


def _table(table: pd.DataFrame, **rounding: int) -> alt.InlineData:
    """The table as JSON rows, numbers rounded to what can be seen; a missing number is null and draws as a gap."""
    rounded = table.astype({name: float for name in rounding}).round(rounding)
    return _inline(rounded.astype(object).where(rounded.notna(), None).to_dict("records"))


def _colours(marks: dict[str, tuple[str, list[int]]]) -> tuple[alt.Scale, alt.Scale]:
    names = list(marks)
    colour = alt.Scale(domain=names, range=[colour for colour, _ in marks.values()])
    return colour, alt.Scale(domain=names, range=[dash for _, dash in marks.values()])


def _lines(data: Timeline, name: str, x: dict[str, Any]) -> alt.LayerChart:
    """The panel's series; the objective is one of the lag panel's, so that its legend names it."""
    if name == "lag":
        drawn, value, kind = sampling.thin(data.lag[["t", "lag"]], "lag").assign(series="lag"), "lag", "series"
    elif name == "replicas":
        by_kind = [sampling.steps(part, "replicas") for _, part in data.replicas.groupby("kind", sort=False)]
        drawn, value, kind = pd.concat(by_kind), "replicas", "kind"
    else:
        by_series = [sampling.thin(part, "rate") for _, part in data.throughput.groupby("series", sort=False)]
        drawn, value, kind = pd.concat(by_series), "rate", "series"
    colour, dash = _colours(LINES[name])
    axis = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5, minExtent=52, maxExtent=52, titlePadding=4)
    if name == "replicas":
        axis.tickMinStep = 1
    named = 12 + LINE * (1 + max(_rows(data, x["scale"].domain), default=-1)) if name == "lag" else 12
    highest = max(float(drawn[value].max()), data.lag_objective if name == "lag" else 0.0, 1.0)
    scale = alt.Scale(domain=[0, highest * HEIGHTS[name] / (HEIGHTS[name] - named)], nice=False)
    base = alt.Chart(_table(drawn, t=2, **{value: 1})).encode(
        x=alt.X("t:Q", **x),
        y=alt.Y(f"{value}:Q", title=TITLES[name], axis=axis, scale=scale),
        color=alt.Color(f"{kind}:N", scale=colour, title=LEGENDS[name]),
        strokeDash=alt.StrokeDash(f"{kind}:N", scale=dash, title=LEGENDS[name]),
    )
    after = "step-after" if name == "replicas" else "linear"
    lines = [base.mark_line(interpolate=after, strokeWidth=1.8, clip=True, strokeJoin="round", tooltip=None)]
    if name == "replicas":
        width = alt.StrokeWidth("kind:N", scale=alt.Scale(domain=list(LINES[name]), range=[1.5, 4.5, 1.8]), legend=None)
        order = sorted(LINES[name], key=["current", "ready", "desired"].index)
        lines = [lines[0].encode(strokeWidth=width).transform_filter(alt.datum.kind == kind) for kind in order]
    if name == "lag":
        ground = alt.Chart(base.data).mark_area(clip=True, opacity=0.08, color=INK, tooltip=None)
        objective = alt.Chart(_inline([{"series": "lagThreshold", "lag": data.lag_objective}])).encode(
            y="lag:Q", color=alt.Color("series:N", scale=colour), strokeDash=alt.StrokeDash("series:N", scale=dash)
        )
        lines = [ground.encode(x=base.encoding.x, y=base.encoding.y), *lines, objective.mark_rule(strokeWidth=1.5)]
    return alt.layer(*lines)


def _cursor_rows(data: Timeline, domain: tuple[float, float]) -> list[dict[str, Any]]:
    """Every series' value in force at evenly spaced moments: what the cursor shows in all panels at once."""
    times = np.linspace(*domain, CURSOR_STEPS)
    columns = {"lag": sampling.at(times, data.lag, "lag")}
    for kind, part in data.replicas.groupby("kind"):
        columns[str(kind)] = sampling.at(times, part, "replicas")
    for series, part in data.throughput.groupby("series"):
        columns[str(series)] = sampling.at(times, part, "rate")
    moments = ({"t": round(float(t), 2)} for t in times)
    return [row | {name: column[n] for name, column in columns.items()} for n, row in enumerate(moments)]


def _cursor(rows: list[dict[str, Any]], x: dict[str, Any]) -> alt.Chart:
    formats = {"lag": ",.0f", "desired": "d", "current": "d", "ready": "d", "produced": ",.0f", "consumed": ",.0f"}
    tips = [alt.Tooltip("t:Q", title="time (s)", format=",.1f")]
    tips += [alt.Tooltip(f"{name}:Q", format=shape) for name, shape in formats.items() if name in rows[0]]
    moment = alt.Chart(_inline(rows)).mark_rule(color=QUIET, strokeWidth=1)
    shown = alt.OpacityValue(0, condition={"param": "cursor", "empty": False, "value": 0.8})
    return moment.encode(x=alt.X("t:Q", **x), opacity=shown, tooltip=tips)


def _rows(data: Timeline, domain: Sequence[float]) -> list[int]:
    """The row of each phase's and fault's name, in that order, so that no name covers another."""
    named = pd.concat([table for table in (data.spans, data.faults) if len(table)] or [data.spans])
    widths = named["label"].astype(str).str.len().to_numpy() * 6.4 + 8
    second = (domain[1] - domain[0]) / WIDTH
    middles = named["start"].to_numpy(dtype=float) + widths * second / 2
    order = np.argsort(middles, kind="stable")
    placed = sampling.rows_for(middles[order].tolist(), (widths[order] * second).tolist(), LABEL_ROWS)
    rows = dict(zip(order.tolist(), placed, strict=True))
    return [rows[n] or 0 for n in range(len(named))]


def _shading(data: Timeline, x: dict[str, Any], *, named: bool) -> list[alt.Chart]:
    """The profile's phases as a light ground, the faults as bars at the panel's top with a tint below them."""
    rows = _rows(data, x["scale"].domain)
    layers = []
    for table, colour, strength, places in (
        (data.spans, "#8a8a8a", 0.13, rows[: len(data.spans)]),
        (data.faults, FAULT, 0.16, rows[len(data.spans) :]),
    ):
        if table.empty:
            continue
        placed = _table(table.assign(y=[17 + LINE * row for row in places]), start=2, end=2)
        start = alt.Chart(placed).encode(x=alt.X("start:Q", **x), tooltip=["label:N", "start:Q", "end:Q"])
        layers.append(start.mark_rect(color=colour, opacity=strength, clip=True).encode(x2="end:Q"))
        if table is data.faults:
            layers.append(start.mark_rect(color=colour, clip=True).encode(x2="end:Q", y=alt.value(0), y2=alt.value(5)))
        if named:
            text = start.mark_text(align="left", dx=4, fontSize=11, fontWeight="bold", color=QUIET, clip=True)
            layers.append(text.encode(y=alt.Y("y:Q", scale=None), text="label:N"))
    return layers


def _marks(data: Timeline, x: dict[str, Any], domain: tuple[float, float], *, named: bool) -> list[alt.LayerChart]:
    """Scale events as thin rules through the panel, rebalances as ticks on its floor; the top panel names and explains them."""
    if data.marks.empty:
        return []
    colour, dash = _colours(EVENTS)
    ordered = data.marks.sort_values("t", kind="stable")
    scaled, moved = ordered[ordered["kind"] != "rebalance"], ordered[ordered["kind"] == "rebalance"]
    legend = alt.Legend(title="Events") if named else None
    tips = [alt.Tooltip("t:Q", title="time (s)", format=",.1f"), "kind:N", "label:N", "detail:N"]
    layers = []
    for table, width in ((scaled, 1.2), (moved, 1.3)):
        rules = (
            alt.Chart(_table(table, t=2))
            .mark_rule(strokeWidth=width, clip=True)
            .encode(
                x=alt.X("t:Q", **x),
                color=alt.Color("kind:N", scale=colour, legend=legend),
                strokeDash=alt.StrokeDash("kind:N", scale=dash, legend=legend),
                tooltip=tips,
            )
        )
        if table is moved:
            height = HEIGHTS["lag"] if named else HEIGHTS["replicas"]
            rules = rules.encode(y=alt.value(height - 9), y2=alt.value(height))
        layers.append(rules)
    if named and len(scaled):
        second = (domain[1] - domain[0]) / WIDTH
        widths = [(len(str(label)) * 6 + 6) * second for label in scaled["label"]]
        rows = sampling.rows_for(scaled["t"].tolist(), widths, LABEL_ROWS)
        for row in range(LABEL_ROWS):
            chosen = scaled[[placed == row for placed in rows]]
            text = alt.Chart(_table(chosen, t=2)).mark_text(fontSize=10, baseline="bottom", clip=False)
            layers.append(
                text.encode(
                    x=alt.X("t:Q", **x),
                    y=alt.value(-3 - 12 * row),
                    text="label:N",
                    color=alt.Color("kind:N", scale=colour, legend=None),
                    tooltip=tips,
                )
            )
    return [alt.layer(*layers)]


def _styled(chart: Any) -> Any:
    """One look for every chart of the report; the page's menu saves images and offers nothing that leaves the page."""
    chart.config = alt.Config(
        background="white",
        font=FONT,
        view=alt.ViewConfig(stroke="#cccccc"),
        axis=alt.AxisConfig(
            gridColor="#ececec",
            domainColor="#999999",
            tickColor="#999999",
            titleFontWeight="normal",
            labelFontSize=11,
            titleFontSize=12,
        ),
        legend=alt.LegendConfig(
            symbolType="stroke", symbolSize=300, symbolStrokeWidth=2.2, labelFontSize=11, titleFontSize=11, offset=14
        ),
        title=alt.TitleConfig(fontSize=15, subtitleFontSize=12, subtitleColor="#555555", subtitlePadding=5),
    )
    chart.usermeta = {"embedOptions": {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}}
    return chart
