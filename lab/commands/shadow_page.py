"""The answer of ``elastic-lab shadow`` as one page that opens offline: the trust, two tables, and the curves. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from lab.commands.shadow_text import agreement, asked_rows, clock_text, closed_rows, errors
from lab.commands.text import number
from lab.foresee.candidate import LIVE, Loop
from lab.foresee.shadow import Shadow
from lab.inputs.profile import Profile

PANELS = {"traffic": ("Traffic (messages/s)", 110), "lag": ("Lag (messages)", 190), "replicas": ("Replicas (pods)", 140)}
PLACE = '<div id="vega-chart">'  # of the chart in the page that is drawn for it
STYLE = """<style>
body { font: 15px/1.5 Arial, Helvetica, sans-serif; color: #222; margin: 24px auto; max-width: 980px; padding: 0 12px; }
h1 { font-size: 22px; margin-bottom: 0; } h2 { font-size: 17px; margin: 24px 0 6px; } .when { color: #555; margin-top: 2px; }
.trust { border-left: 6px solid #00694d; background: #f3f5f7; padding: 8px 14px; } .trust.none { border-color: #a63c00; }
#vega-chart { max-width: 100%; overflow-x: auto; }
</style>
"""


def page(answer: Shadow, loop: Loop | None) -> str:
    """The page; without a ``loop`` it has no curves."""
    trust = answer.trust
    said = "No verdict" if trust.reasons else "The model decides as this HPA does"
    parts = [
        f"<h1>Shadow of {escape(answer.scaledobject)}</h1>",
        f'<p class="when">{escape(answer.hpa)}, {clock_text(answer.since)} to {clock_text(answer.until)} UTC</p>',
        f'<p class="trust{" none" if trust.reasons else ""}"><b>{said}.</b> {escape(_sentence(agreement(trust)))}</p>',
        *(f"<p>{escape(reason)}</p>" for reason in trust.reasons),
        *_tables(answer),
        *(f"<p>No data: {escape(line)}</p>" for line in answer.missing),
    ]
    text = STYLE + "\n".join(parts)
    if loop is None:
        title = escape(f"Shadow of {answer.scaledobject}")
        head = f'<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>'
        return f"{head}<body>{text}</body></html>"
    from lab.charts import drawing

    drawn = drawing.html(_chart(answer.scaledobject, loop))
    scripts, place, chart = drawn.rpartition(PLACE)
    return f"{scripts}{text}{place}{chart}"


def _tables(answer: Shadow) -> Iterator[str]:
    if closed := answer.closed:
        rates = f"{number(closed.lowest_rate)} to {number(closed.highest_rate)} messages/s"
        source = "as it was measured" if closed.measured else "that the lag tells"
        yield "<h2>What each policy costs on this traffic</h2>"
        yield f"<p>Simulated on the traffic {source}: {rates}.</p>"
        yield _table(closed_rows(closed))
        yield from (f"<p>{escape(_sentence(line))}</p>" for line in errors(closed))
    if asked := answer.candidate:
        yield "<h2>What the candidate asks for on the same metrics</h2>"
        yield _table(asked_rows(asked))
        if asked.exact_until is not None:
            yield f"<p>Exact until {clock_text(asked.exact_until)} UTC: then its replicas differ, and lag would too.</p>"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:] + "."


def _table(rows: Sequence[Sequence[str]]) -> str:
    """The table whose head is the first of ``rows``."""
    from lab.report.tables import Table

    return Table(rows[0], rows[1:], frozenset(range(1, len(rows[0])))).html


def _corners(profile: Profile) -> Iterator[tuple[float, float]]:
    """(s, messages/s) at both ends of each step."""
    ends = [*(one.at for one in profile.steps[1:]), profile.duration]
    for one, end in zip(profile.steps, ends, strict=True):
        yield one.at, one.rate
        yield end, one.rate


def _chart(name: str, loop: Loop) -> object:
    """Traffic, lag and replicas over one axis of time."""
    import pandas as pd

    from lab.charts.comparison import comparison_chart

    parts = [
        pd.DataFrame({"trial": LIVE, "panel": "traffic", "t": t, "value": rate} for t, rate in _corners(loop.situation.profile))
    ]
    for trial, curve in ({LIVE: loop.live} | dict(loop.curves)).items():
        for panel, values in (("lag", curve.lag), ("replicas", curve.replicas)):
            parts.append(pd.DataFrame({"trial": trial, "panel": panel, "t": curve.t, "value": values}))
    title = f"Shadow of {name}"
    subtitle = "what the group did, and what the model makes of each policy on its traffic"
    return comparison_chart(pd.concat(parts, ignore_index=True), title, subtitle, panels=PANELS, time="Time of the watch (s)")
