"""Predictions drawn: lag, age and replicas over time, beside what was recorded. Orange is predicted or asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import drawing
from lab.charts.drawing import ASKED, DELIVERED, DOWN, WIDTH, Layer, records
from lab.foresee.curve import Arrivals, Curve, ages
from lab.inputs.profile import Profile

PANELS = {"lag": ("Lag (messages)", 190), "age": ("Oldest event waits (s)", 130), "replicas": ("Replicas (pods)", 150)}
SERIES = {
    "predicted": (ASKED, [6, 3]),
    "recorded": (DELIVERED, [1, 0]),
    "asked for": (ASKED, [6, 3]),
    "at work": (DELIVERED, [1, 0]),
    "objective": (DOWN, [3, 3]),
}


@dataclass(frozen=True)
class Forecast:
    """What is drawn: a predicted curve on its profile, and a recorded one if there is. Times in s from the profile's start."""

    title: str
    subtitle: str
    profile: Profile
    tail_s: float
    objective_s: float | None
    predicted: Curve
    recorded: Curve | None = None


def forecast(data: Forecast) -> alt.VConcatChart:
    """Lag, age of the oldest unprocessed event, and replicas, over one axis of time, on the profile's phases."""
    end = max(float(curve.t[-1]) for curve in (data.predicted, data.recorded) if curve is not None)
    zoom = drawing.zoom()
    panels = []
    for name, (title, height) in PANELS.items():
        x = drawing.time_axis([0.0, end], "Time since the profile began (s)" if name == "replicas" else None)
        layers = [*_phases(data, x, end, named=name == "lag"), _lines(_drawn(data, name, end), name, title, height, x)]
        panel = alt.layer(*layers).add_params(zoom).resolve_scale(color="independent", strokeDash="independent")
        panels.append(panel.properties(width=WIDTH, height=height, name=name))
    return drawing.stacked(panels, data.title, data.subtitle, legends="independent")


def _drawn(data: Forecast, name: str, end: float) -> pd.DataFrame:
    """A panel's rows [t, series, value]; a count of replicas stays in force until the end."""
    parts = []
    curves = {"predicted": data.predicted} | ({"recorded": data.recorded} if data.recorded is not None else {})
    arrivals = Arrivals(data.profile, max(data.tail_s, end - data.profile.duration))
    for series, curve in curves.items():
        if name == "lag":
            parts.append(_thin(series, curve.t, curve.lag))
        elif name == "age":
            parts.append(_thin(series, *ages(curve, arrivals)))
        elif data.recorded is None:
            parts += [_steps("asked for", curve.t, curve.replicas, end), _steps("at work", curve.t, curve.working, end)]
        else:
            parts.append(_steps(series, curve.t, curve.replicas, end))
    if name == "age" and data.objective_s is not None:
        parts.append(pd.DataFrame({"t": [0.0, end], "value": [data.objective_s] * 2, "series": "objective"}))
    return pd.concat(parts, ignore_index=True)


def _thin(series: str, t: Any, value: Any) -> pd.DataFrame:
    return drawing.thin(pd.DataFrame({"t": t, "value": value}), "value").assign(series=series)


def _steps(series: str, t: Any, value: Any, end: float) -> pd.DataFrame:
    return drawing.steps(pd.DataFrame({"t": t, "value": np.asarray(value, dtype=float)}), "value", end).assign(series=series)


def _lines(drawn: pd.DataFrame, name: str, title: str, height: int, x: dict[str, Any]) -> alt.Chart:
    known = list(dict.fromkeys(drawn["series"]))
    room = 12 + drawing.LINE * drawing.LABEL_ROWS if name == "lag" else 12
    y = alt.Scale(domain=[0, max(1.0, *drawn["value"]) * height / (height - room)], nice=False)
    styles = {one: SERIES[one] for one in known}
    if "predicted" in known and "recorded" not in known:
        styles["predicted"] = (ASKED, [1, 0])
    values = alt.Y("value:Q", title=title, axis=drawing.value_axis(whole=name == "replicas"), scale=y)
    chart = drawing.series(records(drawn, t=2, value=2), "series:N", styles, x, values, title=title.split(" (")[0])
    shape: dict[str, Any] = {"interpolate": "step-after"} if name == "replicas" else {"strokeJoin": "round"}
    line: alt.Chart = chart.mark_line(strokeWidth=1.8, clip=True, tooltip=True, **shape)
    return line


def _phases(data: Forecast, x: dict[str, Any], end: float, *, named: bool) -> list[Layer]:
    """Every second phase as a light ground; their names in the top panel, as far as there is room."""
    spans = pd.DataFrame(data.profile.phases(), columns=["start", "end", "label"])
    ground = alt.Chart(records(spans.iloc[1::2], start=2, end=2)).mark_rect(color="#8a8a8a", opacity=0.13, clip=True)
    layers: list[Layer] = [ground.encode(x=alt.X("start:Q", **x), x2="end:Q", tooltip=["label:N", "start:Q", "end:Q"])]
    return [*layers, *(drawing.names(drawing.placed(spans, (0.0, end)).dropna(), x) if named else [])]
