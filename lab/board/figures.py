"""Figures of the live board, as Plotly's JSON. Pure: series and moments in, plain data out."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lab.board.panels import ASKED, BETWEEN, DELIVERED, DOWN, FAULT, FLAG, UP, Mark, Panel

if TYPE_CHECKING:  # its client of Prometheus takes a second to import
    from lab.board.source import Series, Window

CYCLE = (ASKED, DELIVERED, UP, DOWN, FAULT, BETWEEN)
SLACK_S = 2  # events within one second are scraped, and so seen, in either order
TEXT, GRID = "#444444", "#ececec"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"


def figure(panel: Panel, series: Sequence[Series], moments: Mapping[Mark, Sequence[float]], window: Window) -> dict[str, Any]:
    """One panel as a figure: its series over the window, and a line at each moment."""

    def natural(one: Series) -> list[int | str]:
        """Partition 2 comes before partition 10."""
        return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", one.name)]

    ordered = sorted(series, key=natural) if panel.many else series
    lines = [_line(panel, number, one, window.step) for number, one in enumerate(ordered)]
    return {"data": lines, "layout": _layout(panel, bool(lines), moments, window)}


def reaction(moments: Mapping[Mark, Sequence[float]]) -> list[tuple[Mark, str]]:
    """Each mark with the time of its first moment after a spike: the spike's by the clock, the others' after it.

    The spike is the last one that the replicas followed, for pods that are there may take the later ones; else the last.
    """
    spikes = next((found for mark, found in moments.items() if mark.title == "spike"), ())
    if not spikes:
        return [(mark, "not yet") for mark in moments]
    others = {mark: found for mark, found in moments.items() if mark.title != "spike"}
    ends = [*spikes[1:], math.inf]
    followed = {
        spike: {mark: next((at for at in found if spike - SLACK_S <= at < end), None) for mark, found in others.items()}
        for spike, end in zip(spikes, ends, strict=True)
    }
    chosen = next((spike for spike in reversed(spikes) if any(followed[spike].values())), spikes[-1])
    said = []
    for mark in moments:
        after = followed[chosen].get(mark)
        waited = "not yet" if after is None else f"+{max(0.0, after - chosen):.0f} s"
        said.append((mark, time.strftime("%H:%M:%S", time.localtime(chosen)) if mark.title == "spike" else waited))
    return said


def clock(t: float) -> float:
    """``t`` in milliseconds, in the form in which Plotly draws local time."""
    return (t + time.localtime(t).tm_gmtoff) * 1000


def _line(panel: Panel, number: int, one: Series, step: int) -> dict[str, Any]:
    colour = one.query.colour or CYCLE[number % len(CYCLE)]
    width = 1 if panel.many else one.query.width
    line: dict[str, Any] = {"color": colour, "width": width, "shape": "hv" if panel.stepped else "linear"}
    if one.query.dashed:
        line |= {"dash": "dash", "width": 1.4}
    t, values, gaps = (one.t, one.values, 0) if panel.stacked else _with_gaps(one, step)
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "lines+markers" if gaps else "lines",  # a point between two gaps gives no line
        "marker": {"size": 3.5},
        "name": one.name,
        "x": [clock(at) for at in t],
        "y": values,
        "line": line,
        "showlegend": not panel.many,
        "hovertemplate": "%{y:,.4~g}" + ("<extra>%{fullData.name}</extra>" if panel.many else ""),
    }
    if panel.stacked:
        trace |= {"stackgroup": "all", "fillcolor": colour + "99", "line": line | {"color": "white", "width": 0.4}}
    return trace


def _with_gaps(one: Series, step: int) -> tuple[list[float], list[float | None], int]:
    """The series with a missing value where Prometheus had none, and their number: no line is drawn over a gap."""
    t: list[float] = []
    values: list[float | None] = []
    for at, value in zip(one.t, one.values, strict=True):
        if t and at - t[-1] > 1.5 * step:
            t.append(t[-1] + step)
            values.append(None)
        t.append(at)
        values.append(value)
    return t, values, values.count(None)


def _layout(panel: Panel, any_data: bool, moments: Mapping[Mark, Sequence[float]], window: Window) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": "#bbbbbb", "fixedrange": False}
    upright = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1}
    lines = [
        upright | {"x0": clock(at), "x1": clock(at), "line": {"color": mark.colour, "width": 1.2, "dash": "dot"}}
        for mark, found in moments.items()
        for at in found
    ]
    shown = [clock(window.start), clock(window.end)]
    limits = {"range": [-0.02, 1.1]} if panel.unit == FLAG else {"rangemode": "tozero"}
    nothing = {"text": "no data", "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    return {
        "uirevision": window.namespace,  # a zoom survives the refresh
        "margin": {"l": 52, "r": 12, "t": 8, "b": 26},
        "font": {"family": FONT, "size": 11, "color": TEXT},
        "plot_bgcolor": "white",
        "paper_bgcolor": "white",
        "hovermode": "closest" if panel.many else "x unified",
        "legend": {"orientation": "h", "x": -0.1, "y": 1.02, "yanchor": "bottom", "font": {"size": 11}},
        "xaxis": axis | {"type": "date", "range": shown, "tickformat": "%H:%M:%S", "nticks": 7},
        "yaxis": axis | limits | {"nticks": 6, "tickformat": "~s" if panel.unit.startswith("messages") else "~g"},
        "shapes": lines,
        "annotations": [] if any_data else [nothing],
    }
