"""A whole drawn as its parts: a reaction as what followed what, the lab's memory by process. Pure: one Vega-Lite spec out."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd

from lab.charts.drawing import ASKED, BETWEEN, DELIVERED, DOWN, FAULT, INK, UP, WIDTH, inline, records, thin, titled
from lab.errors import NoData
from lab.judge.bounds import REACTION_S
from lab.measure.reaction.step import COMMIT, POLICY, Reaction
from lab.record.store import Record

WHERE = {"lag crosses": "traffic", POLICY: "policy", "pod created": "Kubernetes", "process started": "Kubernetes"}
WHERE |= {"subscribed": "consumer start", "partitions owned": "rebalance", "first receipt": "work", COMMIT: "work"}
GROUPS = [DELIVERED, FAULT, UP, BETWEEN, DOWN, ASKED]
SQUARES: dict[str, Any] = {"symbolType": "square", "symbolStrokeWidth": 0, "symbolSize": 140}
MOST = 8  # kinds of process that get a line of their own: more colours can't be told apart
BYTES_PER_GIB = 2**30
REST = "all others"


def reaction_breakdown(reaction: Reaction) -> alt.VConcatChart:
    """One stacked bar of a reaction's parts in order, over a cascade that names each part and its seconds.

    Its objective is ruled in both. Raises :class:`NoData` for a record without a reaction.
    """
    bound, parts = float(REACTION_S), reaction.parts
    seconds = np.array(list(parts.values()))
    ends = np.cumsum(seconds)
    total = float(ends[-1])
    names = [f"{n} · {part}" for n, part in enumerate(parts, 1)]
    shown = {"part": names, "group": [WHERE[part] for part in parts], "seconds": seconds, "start": ends - seconds, "end": ends}
    rows = records(pd.DataFrame(shown).assign(text=[f"{length:.3g} s" for length in seconds]), seconds=3)
    groups = list(dict.fromkeys(WHERE.values()))
    # A bound far away would squeeze the parts into a corner: then it stands in the title alone.
    reach = total * 1.2 if 0 < total * 4 < bound else max(total, bound) * 1.08
    scale = alt.Scale(domain=[0, reach], nice=False)
    x = alt.X("start:Q", scale=scale, title="Time since the reaction's start (s)", axis=alt.Axis(labelFlush=False))
    shades = alt.Scale(domain=groups, range=GROUPS)
    colour = alt.Color("group:N", title="Where", sort=groups, scale=shades, legend=alt.Legend(**SQUARES))
    tips = [alt.Tooltip("part:N"), alt.Tooltip("group:N"), alt.Tooltip("seconds:Q", title="seconds (s)")]
    limit = alt.Chart(inline([{"x": bound, "text": f"bound {bound:g} s"}])).encode(x=alt.X("x:Q", scale=scale))
    rule = limit.mark_rule(clip=True, color=INK, strokeDash=[5, 3], strokeWidth=1.5)
    bars = alt.Chart(rows).encode(x=x, x2="end:Q", color=colour, tooltip=tips)
    named = limit.mark_text(clip=bound > reach, align="right", dx=-4, dy=-26, fontSize=11, color=INK).encode(text="text:N")
    sum_text = alt.Chart(inline([{"x": total, "text": f"{total:.1f} s"}]))
    sum_text = sum_text.mark_text(align="left", dx=5, fontSize=13, fontWeight="bold", color=INK)
    sum_text = sum_text.encode(x=alt.X("x:Q", scale=scale), text="text:N")
    bar = bars.mark_bar(stroke="white", strokeWidth=1, height=30).encode(x=x.axis(None))
    whole = alt.layer(bar, rule, named, sum_text)
    whole = whole.properties(width=WIDTH - 230, height=44, view=alt.ViewBackground(stroke=None))
    y = alt.Y("part:N", sort=names, title=None, axis=alt.Axis(labelLimit=320, ticks=False, domain=False, labelPadding=8))
    lengths = alt.Chart(rows).mark_text(align="left", dx=5, fontSize=11)
    lengths = lengths.encode(x=alt.X("end:Q", scale=scale), y=y, color=alt.value(INK), text="text:N")
    cascade = alt.layer(bars.mark_bar(height=13).encode(y=y), rule, lengths)
    cascade = cascade.properties(width=WIDTH - 230, height=alt.Step(22))
    verdict = "within" if total <= bound else "over"
    chart = alt.vconcat(whole, cascade, spacing=4).resolve_scale(x="shared", color="shared")
    return titled(chart, f"Reaction: {total:.1f} s, {verdict} the bound of {bound:g} s")


def memory_chart(record: Record) -> alt.VConcatChart:
    """The resident memory of the lab's processes by what they are, GiB, stacked. Raises :class:`NoData` without readings."""
    seen = record.memory
    if seen.empty:
        raise NoData("no reading of the memory")
    largest = seen.groupby("process")["rss_bytes"].max().nlargest(MOST)
    names = seen["process"].where(seen["process"].isin(largest.index), REST)
    table = seen.assign(process=names, t=seen["t"] - record.zero, gib=seen["rss_bytes"] / BYTES_PER_GIB)
    table = table.pivot_table("gib", "t", "process", "sum", fill_value=0.0).reset_index()
    kinds = [*largest.index, *([REST] if REST in table else [])]
    kept = thin(table[["t", kinds[0]]], kinds[0])["t"]
    rows = table[table["t"].isin(kept)].melt("t", kinds, var_name="process", value_name="gib")
    shades = alt.Scale(scheme="tableau10", domain=kinds)
    legend = alt.Legend(labelLimit=220, **SQUARES)
    area = alt.Chart(records(rows, t=0, gib=3)).mark_area()
    area = area.encode(
        x=alt.X("t:Q", title="Time since the spike (s)"),
        y=alt.Y("gib:Q", title="Resident memory (GiB)", stack="zero"),
        color=alt.Color("process:N", title="Process", sort=kinds, scale=shades, legend=legend),
        tooltip=["process:N", "t:Q", "gib:Q"],
    )
    return titled(alt.vconcat(area.properties(width=WIDTH - 230, height=260)), "Memory of the lab's own processes")
