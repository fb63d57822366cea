"""A trial's timeline: lag, replicas and throughput over one axis of time. Pure: tables in, one Vega-Lite spec out.

Orange is what is asked for, blue what is delivered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import drawing
from lab.charts.drawing import (
    ASKED,
    BETWEEN,
    DELIVERED,
    DOWN,
    FAULT,
    INK,
    MOVED,
    UP,
    WIDTH,
    Layer,
    Style,
    inline,
    records,
)

HEIGHTS = {"lag": 190, "replicas": 150, "throughput": 150}
TIME = alt.Tooltip("t:Q", title="time (s)", format=",.1f")
FAR = 5  # times the most that was consumed

EVENTS = {"scale up": (UP, [1, 0]), "scale down": (DOWN, [5, 3]), "rebalance": (MOVED, [1, 0])}
THRESHOLD = "lagThreshold (1 pod)"  # the line is what the HPA allows each pod, and the curve is the lag of the group
LINES: dict[str, dict[str, Style]] = {
    "lag": {"lag": (INK, [1, 0]), THRESHOLD: (ASKED, [6, 4])},
    "replicas": {"desired": (ASKED, [6, 4]), "current": (BETWEEN, [1, 0]), "ready": (DELIVERED, [1, 0])},
    "throughput": {"produced": (ASKED, [6, 4]), "consumed": (DELIVERED, [1, 0])},
}
UNITS = {"lag": "messages", "replicas": "pods", "throughput": "messages/s"}


@dataclass(frozen=True)
class Timeline:
    """What one trial's timeline shows. Every ``t``, ``start`` and ``end`` is in seconds since the spike's start.

    ``lag`` [t, lag] in messages; ``lag_objective`` the lagThreshold's line, in messages, if there is one; ``replicas``
    [t, kind: desired | current | ready, replicas], each in force until its next row; ``throughput`` [t, series:
    produced | consumed, rate] in messages/s; ``spans`` [start, end, label] the profile's phases; ``marks``
    [t, kind: scale up | scale down | rebalance, label, detail]; ``events`` [start, end, label].
    """

    title: str
    subtitle: str
    lag: pd.DataFrame
    lag_objective: float | None
    replicas: pd.DataFrame
    throughput: pd.DataFrame
    spans: pd.DataFrame
    marks: pd.DataFrame
    events: pd.DataFrame


def timeline(data: Timeline) -> alt.VConcatChart:
    """The three panels over one axis of time; ``ValueError`` if there is no lag, no replicas or no throughput to draw."""
    for name in HEIGHTS:
        if getattr(data, name).empty:
            raise ValueError(f"timeline {data.title!r}: the table {name!r} is empty")
    domain = _domain(data)
    zoom, pointer = drawing.zoom(), drawing.pointer()
    times = np.linspace(*domain, drawing.CURSOR_STEPS)
    values = _values(data, times)
    # The time is 0 at the begin of the first phase after the baseline; many a trial has no spike.
    first = next((str(label) for label in data.spans.sort_values("start")["label"] if str(label).isalpha()), "spike")
    panels = []
    for name in HEIGHTS:
        x = drawing.time_axis(domain, f"Time since the {first} began (s)" if name == "throughput" else None)
        layers: list[Layer] = [
            *_shading(data, x),
            _lines(data, name, x),
            drawing.cursor(values, times, x).add_params(zoom, pointer),
            *_marks(data, name, x, zoom),
            *(drawing.names(_names(data, domain), x) if name == "lag" else []),
        ]
        panel = alt.layer(*layers).resolve_scale(color="independent", strokeDash="independent")
        panels.append(panel.properties(width=WIDTH, height=HEIGHTS[name], name=name))
    return drawing.stacked(panels, data.title, data.subtitle, legends="independent")


def _domain(data: Timeline) -> tuple[float, float]:
    samples = [table["t"] for table in (data.lag, data.replicas, data.throughput, data.marks)]
    times = pd.concat([column for column in (*samples, data.events["start"], data.events["end"]) if len(column)]).astype(float)
    first, last = float(times.min()), float(times.max())
    return first, last if last > first else first + 1.0


def _series(data: Timeline, name: str, end: float) -> pd.DataFrame:
    """A panel's series as drawn, [t, series, value]; a replica count stays in force to the chart's ``end``."""
    if name == "lag":
        return drawing.thin(data.lag.rename(columns={"lag": "value"}), "value").assign(series="lag")
    if name == "throughput":
        rates = data.throughput.rename(columns={"rate": "value"}).groupby("series", sort=False)
        return pd.concat([drawing.thin(part, "value") for _, part in rates])
    counts = data.replicas.rename(columns={"replicas": "value", "kind": "series"}).groupby("series", sort=False)
    return pd.concat([drawing.steps(part, "value", end) for _, part in counts])


def _lines(data: Timeline, name: str, x: dict[str, Any]) -> alt.LayerChart:
    """The panel's series; the objective is one of the lag panel's, so that its legend names it."""
    domain = x["scale"].domain
    drawn = _series(data, name, domain[1])
    bound = [data.lag_objective] if name == "lag" and data.lag_objective is not None else []
    drawn_names = {*drawn["series"], *([THRESHOLD] if bound else [])}
    styles = {series: style for series, style in LINES[name].items() if series in drawn_names}
    rows = _names(data, domain)["row"].tolist() if name == "lag" else []
    room = 12 + drawing.LINE * (1 + max(rows, default=-1))
    highest = drawn.groupby("series")["value"].max()
    produced, consumed = (float(highest.get(series, 0.0)) for series in ("produced", "consumed"))
    # A group that is filled far faster than it can consume would have its own rate on the floor.
    beyond = 0 < consumed * FAR < produced
    most = consumed * 1.5 if beyond else max([1.0, *drawn["value"].dropna(), *bound])
    scale = alt.Scale(domain=[0, most * HEIGHTS[name] / (HEIGHTS[name] - room)], nice=False)
    legend, axis = name.capitalize(), drawing.value_axis(whole=name == "replicas")
    y = alt.Y("value:Q", title=f"{legend} ({UNITS[name]})", axis=axis, scale=scale)
    base = drawing.series(records(drawn, t=2, value=1), "series:N", styles, x, y, title=legend)
    line = base.mark_line(strokeWidth=1.8, clip=True, strokeJoin="round", tooltip=None)
    if name == "throughput":
        note = alt.Chart(inline([{"text": f"produced: up to {produced:,.0f} messages/s, beyond this axis"}]))
        text = note.mark_text(align="right", fontSize=11, color=ASKED, tooltip=None).encode(
            x=alt.value(WIDTH - 6), y=alt.value(10), text="text:N"
        )
        return alt.LayerChart(layer=[line, text] if beyond else [line])
    if name == "replicas":
        line = base.mark_line(interpolate="step-after", clip=True, tooltip=None)
        width = alt.StrokeWidth("series:O", scale=alt.Scale(domain=list(LINES[name]), range=[1.5, 3.5, 1.8]), legend=None)
        order = sorted(LINES[name], key=["current", "ready", "desired"].index)
        return alt.LayerChart(
            layer=[line.encode(strokeWidth=width).transform_filter(alt.datum.series == kind) for kind in order]
        )
    ground = alt.Chart(base.data).mark_area(clip=True, opacity=0.08, color=INK, tooltip=None)
    area = ground.encode(x=base.encoding.x, y=base.encoding.y)
    objective = alt.Chart(inline([{"series": THRESHOLD, "value": value} for value in bound])).mark_rule(strokeWidth=1.5)
    named = {"color": base.encoding.color, "strokeDash": base.encoding.strokeDash}
    return alt.LayerChart(layer=[area, line, *([objective.encode(y="value:Q", **named)] if bound else [])])


def _values(data: Timeline, times: np.ndarray) -> dict[str, list[float | None]]:
    """Every series' value in force at ``times``: what the cursor shows in all panels at once."""
    found = {"lag": drawing.values_at(times, data.lag, "lag")}
    for kind in LINES["replicas"]:
        found[kind] = drawing.values_at(times, data.replicas[data.replicas["kind"] == kind], "replicas")
    for series in LINES["throughput"]:
        found[series] = drawing.values_at(times, data.throughput[data.throughput["series"] == series], "rate")
    return {name: values for name, values in found.items() if any(value is not None for value in values)}


