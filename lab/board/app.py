"""The live board: a local page that asks Prometheus every few seconds and draws the panels."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from dash import Dash, Input, Output, dcc, html, no_update

from lab.board import figures, serving
from lab.board.panels import PANELS, Mark
from lab.board.source import Source, Window, window
from lab.errors import LabFault

REFRESH_S = 2
NEWEST = "newest"
PAGE = """<!DOCTYPE html>
<html lang="en">
<head>{%metas%}<title>{%title%}</title>{%css%}<style>
body { margin: 0; padding: 14px 18px; background: #f4f5f6; color: #222 }
body { font: 14px Liberation Sans, Arial, Helvetica, sans-serif }
header { display: flex; flex-wrap: wrap; align-items: center; gap: 6px 22px; margin-bottom: 12px }
h1 { font-size: 19px; margin: 0 } h2 { font-size: 14px; margin: 0; cursor: help }
h2 small { font-weight: normal; color: #6b6b6b; margin-left: 6px }
#namespace { width: 330px } #status { color: #6b6b6b }
#moments { display: flex; gap: 18px; width: 100% } #moments b { font-variant-numeric: tabular-nums }
#moments i { display: inline-block; width: 0; height: 13px; border-left: 2px dotted; margin-right: 6px; vertical-align: -2px }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(400px, 1fr)); gap: 12px }
section { background: white; border: 1px solid #dcdee0; border-radius: 4px; padding: 8px 10px 2px; min-width: 0 }
</style></head>
<body>{%app_entry%}<footer>{%config%}{%scripts%}{%renderer%}</footer></body>
</html>"""


@dataclass(frozen=True)
class Shown:
    """A page's content: the window, the trials to choose from, a figure for each panel, the reaction's moments."""

    window: Window
    trials: list[str]
    figures: list[dict[str, Any]]
    moments: list[tuple[Mark, str]]


class Board:
    """The page's content: the panels of one namespace, or of the newest trial, over the last minutes."""

    def __init__(self, source: Source, minutes: float, namespace: str | None = None) -> None:
        self.source, self.minutes, self.namespace = source, minutes, namespace

    def show(self, namespace: str | None = None) -> Shown | None:
        """Everything the page shows of ``namespace``, now; None while no trial has data."""
        trials = self.source.trials()
        shown = window(trials, self.minutes, namespace or self.namespace, time.time())
        if shown is None:
            return None
        moments = self.source.marks(shown)
        drawn = [figures.figure(panel, self.source.panel(panel, shown), moments, shown) for panel in PANELS]
        return Shown(shown, list(trials), drawn, figures.reaction(moments))

    def choices(self, trials: Iterable[str]) -> list[dict[str, str]]:
        """The choices that the page offers: the newest trial, or one of ``trials``."""
        first = f"only {self.namespace}" if self.namespace else "follow the newest trial"
        return [{"label": first, "value": NEWEST}, *({"label": name, "value": name} for name in trials)]


def create(board: Board) -> Dash:
    """The page as a Dash application. Everything that it loads comes from this process."""
    app = Dash("lab.board", title="Elastic Lab", serve_locally=True, update_title="", assets_ignore=".*")
    app.index_string = PAGE
    app.server.before_request(serving.refuse)
    graphs = [f"panel-{number}" for number in range(len(PANELS))]
    offered = board.choices(board.source.trials())
    choice = dcc.Dropdown(id="namespace", options=offered, value=NEWEST, clearable=False, searchable=False)
    header = html.Header([html.H1("Elastic Lab"), choice, html.Span(id="status"), html.Div(id="moments")])
    sections = [
        html.Section(
            [
                html.H2([panel.title, html.Small(panel.unit)], title=panel.about),
                dcc.Graph(id=graph, config={"displayModeBar": False}, style={"height": "250px"}),
            ]
        )
        for graph, panel in zip(graphs, PANELS, strict=True)
    ]
    app.layout = html.Div([header, html.Main(sections), dcc.Interval(id="tick", interval=REFRESH_S * 1000)])

    @app.callback(
        Output("status", "children"),
        Output("moments", "children"),
        Output("namespace", "options"),
        *(Output(graph, "figure") for graph in graphs),
        Input("tick", "n_intervals"),
        Input("namespace", "value"),
    )
    def refresh(_ticks: int | None, chosen: str) -> tuple[Any, ...]:
        try:
            shown = board.show(None if chosen == NEWEST else chosen)
            waiting = "no trial has data yet"
        except LabFault as fault:
            shown, waiting = None, str(fault)
        if shown is None:
            return (waiting, *[no_update] * (len(graphs) + 2))
        end = shown.window.end
        state = "live" if time.time() - end < REFRESH_S + 1 else "over"
        status = f"{shown.window.namespace}, {state}, until {time.strftime('%H:%M:%S', time.localtime(end))}"
        moments = [
            html.Span([html.I(style={"borderColor": mark.colour}), f"{mark.title} ", html.B(text)])
            for mark, text in shown.moments
        ]
        return (status, moments, board.choices(shown.trials), *shown.figures)

    return app
