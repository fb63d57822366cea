"""The panels as a Grafana dashboard."""

from __future__ import annotations

import json
from pathlib import Path

from grafana_foundation_sdk.builders import common as look
from grafana_foundation_sdk.builders.dashboard import AnnotationQuery, Dashboard, QueryVariable
from grafana_foundation_sdk.builders.prometheus import Dataquery
from grafana_foundation_sdk.builders.timeseries import Panel as Timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models import common
from grafana_foundation_sdk.models import dashboard as boards
from grafana_foundation_sdk.models.dashboard import DynamicConfigValue

from lab import paths
from lab.board.panels import MARKS, NAMESPACES, PANELS, SCRAPE_S, Mark, Panel

FILE = paths.MANIFESTS / "grafana" / "dashboards" / "elastic-lab.json"
DATASOURCE = common.DataSourceRef(type_val="prometheus", uid="prometheus")  # as manifests/grafana/provisioning.yaml has it
ACROSS, HEIGHT = 3, 8
COLUMNS = 24  # of Grafana's grid


def dashboard() -> str:
    """The dashboard as JSON text, the same for the same panels."""
    board = (
        Dashboard("Elastic Lab: a consumer group scales on lag")
        .uid("elastic-lab")
        .description("A trial as it runs: lag, replicas, throughput, rebalances, and the moments of a reaction.")
        .tags(["elastic-lab", "kafka", "keda"])
        .timezone("browser")
        .time("now-15m", "now")
        .refresh("5s")
        .tooltip(boards.DashboardCursorSync.CROSSHAIR)
        .readonly()
        .with_variable(_namespaces())
    )
    for mark in MARKS:
        board.annotation(_annotation(mark))
    for number, panel in enumerate(PANELS):
        board.with_panel(_panel(number, panel))
    return json.dumps(board.build(), cls=JSONEncoder, indent=2, sort_keys=True) + "\n"


def write(file: Path = FILE) -> None:
    """Write the dashboard where it is committed."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(dashboard())


def _namespaces() -> QueryVariable:
    return (
        QueryVariable("namespace")
        .label("trial")
        .datasource(DATASOURCE)
        .query(f"label_values({NAMESPACES}, namespace)")
        .refresh(boards.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(boards.VariableSort.ALPHABETICAL_ASC)
    )


def _annotation(mark: Mark) -> AnnotationQuery:
    return (
        AnnotationQuery()
        .name(mark.title)
        .datasource(DATASOURCE)
        .enable(True)
        .icon_color(mark.colour)
        .expr(mark.expr)
        .step(f"{SCRAPE_S}s")
        .title_format(mark.title)
        .use_value_for_time(True)
    )


def _panel(number: int, panel: Panel) -> Timeseries:
    width = COLUMNS // ACROSS
    legend = look.VizLegendOptions().show_legend(not panel.many).placement(common.LegendPlacement.BOTTOM)
    tooltip = look.VizTooltipOptions().mode(common.TooltipDisplayMode.MULTI).sort(common.SortOrder.DESCENDING)
    built = (
        Timeseries()
        .id(number + 1)
        .title(panel.title)
        .description(panel.about)
        .datasource(DATASOURCE)
        .interval(f"{SCRAPE_S}s")
        .unit("s" if panel.unit == "s" else "short")
        .axis_label(panel.unit)
        .axis_soft_min(0)
        .line_width(1)
        .show_points(common.VisibilityMode.AUTO)
        .legend(legend.display_mode(common.LegendDisplayMode.LIST))
        .tooltip(tooltip)
        .grid_pos(boards.GridPos(h=HEIGHT, w=width, x=number % ACROSS * width, y=number // ACROSS * HEIGHT))
    )
    if panel.stepped:
        built.line_interpolation(common.LineInterpolation.STEP_AFTER)
    if panel.stacked:
        built.stacking(look.StackingConfig().mode(common.StackingMode.NORMAL).group("A")).fill_opacity(40)
    for letter, query in zip("ABCDEFGH", panel.queries, strict=False):
        built.with_target(
            Dataquery().ref_id(letter).datasource(DATASOURCE).expr(query.expr).legend_format(query.legend).range()
        )
        style = [DynamicConfigValue("color", {"mode": "fixed", "fixedColor": query.colour})] if query.colour else []
        if not panel.many:
            style.append(DynamicConfigValue("custom.lineWidth", 1 if query.dashed else round(query.width)))
        if query.dashed:
            style.append(DynamicConfigValue("custom.lineStyle", {"fill": "dash", "dash": [8, 6]}))
        if style:
            built.override_by_query(letter, style)
    return built