def _names(data: Timeline, domain: Sequence[float]) -> pd.DataFrame:
    """The names of phases and events as :func:`drawing.placed`. A phase that finds no row is in the first. An event that finds
    none, as there may be many, has its name where one points at its bar.
    """
    tables = [table for table in (data.spans, data.events) if len(table)] or [data.spans]
    found = drawing.placed(pd.concat(tables), domain)
    phase = found["label"].isin(data.spans["label"].astype(str))
    return found[phase | found["row"].notna()].fillna({"row": 0})


def _shading(data: Timeline, x: dict[str, Any]) -> list[Layer]:
    """The profile's phases as a light ground, the events as bars at the panel's top with a tint below them."""
    layers: list[Layer] = []
    for table, colour, strength in ((data.spans, "#8a8a8a", 0.13), (data.events, FAULT, 0.16)):
        if table.empty:
            continue
        start = alt.Chart(records(table, start=2, end=2)).encode(
            x=alt.X("start:Q", **x), tooltip=["label:N", "start:Q", "end:Q"]
        )
        layers.append(start.mark_rect(color=colour, opacity=strength, clip=True).encode(x2="end:Q"))
        if table is data.events:
            layers.append(start.mark_rect(color=colour, clip=True).encode(x2="end:Q", y=alt.value(0), y2=alt.value(5)))
    return layers


