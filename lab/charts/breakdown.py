"""A reaction drawn as its parts in order. Pure: a table in, one Vega-Lite spec out."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts.drawing import ASKED, BETWEEN, DELIVERED, DOWN, FAULT, INK, QUIET, UP, WIDTH, inline, styled
from lab.judge.bounds import REACTION_S
from lab.measure.reaction.step import POLICY, Reaction

GROUPS = [DELIVERED, FAULT, UP, BETWEEN, DOWN, ASKED, QUIET]


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
    # A bound far away would squeeze the parts into a corner: then it stands in the title alone.
    reach = total * 1.2 if 0 < total * 4 < bound else max(total, bound) * 1.08
    scale = alt.Scale(domain=[0, reach], nice=False)
    x = alt.X("start:Q", scale=scale, title="Time since the reaction's start (s)", axis=alt.Axis(labelFlush=False))
    squares = alt.Legend(symbolType="square", symbolStrokeWidth=0, symbolSize=140)
    colour = alt.Color("group:N", title="Where", sort=groups, scale=alt.Scale(domain=groups, range=GROUPS), legend=squares)
    tips = [alt.Tooltip("part:N"), alt.Tooltip("group:N"), alt.Tooltip("seconds:Q", title="seconds (s)")]
    limit = alt.Chart(inline([{"x": bound, "text": f"bound {bound:g} s"}])).encode(x=alt.X("x:Q", scale=scale))
    rule = limit.mark_rule(clip=True, color=INK, strokeDash=[5, 3], strokeWidth=1.5)
    bars = alt.Chart(inline(rows)).encode(x=x, x2="end:Q", color=colour, tooltip=tips)
    whole = alt.layer(
        bars.mark_bar(stroke="white", strokeWidth=1, height=30).encode(x=x.axis(None)),
        rule,
        limit.mark_text(clip=bound > reach, align="right", dx=-4, dy=-26, fontSize=11, color=INK).encode(text="text:N"),
        alt.Chart(inline([{"x": total, "text": f"{total:.1f} s"}]))
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
    return styled(alt.vconcat(whole, cascade, spacing=4, title=title).resolve_scale(x="shared", color="shared"))


def reaction_breakdown(reaction: Reaction) -> Any:
    """The reaction's parts as a chart."""
    groups = {"lag crosses": "traffic", POLICY: "policy", "pod created": "Kubernetes", "process started": "Kubernetes"}
    groups |= {"subscribed": "consumer start", "partitions owned": "rebalance", "first receipt": "work"}
    groups |= {"Ready reported": "readiness probe"}
    table = [{"part": part, "seconds": seconds, "group": groups[part]} for part, seconds in reaction.parts.items()]
    return breakdown(pd.DataFrame(table), bound=float(REACTION_S), what="Reaction")
