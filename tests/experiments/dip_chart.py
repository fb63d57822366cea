"""What each step of a group costs it, drawn: the dip of the consumed rate. Pure: tables in, one spec out.

Rates and depths are shares of a step's reference (``lab.measure.dip``): 1.0 is no change, a depth of 0.2 is 20 % below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts import drawing
from lab.charts.drawing import DOWN, INK, QUIET, UP, Layer, inline, records
from lab.judge.bounds import DIP
from lab.number_format import number

TITLE = "Consumed rate around each step"
REFERENCE = "1.0 is the best second just before the worst one; for a scale-down what its remaining pods can do of that"
KINDS = {"up": "scale-up", "down": "scale-down", "control": "control"}
COLOURS = {"up": UP, "down": DOWN, "control": QUIET}
SIDES = (("up", "control"), ("down",))
SECONDS, SHARES = (-2.0, 8.0), (0.0, 1.6)
SHARE_TICKS = [0, 0.4, 0.8, 1.2, 1.6]
PANEL_WIDTH, PANEL_HEIGHT = 372, 104


def dip_traces(traces: pd.DataFrame, dips: pd.DataFrame) -> alt.VConcatChart:
    """Every step's consumed rate around the step: a row a configuration, scale-up on the left, scale-down on the right.

    ``traces`` [configuration, kind: up | down | control, step, t, share], ``t`` in seconds since the step, ``share`` of the
    reference; a control stands on the left. The time reaches as far as any step was observed, 8 s at most. Each step is a thin
    line, their median a thick one. ``dips`` [configuration, kind, depth, recovery_s], a row a step, is summed up above each
    panel; a recovery that never came is NaN. ``ValueError`` if there is no trace.
    """
    if traces.empty:
        raise ValueError("no step to draw")
    zoom = drawing.zoom()
    names = list(dict.fromkeys(traces["configuration"]))
    last = float(traces["t"].max())
    window = (SECONDS[0], min(SECONDS[1], float(np.ceil(last))) if last > 0 else SECONDS[1])
    with drawing.shared_parameters():
        rows = [
            alt.hconcat(*(_panel(traces, dips, name, kinds, zoom, window) for kinds in SIDES), spacing=18) for name in names
        ]
        chart = alt.vconcat(*rows, spacing=10)
    return drawing.titled(chart.resolve_scale(x="shared"), TITLE, REFERENCE)


def _panel(
    traces: pd.DataFrame, dips: pd.DataFrame, name: str, kinds: Sequence[str], zoom: alt.Parameter, window: tuple[float, float]
) -> alt.LayerChart:
    """One configuration's steps of ``kinds``; only the lowest panels label their time, only the left ones their share."""
    names = list(dict.fromkeys(traces["configuration"]))
    lowest, left = name == names[-1], "up" in kinds
    own = traces[traces["configuration"] == name]
    axis = alt.Axis(tickCount=10, format="~f", labels=lowest, ticks=lowest)
    seconds = alt.Scale(domain=list(window), nice=False)
    x = alt.X("t:Q", scale=seconds, axis=axis, title="Time since the step (s)" if lowest else None)
    axis = alt.Axis(values=SHARE_TICKS, format=".1f", labels=left, ticks=left)
    shares = alt.Scale(domain=list(SHARES), nice=False)
    y = alt.Y("share:Q", scale=shares, axis=axis, title="Share of reference" if left else None)
    layers: list[Any] = []
    counts, notes = [], []
    for kind in kinds:
        steps = own[(own["kind"] == kind) & own["t"].between(*window)]
        if len(steps):
            layers += _lines(steps, COLOURS[kind], x, y)
            counts.append(f"{_kind(own, kind)}{_steps(steps['step'].nunique())}")
            notes.append(_note(dips[(dips["configuration"] == name) & (dips["kind"] == kind)]))
    if not layers:
        gap = "a control has no scale-down" if set(own["kind"]) == {"control"} else f"no data: {KINDS[kinds[0]]}"
        text = alt.Chart(inline([{"t": sum(window) / 2, "share": 0.4, "text": gap}])).mark_text(fontSize=11, color=QUIET)
        layers.append(text.encode(x=x, y=y, text="text:N"))
    # Altair names a view by what it draws but not by its data, and the data of views of one name get mixed up.
    layers[0] = layers[0].add_params(zoom).properties(name=f"row_{names.index(name)}_{kinds[0]}")
    heading = alt.TitleParams(
        f"{name}: {' and '.join(counts)}" if counts else name,
        subtitle=notes,
        anchor="start",
        frame="group",
        fontSize=12,
        subtitleFontSize=11,
        offset=4 if left else 10,  # a left panel's topmost label reaches 6 px above it
        limit=PANEL_WIDTH,
    )
    layers += _rules(y, named=not left)
    return alt.LayerChart(layer=layers, width=PANEL_WIDTH, height=PANEL_HEIGHT, title=heading)


