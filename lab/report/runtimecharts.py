"""Charts of trials on two runtimes: each reaction by part, one runtime above the other, and every figure as a ratio. Pure."""

from __future__ import annotations

import math
from statistics import median
from typing import Any

import altair as alt

from lab.measure.reaction import PARTS
from lab.report import runtimes
from lab.report.look import ASKED, BETWEEN, DELIVERED, DOWN, FAULT, INK, QUIET, UP, WIDTH, inline, styled
from lab.report.runtimes import Comparison, Pair, ratio

# Figures drawn as ratios; a count or a depth that is 0 on one side has none.
DRAWN = (
    (runtimes.REACTION, "KEDA and HPA decide (s)", "KEDA and HPA decide"),
    (runtimes.REACTION, runtimes.TOTAL, "reaction"),
    (runtimes.COLD, runtimes.START, "cold start: created to subscribed"),
    (runtimes.COLD, runtimes.JOIN, "cold start: subscribed to first partition"),
    (runtimes.COLD, runtimes.WORKING, "cold start: created to first receipt"),
    (runtimes.LAG, runtimes.PEAK, "peak lag"),
    (runtimes.LAG, runtimes.DRAIN, "drain"),
    (runtimes.LAG, runtimes.RATE, "consumed rate while lag > 0"),
    (runtimes.REBALANCE, "median rebalance (s)", "median rebalance"),
    (runtimes.UP, runtimes.DEPTH, "dip of the median scale-up"),
    (runtimes.UP, runtimes.BACK, "recovery of the median scale-up"),
    (runtimes.COST, runtimes.POD_MINUTES, "pod-minutes"),
)
COLOURS = [QUIET, FAULT, BETWEEN, UP, DELIVERED, DOWN, ASKED]
LABEL = 300


def reactions(comparison: Comparison) -> alt.VConcatChart:
    """Stacked bars of the reaction's parts (s, medians over runs), a row a runtime under each trial's name.

    ``ValueError`` if no pair has a reaction on either runtime.
    """
    rows: list[dict[str, Any]] = []
    totals: list[dict[str, Any]] = []
    order: list[str] = []
    for pair in comparison.pairs:
        for runtime in comparison.runtimes:
            at = 0.0
            parts = _parts(pair, runtime)
            if not parts:
                continue
            name = f"{pair.name}: {runtime}"
            order.append(name)
            for place, (part, seconds) in enumerate(parts):
                rows.append({"row": name, "part": part, "place": place, "start": at, "end": at + seconds})
                at += seconds
            totals.append({"row": name, "end": at, "text": f"{at:.2f} s"})
    if not rows:
        raise ValueError("no pair has a reaction")
    reach = max(total["end"] for total in totals) * 1.1
    width = WIDTH - LABEL
    scale = alt.Scale(domain=[0, reach], nice=False)
    y = alt.Y("row:N", sort=order, title=None, axis=alt.Axis(labelLimit=LABEL, ticks=False, domain=False, labelPadding=8))
    legend = alt.Legend(title=None, orient="top", columns=4, symbolType="square", symbolStrokeWidth=0, symbolSize=120)
    colour = alt.Color("part:N", sort=list(PARTS), scale=alt.Scale(domain=list(PARTS), range=COLOURS), legend=legend)
    x = alt.X("start:Q", scale=scale, title="Time since the reaction's start (s)")
    bars = alt.Chart(inline(rows)).mark_bar(height=14).encode(x=x, x2="end:Q", y=y, color=colour)
    text = alt.Chart(inline(totals)).mark_text(align="left", dx=5, fontSize=11, color=INK)
    named = text.encode(x=alt.X("end:Q", scale=scale), y=y, text="text:N")
    body = alt.layer(bars, named).properties(width=width, height=alt.Step(20))
    return styled(alt.vconcat(body, title=alt.TitleParams("Reaction by part", anchor="start", frame="bounds", offset=8)))


def _parts(pair: Pair, runtime: str) -> list[tuple[str, float]]:
    found = []
    for part in PARTS:
        row = pair.row(runtimes.REACTION, f"{part} (s)")
        seconds = row.middle(runtime) if row else None
        if seconds is None:
            return []
        found.append((part, seconds))
    return found


def ratios(comparison: Comparison) -> alt.VConcatChart:
    """Each figure's ratio of the second runtime to the first, a dot a trial, the median as a tick; 1 is equal, the axis is
    logarithmic. ``ValueError`` if no figure has a ratio."""
    base, other = comparison.runtimes
    dots: list[dict[str, Any]] = []
    notes: list[dict[str, Any]] = []
    for part, name, label in DRAWN:
        found = [value for pair in comparison.pairs if (value := _ratio(pair, part, name, (base, other)))]
        dots += [{"row": label, "ratio": value, "offset": n * 0.618034 % 1} for n, value in enumerate(found)]
        if found:
            middle = round(median(found), 4)
            count = "1 trial" if len(found) == 1 else f"{len(found)} trials"
            notes.append({"row": label, "ratio": middle, "text": f"{middle:.2f} ({min(found):.2f}-{max(found):.2f}), {count}"})
    if not dots:
        raise ValueError("no figure has a ratio")
    values = [dot["ratio"] for dot in dots]
    low, high = min(0.5, *values) / 1.15, max(2.0, *values) * 1.15
    ticks = [
        tick for tick in (0.01, 0.02, 0.05, 0.1, 0.2, 0.33, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 50, 100) if low <= tick <= high
    ]
    names = [note["row"] for note in notes]
    width = WIDTH - 440
    scale = alt.Scale(type="log", domain=[low, high], nice=False)
    axis = alt.Axis(values=ticks, format="~g", labelFlush=False)
    x = alt.X("ratio:Q", scale=scale, axis=axis, title=f"{other} / {base}, logarithmic; 1 is equal")
    y = alt.Y("row:N", sort=names, title=None, axis=alt.Axis(labelLimit=LABEL, ticks=False, domain=False, labelPadding=8))
    spread = alt.YOffset("offset:Q", scale=alt.Scale(domain=[0, 1], range=[5, 19]))
    equal = alt.Chart(inline([{"ratio": 1.0}])).mark_rule(color=INK, strokeWidth=1.2).encode(x=x)
    each = alt.Chart(inline(dots)).mark_circle(size=42, opacity=0.6, color=DELIVERED).encode(x=x, y=y, yOffset=spread)
    tick = alt.Chart(inline(notes)).mark_tick(thickness=3, size=20, color=ASKED).encode(x=x, y=y)
    note = alt.Chart(inline(notes)).mark_text(align="left", dx=8, fontSize=11, color=QUIET)
    body = alt.layer(equal, each, tick, note.encode(x=alt.value(width), y=y, text="text:N"))
    below = "a dot is one trial, the tick the median; beside it the median, least and most"
    title = alt.TitleParams(f"{other} / {base}, by figure", subtitle=below, anchor="start", frame="bounds", offset=8)
    return styled(alt.vconcat(body.properties(width=width, height=alt.Step(24)), title=title))


def _ratio(pair: Pair, part: str, name: str, names: tuple[str, str]) -> float | None:
    row = None if pair.withheld(part, name) else pair.row(part, name)
    found = ratio(*(row.middle(runtime) for runtime in names)) if row else None
    return round(found, 4) if found is not None and found > 0.001 and math.isfinite(found) else None
