"""The memory of the lab's processes over a trial, drawn. Pure: a record in, one chart out."""

from __future__ import annotations

from typing import Any

import altair as alt

from lab.charts.drawing import WIDTH, records, styled, thin
from lab.errors import NoData
from lab.record.store import Record

MOST = 8  # kinds of process that get a line of their own: more colours can't be told apart
BYTES_PER_GIB = 2**30
REST = "all others"


def memory_chart(record: Record) -> Any:
    """The resident memory of the lab's processes by what they are, GiB, stacked. Raises :class:`NoData` without readings."""
    seen = record.memory
    if seen.empty:
        raise NoData("no reading of the memory")
    largest = seen.groupby("process")["rss_bytes"].max().nlargest(MOST)
    names = seen["process"].where(seen["process"].isin(largest.index), REST)
    table = (
        seen.assign(process=names, t=seen["t"] - record.zero, gib=seen["rss_bytes"] / BYTES_PER_GIB)
        .pivot_table("gib", "t", "process", "sum", fill_value=0.0)
        .reset_index()
    )
    kinds = [*largest.index, *([REST] if REST in table else [])]
    kept = thin(table[["t", kinds[0]]], kinds[0])["t"]
    rows = table[table["t"].isin(kept)].melt("t", kinds, var_name="process", value_name="gib")
    squares = alt.Legend(symbolType="square", symbolStrokeWidth=0, symbolSize=140, labelLimit=220)
    area = (
        alt.Chart(records(rows, t=0, gib=3))
        .mark_area()
        .encode(
            x=alt.X("t:Q", title="Time since the spike (s)"),
            y=alt.Y("gib:Q", title="Resident memory (GiB)", stack="zero"),
            color=alt.Color(
                "process:N", title="Process", sort=kinds, scale=alt.Scale(scheme="tableau10", domain=kinds), legend=squares
            ),
            tooltip=["process:N", "t:Q", "gib:Q"],
        )
        .properties(width=WIDTH - 230, height=260)
    )
    title = alt.TitleParams("Memory of the lab's own processes", anchor="start", frame="bounds", offset=8)
    return styled(alt.vconcat(area, title=title))