def _lines(steps: pd.DataFrame, colour: str, x: alt.X, y: alt.Y) -> list[Layer]:
    tips = [alt.Tooltip("step:N"), alt.Tooltip("t:Q", title="time (s)", format=".1f"), alt.Tooltip("share:Q", format=".2f")]
    each = alt.Chart(records(steps[["step", "t", "share"]], t=3, share=3))
    median = alt.Chart(records(_median(steps), t=3, share=3))
    thin = each.mark_line(strokeWidth=0.7, opacity=0.45, color=colour, clip=True)
    thick = median.mark_line(strokeWidth=2.8, color=colour, clip=True, tooltip=None)
    return [thin.encode(x=x, y=y, detail="step:N", tooltip=tips), thick.encode(x=x, y=y)]


def _rules(y: alt.Y, *, named: bool) -> list[Layer]:
    """No change, and the objective, which is ``named`` beside the panel, where no line can cross the words."""
    objective = alt.Chart(inline([{"share": 1 - DIP, "text": f"objective: -{DIP * 100:g} %"}])).encode(y=y)
    rules: list[Layer] = [
        alt.Chart(inline([{"share": 1.0}])).mark_rule(color=INK, strokeWidth=1).encode(y=y),
        objective.mark_rule(color=INK, strokeWidth=1, strokeDash=[5, 3]),
    ]
    if named:
        text = objective.mark_text(align="left", dx=5, fontSize=10, color=INK, clip=False)
        rules.append(text.encode(x=alt.value(PANEL_WIDTH), text="text:N"))
    return rules


def _median(steps: pd.DataFrame) -> pd.DataFrame:
    """The steps' median share [t, share] in bins of the sampling's length, where at least half of the steps have a sample."""
    known = steps.dropna(subset=["share"]).sort_values(["step", "t"], kind="stable")
    if known.empty:
        return pd.DataFrame(columns=["t", "share"])
    apart = known.groupby("step")["t"].diff()
    width = float(apart[apart > 0].median()) if (apart > 0).any() else 1.0
    # Samples taken at the same times fall in the middle of a bin, so that rounding moves none to its neighbour.
    bins = np.floor((known["t"] - known["t"].iloc[0]) / width + 0.5)
    binned = known.groupby(bins.rename("bin")).agg(t=("t", "mean"), share=("share", "median"), steps=("step", "nunique"))
    return binned.loc[binned["steps"] * 2 >= known["step"].nunique(), ["t", "share"]].reset_index(drop=True)


def _note(dips: pd.DataFrame) -> str:
    """Steps in words: their median and worst depth, how fast they recovered, and how many lack a number."""
    known = dips.dropna(subset=["depth"])
    if known.empty:
        return f"no data in {_steps(len(dips))}"
    depth, recovery = known["depth"] * 100, known["recovery_s"].dropna()
    parts = [f"dip: median {number(round(float(depth.median()), 1))}, worst {number(round(float(depth.max()), 1))} %"]
    if len(recovery):
        parts.append(f"back in {number(round(float(recovery.median()), 1))} s")
    if len(recovery) < len(known):
        parts.append(f"{len(known) - len(recovery)} never back")
    if len(known) < len(dips):
        parts.append(f"{len(dips) - len(known)} no data")
    return "; ".join(parts)


def _kind(own: pd.DataFrame, kind: str) -> str:
    """The kind as a prefix; nothing for a configuration that is a control and says so itself."""
    return "" if set(own["kind"]) == {"control"} else f"{KINDS[kind]}, "


def _steps(count: int) -> str:
    return "1 step" if count == 1 else f"{count} steps"
