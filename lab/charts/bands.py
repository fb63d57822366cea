"""What several runs of one trial look like beside each other: their median, the band that holds them, and how sides differ."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import drawing
from lab.charts.drawing import INK, QUIET, WIDTH, inline, records

MOMENTS = 200
HEIGHT = 150
STYLES = ((INK, [1, 0]), (QUIET, [5, 3]), (INK, [2, 2]))  # of the pairs
LETTER = 5.8
COLUMNS = ("trial", "t", "value", "low", "high")


def spread(part: pd.DataFrame, ends: pd.Series | None = None, moments: int = MOMENTS) -> pd.DataFrame:
    """The runs of each repeated trial as [trial, t, value, low, high]: median, least and greatest at each of ``moments``.

    ``part`` [trial, run, t, value] is one panel's, without ``run`` where nothing was repeated. With ``ends``, the last moment
    of each (trial, run), a value is in force until the next one and to that moment; else it changes evenly between samples.
    """
    found = []
    if "run" in part:
        for trial, own in part.groupby("trial", sort=False):
            if own["run"].nunique() > 1:
                last = float(own["t"].max()) if ends is None else float(ends[trial].max())
                times = np.linspace(float(own["t"].min()), last, moments)
                runs = [
                    _between(times, run) if ends is None else _in_force(times, run, float(ends[trial, number]))
                    for number, run in own.groupby("run")
                ]
                found.append(_spread(times, runs).assign(trial=trial))
    return pd.concat(found)[list(COLUMNS)] if found else pd.DataFrame(columns=list(COLUMNS))


def median(part: pd.DataFrame, found: pd.DataFrame) -> pd.DataFrame:
    """The rows of ``part`` with the median in the place of runs, whose :func:`spread` is ``found``."""
    return pd.concat([part[~part["trial"].isin(found["trial"])], found]) if len(found) else part


def band(
    found: pd.DataFrame, trials: Sequence[str], colours: Sequence[str], x: dict[str, Any], line: alt.Chart
) -> list[alt.Chart]:
    """The band of each repeated trial, in its colour, on the axis and in the shape of its ``line``."""
    y, shape = line.encoding.y, getattr(line.mark, "interpolate", None)
    low = y.copy()
    low.shorthand = "low:Q"
    drawn = []
    for trial, colour in zip(trials, colours, strict=False):
        own = found[found["trial"] == trial]
        if len(own):  # a colour by name would want a legend of its own
            area = alt.Chart(records(own[["t", "low", "high"]], t=2, low=1, high=1))
            mark = area.mark_area(opacity=0.18, clip=True, tooltip=None, color=colour)
            if shape == "step-after":
                mark.mark.interpolate = shape
            drawn.append(mark.encode(x=alt.X("t:Q", **x), y=low, y2="high:Q"))
    return drawn


def differences(part: pd.DataFrame, pairs: Sequence[tuple[str, str]], x: dict[str, Any]) -> alt.LayerChart:
    """The value of each pair's first side less that of its second, as a line with a name; of repeated duets in a band."""
    found = [difference(part, pair) for pair in pairs[: len(STYLES)]]
    known = pd.concat([one[name] for one in found for name in ("low", "high")]).dropna()
    reach = [min(0.0, *known) * 1.07, max(0.0, *known) * 1.07]
    scale = alt.Scale(domain=reach if reach[0] < reach[1] else [-1.0, 1.0], nice=False)
    y: dict[str, Any] = {"title": "Lag, difference (messages)", "axis": drawing.value_axis(), "scale": scale}
    level = alt.Chart(inline([{"value": 0}])).mark_rule(color=QUIET, strokeWidth=1)
    layers: list[Any] = [level.encode(y=alt.Y("value:Q", **y))]
    place = 0.0
    for (one, other), rows, (colour, dash) in zip(pairs, found, STYLES, strict=False):
        chart = alt.Chart(records(rows, t=2, value=1, low=1, high=1))
        if (rows["low"] < rows["high"]).any():
            area = chart.mark_area(opacity=0.13, clip=True, color=colour, tooltip=None)
            layers.append(area.encode(x=alt.X("t:Q", **x), y=alt.Y("low:Q", **y), y2="high:Q"))
        line = chart.mark_line(strokeWidth=1.7, clip=True, color=colour, strokeDash=dash)
        tips = [alt.Tooltip("t:Q", title="time (s)", format=",.1f")]
        tips += [alt.Tooltip("value:Q", title=f"{one} less {other}", format=",.0f")]
        layers.append(line.encode(x=alt.X("t:Q", **x), y=alt.Y("value:Q", **y), tooltip=tips))
        text = f"{one} less {other}"
        key = alt.Chart(inline([{}])).mark_rule(color=colour, strokeDash=dash, strokeWidth=2, clip=False)
        layers.append(key.encode(x=alt.value(place), x2=alt.value(place + 26), y=alt.value(-8), y2=alt.value(-8)))
        words = alt.Chart(inline([{"text": text}])).mark_text(align="left", fontSize=11, color=INK, clip=False)
        layers.append(words.encode(x=alt.value(place + 32), y=alt.value(-8), text="text:N"))
        place += 58 + LETTER * len(text)
    return alt.LayerChart(layer=layers, width=WIDTH, height=HEIGHT)


def difference(part: pd.DataFrame, pair: tuple[str, str]) -> pd.DataFrame:
    """[t, value, low, high]: the first side less the second at each moment; of several duets median, least and greatest."""
    rows = part[part["trial"].isin(pair)]
    rows = rows if "run" in rows else rows.assign(run=0)
    times = np.linspace(float(rows["t"].min()), float(rows["t"].max()), MOMENTS)
    first, second = (dict(iter(rows[rows["trial"] == name].groupby("run"))) for name in pair)
    return _spread(times, [_between(times, first[run]) - _between(times, second[run]) for run in first if run in second])


def _in_force(times: np.ndarray, run: pd.DataFrame, end: float) -> np.ndarray:
    """The value of a run in force at each of ``times``; nothing before its first sample and after its ``end``."""
    return np.where(times > end, np.nan, np.array(drawing.values_at(times, run, "value"), dtype=float))


def _between(times: np.ndarray, run: pd.DataFrame) -> np.ndarray:
    """The value of a run at each of ``times``, on the line between its samples: those of two sides are never at one moment."""
    known = run.dropna(subset=["value"]).sort_values("t", kind="stable")
    moments, values = (known[name].to_numpy(dtype=float) for name in ("t", "value"))
    return np.asarray(np.interp(times, moments, values, left=np.nan, right=np.nan))


def _spread(times: np.ndarray, runs: list[np.ndarray]) -> pd.DataFrame:
    stacked = np.vstack(runs)
    with warnings.catch_warnings():  # a moment that no run has is a gap
        warnings.filterwarnings("ignore", message="All-NaN slice encountered")
        values = {"value": np.nanmedian(stacked, axis=0), "low": np.nanmin(stacked, axis=0), "high": np.nanmax(stacked, axis=0)}
    return pd.DataFrame({"t": times, **values})
