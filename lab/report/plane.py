"""Flips, lateness and price of simulated policies over their windows, tolerances and lagThresholds, drawn. Pure."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lab.report.drawing import INK, records, styled

CELL_W, CELL_H = 46, 26  # pixels
COLOURS = {"flips": ("white", "#4a1486"), "late_s": ("white", "#a63603"), "pod_minutes": ("white", "#084594")}


def plane(cells: pd.DataFrame, title: str, objective_s: float) -> alt.VConcatChart:
    """A panel for each figure and tolerance: windows to the right, lagThresholds upwards, the figure in its cell.

    ``cells`` [tolerance, window_s, lag_threshold, flips, late_s, pod_minutes, given]; the given policy has a frame.
    """
    names = {"flips": "Flips", "late_s": f"Behind by more than {objective_s:g} s, for (s)", "pod_minutes": "Pod-minutes"}
    rows = []
    for number, (tolerance, part) in enumerate(cells.groupby("tolerance")):
        panels = [_panel(part, cells, field, name if number == 0 else "") for field, name in names.items()]
        row = alt.hconcat(*panels, spacing=26).resolve_scale(color="independent")
        row.title = alt.TitleParams(f"scaleDown.tolerance {tolerance:g}", anchor="start", fontSize=11, color=INK)
        rows.append(row)
    chart = alt.vconcat(*rows, spacing=18).resolve_scale(color="independent")
    subtitle = "Darker is more. A cell with a frame is the policy as given."
    chart.title = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=10)
    return styled(chart)


def _panel(part: pd.DataFrame, every: pd.DataFrame, field: str, name: str) -> alt.LayerChart | alt.FacetChart:
    """One figure at one tolerance. Its colours are those of the figure at ``every`` tolerance."""
    most = max(1.0, float(every[field].max()))
    shown = part.assign(text=[f"{value:,.0f}" for value in part[field]], pale=part[field] < most * 0.6)
    wide, high = shown["window_s"].nunique() * CELL_W, shown["lag_threshold"].nunique() * CELL_H
    upwards = alt.Axis(labelExpr="format(datum.value, ',')")
    base = alt.Chart(records(shown, late_s=2, pod_minutes=2)).encode(
        x=alt.X("window_s:O", title="Window (s)", axis=alt.Axis(labelAngle=0)),
        y=alt.Y("lag_threshold:O", title="lagThreshold (messages)", sort="descending", axis=upwards),
        tooltip=["tolerance:Q", "window_s:O", "lag_threshold:O", f"{field}:Q"],
    )
    colour = alt.Color(f"{field}:Q", scale=alt.Scale(range=COLOURS[field], domain=[0, most]), legend=None)
    cell = base.mark_rect().encode(color=colour)
    words = base.mark_text(fontSize=11).encode(
        text="text:N", color=alt.condition("datum.pale", alt.value(INK), alt.value("white"))
    )
    frame = base.mark_rect(filled=False, stroke=INK, strokeWidth=2).transform_filter("datum.given")
    heading = alt.TitleParams(name, fontSize=12, anchor="start")
    return alt.layer(cell, words, frame).properties(width=wide, height=high, title=heading)