def _marks(data: Timeline, name: str, x: dict[str, Any], zoom: alt.Parameter) -> list[Layer]:
    """Scale events as thin rules through the panel, rebalances as ticks on its floor; the top panel names and explains them."""
    if data.marks.empty:
        return []
    colour, dash = drawing.style_scales(EVENTS)
    legend = alt.Legend(title="Events") if name == "lag" else None
    kind = alt.Color("kind:N", scale=colour, legend=legend)
    at = {"x": alt.X("t:Q", **x), "color": kind, "tooltip": [TIME, "kind:N", "label:N", "detail:N"]}
    ordered = data.marks.sort_values("t", kind="stable")
    scaled, moved = ordered[ordered["kind"] != "rebalance"], ordered[ordered["kind"] == "rebalance"]
    style = alt.StrokeDash("kind:N", scale=dash, legend=legend)
    rules = alt.Chart(records(scaled, t=2)).mark_rule(strokeWidth=1.2, clip=True).encode(strokeDash=style, **at)
    ticks = alt.Chart(records(moved, t=2)).mark_rule(strokeWidth=1.3, clip=True).encode(strokeDash=style, **at)
    layers = [rules, ticks.encode(y=alt.value(HEIGHTS[name] - 9), y2=alt.value(HEIGHTS[name]))]
    if name == "lag":
        widths = scaled["label"].astype(str).str.len() * 6 + 6
        second = (x["scale"].domain[1] - x["scale"].domain[0]) / WIDTH
        rows = drawing.label_rows(scaled["t"].tolist(), (widths * second).tolist())
        labels = scaled.assign(y=[np.nan if row is None else -3.0 - 12 * row for row in rows]).dropna(subset=["y"])
        text = alt.Chart(records(labels, t=2)).mark_text(fontSize=10, baseline="bottom", clip=False)
        in_view = alt.when(zoom).then(alt.value(1)).otherwise(alt.value(0))
        layers.append(text.encode(y=alt.Y("y:Q", scale=None), text="label:N", opacity=in_view, **at))
    return [alt.LayerChart(layer=layers)]
