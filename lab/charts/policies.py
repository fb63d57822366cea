"""Simulated policies drawn: what they cost, how late they are and how often they flip. Pure: tables in, one spec out."""

from __future__ import annotations

import altair as alt
import pandas as pd

from lab.charts.drawing import ASKED, DELIVERED, INK, UP, WIDTH, Layer, records, titled

CELL_W, CELL_H = 46, 26  # pixels
COLOURS = {"flips": ("white", "#4a1486"), "late_s": ("white", "#a63603"), "pod_minutes": ("white", "#084594")}
TRIED, FLIPPING, FRONT = "tried", "tried, flips", "no other is both cheaper and less late"
YOURS, RECOMMENDED = "as given", "recommended"
POINTS = {
    TRIED: ("#b5b5b5", "circle", 22),
    FLIPPING: ("#d9b3c9", "cross", 22),
    FRONT: (INK, "circle", 55),
    YOURS: (DELIVERED, "diamond", 190),
    RECOMMENDED: (ASKED, "triangle-up", 190),
}


def front(points: pd.DataFrame, title: str, subtitle: str, objective_s: float) -> alt.VConcatChart:
    """Each policy that was tried by its pod-minutes and by how long the group is behind.

    ``points`` [pod_minutes, late_s, kind: one of POINTS, label]. The points of the front are joined: between two of them none
    was found.
    """
    known = [kind for kind in POINTS if kind in set(points["kind"])]
    scale = alt.Scale(zero=False, nice=True, padding=14)
    cost = alt.X("pod_minutes:Q", title="Pod-minutes", scale=scale, axis=alt.Axis(tickCount=8))
    axis = alt.Axis(minExtent=52, maxExtent=52)
    behind = alt.Y("late_s:Q", title=f"Behind by more than {objective_s:g} s, for (s)", scale=scale, axis=axis)
    layers: list[Layer] = []
    along = points[points["kind"] == FRONT].sort_values("pod_minutes")
    if len(along) > 1:
        line = alt.Chart(records(along, pod_minutes=2, late_s=2)).mark_line(interpolate="step-after", color=UP, strokeWidth=1.4)
        layers.append(line.encode(x=cost, y=behind))
    colours, shapes, sizes = (alt.Scale(domain=known, range=[POINTS[kind][part] for kind in known]) for part in range(3))
    sizes.type = "ordinal"
    legend = alt.Legend(title=None, orient="top", direction="horizontal", symbolType="circle", labelLimit=WIDTH // 2)
    ordered = pd.concat([points[points["kind"] == kind] for kind in known])
    dots = alt.Chart(records(ordered, pod_minutes=2, late_s=2)).mark_point(filled=True, opacity=0.9)
    looks = alt.Color("kind:N", scale=colours, legend=legend), alt.Shape("kind:N", scale=shapes, legend=legend)
    size = alt.Size("kind:N", scale=sizes, legend=legend)
    layers.append(dots.encode(cost, behind, *looks, size, tooltip=["label:N", "pod_minutes:Q", "late_s:Q"]))
    marked = points[points["kind"].isin([YOURS, RECOMMENDED])]
    text = alt.Chart(records(marked, pod_minutes=2, late_s=2)).mark_text(
        align="left", dx=11, dy=-9, fontSize=12, fontWeight="bold", color=INK
    )
    layers.append(text.encode(x=cost, y=behind, text="kind:N"))
    return titled(alt.vconcat(alt.layer(*layers).properties(width=WIDTH, height=360, name="front")), title, subtitle)


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
    return titled(chart, title, "Darker is more. A cell with a frame is the policy as given.")


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
