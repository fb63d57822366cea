"""The lag of each burst between the consumers' commits, and what the HPA read of it, drawn. Pure: records in, one chart out."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import pandas as pd

from lab.errors import NoData
from lab.measure.reading import Burst, bursts
from lab.record.store import Record
from lab.report.drawing import ASKED, DELIVERED, INK, QUIET, records, styled

WIDE, HIGH = 150, 120  # pixels of a burst


def readings_chart(found: Sequence[Record]) -> alt.VConcatChart:
    """A row for each record, a panel for each burst. Raises :class:`NoData` for a record without one that can be drawn."""
    rows = []
    for record in found:
        if not (there := bursts(record)):
            raise NoData(f"{record.id} has no burst that all pods of maxReplicaCount took")
        most = max(float(one.lag["lag"].max()) for one in there)
        panels = [_panel(burst, burst is there[0], most) for burst in there]
        row = alt.hconcat(*panels, spacing=6)
        workload = record.inputs.workload
        commits = f"commits every {workload.commit_interval_ms / 1000:g} s"
        renewed = f"lag renews the window in {sum(one.renews for one in there)} of {len(there)} bursts"
        row.title = alt.TitleParams(
            f"{record.inputs.policy_name}, {commits}: {renewed}", anchor="start", fontSize=12, color=INK
        )
        rows.append(row)
    chart = alt.vconcat(*rows, spacing=20)
    subtitle = [
        "Line: total lag. Dot: what a sync of the HPA read, filled where it asks for the pods that there are.",
        "Dashed: below it the HPA calls pods surplus. Lag renews the scale-down window in a burst with a filled dot.",
    ]
    chart.title = alt.TitleParams(
        "Lag between two commits, and what the HPA reads of it", subtitle=subtitle, anchor="start", offset=12
    )
    return styled(chart)


def _panel(burst: Burst, first: bool, most: float) -> alt.LayerChart | alt.FacetChart:
    """One burst; the ``first`` of a row shows the axes' names. Lag goes up to ``most`` in each panel of a row."""
    lag = burst.lag.assign(s=burst.lag["t"] - burst.start)
    read = pd.DataFrame(
        [(one.t - burst.start, one.lag, one.surplus, one.asks) for one in burst.read], columns=["s", "lag", "surplus", "asks"]
    )
    upwards = alt.Axis(labelExpr="format(datum.value, ',')", labels=first, ticks=first)
    high = alt.Scale(domain=[0, most])
    x = alt.X("s:Q", title="Time (s)" if first else None, scale=alt.Scale(domain=[0, burst.end - burst.start]))
    y = alt.Y("lag:Q", title="Lag (messages)" if first else None, axis=upwards, scale=high)
    line = alt.Chart(records(lag[["s", "lag"]], s=2, lag=0)).mark_line(color=ASKED, strokeWidth=1).encode(x=x, y=y)
    dots = alt.Chart(records(read, s=2, lag=0, surplus=0))
    bound = dots.mark_line(color=QUIET, strokeDash=[4, 3]).encode(x=x, y=alt.Y("surplus:Q", axis=upwards, scale=high))
    fill = alt.condition("datum.asks", alt.value(DELIVERED), alt.value("white"))
    mark = dots.mark_circle(size=42, stroke=DELIVERED, opacity=1).encode(
        x=x, y=y, fill=fill, tooltip=["s:Q", "lag:Q", "surplus:Q"]
    )
    heading = alt.TitleParams(f"burst {burst.number}", fontSize=11, anchor="start", color=QUIET)
    return alt.layer(line, bound, mark).properties(width=WIDE, height=HIGH, title=heading)
