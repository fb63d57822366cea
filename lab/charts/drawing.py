"""The look, the sampling and the output formats that all charts of the report share.

Colours are Okabe and Ito's and Tol's, legible to colour-blind readers. Orange is demand, blue is delivery.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from importlib.metadata import version
from typing import Any, Literal, TypeAlias

import altair as alt
import numpy as np
import pandas as pd
import vl_convert as vlc
from filelock import FileLock

from lab import paths, wholefile

WIDTH = 860
INK, QUIET, ASKED, DELIVERED, BETWEEN = "#222222", "#6b6b6b", "#D55E00", "#0072B2", "#56B4E9"
GREY: dict[str, Any] = {"domainColor": "#999999", "tickColor": "#999999"}
SMALL: dict[str, Any] = {"labelFontSize": 11, "titleFontSize": 11}
UP, DOWN, MOVED, FAULT = "#009E73", "#AA4499", "#000000", "#E69F00"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
UNSEEN = (
    re.compile(r' (?:aria-label|aria-roledescription)="[^"]*"| role="graphics-(?:symbol|object)"'),
    re.compile(r'<(line|path)\b[^>]*\bopacity="0"[^>]*(/>|></\1>)'),
    re.compile(r'<path transform="translate\(0,0\)" d="[^"]*" stroke-width="0\.35"/>'),  # where a pointer is nearest to a mark
    re.compile(r' (?:class|aria-hidden|pointer-events)="[^"]*"'),
    re.compile(r'<path[^>]* d="M0,0h0v0h0Z"[^>]*?/>'),  # the ground of what has no size
    re.compile(r' (?:opacity="1"|stroke-dasharray="1,0"|[xy]2="0")'),  # what holds without being said
    re.compile(rf' font-family="{FONT}"'),  # which the picture as a whole has
)
LINE_AT = re.compile(r'(<line transform="translate\()(-?[\d.]+)(,)')
TWICE = re.compile(r"(<line [^>]*>)(?:</line>)?(?:\1(?:</line>)?)+")
Layer: TypeAlias = alt.Chart | alt.LayerChart
Style: TypeAlias = tuple[str, list[int]]  # a colour, and a dash for print
VEGA_LITE = alt.SCHEMA_VERSION.removeprefix("v").rsplit(".", 1)[0]


def html(chart: Any) -> str:
    """The chart as one interactive page with its scripts inside: nothing is fetched when it is opened."""
    spec = chart.to_dict()
    page = vlc.vegalite_to_html(spec, vl_version=VEGA_LITE, bundle=True, renderer="canvas")
    return page.replace("<title>Chart</title>", f"<title>{escape(spec['title']['text'])}</title>", 1)


def scripts() -> str:
    """What draws a chart in a browser, as one script that sets ``window.vegaEmbed``; cached, as it takes 2 s of CPU."""
    file = paths.cache_dir() / f"vega-embed-{version('vl-convert-python')}-{VEGA_LITE}.js"
    with FileLock(file.with_suffix(".lock")):
        if not file.exists():
            wholefile.write(file, vlc.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version=VEGA_LITE))
    return file.read_text()


def svg(chart: Any) -> str:
    """The chart as a static SVG with its text as text, without what no eye can see, as marks for a pointer."""
    drawn = vlc.vegalite_to_svg(chart.to_dict(), vl_version=VEGA_LITE)
    for unseen in UNSEEN:
        drawn = unseen.sub("", drawn)
    # Marks within half a pixel of each other are one mark: a group of 24 hands its partitions over at one moment.
    placed = LINE_AT.sub(lambda line: f"{line[1]}{round(float(line[2]) * 2) / 2:g}{line[3]}", drawn)
    once = TWICE.sub(lambda lines: lines[1] if lines[1].endswith("/>") else f"{lines[1]}</line>", placed)
    whole = once.replace("<svg ", f'<svg font-family="{FONT}" ', 1)
    return re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d)\d+", r"\1", path.group()), whole)


def png(chart: Any) -> bytes:
    """The chart as a PNG image on white, two image pixels to each pixel of the chart."""
    return vlc.vegalite_to_png(chart.to_dict(), vl_version=VEGA_LITE, scale=2.0)


class Rows(alt.InlineData):
    """Rows held in the spec itself, shared by all copies of a chart and never validated.

    Altair copies and validates whenever charts are put together, which with thousands of rows took half of a chart's time.
    """

    _class_is_valid_at_instantiation = False

    def __deepcopy__(self, _: object) -> Rows:
        return self


def inline(rows: list[dict[str, Any]]) -> Rows:
    """``rows`` as the data of a chart. They must not be changed afterwards."""
    return Rows(values=rows)


def records(frame: pd.DataFrame, **rounding: int) -> Rows:
    """The table as JSON rows, numbers rounded to what can be seen; a missing number is null and draws as a gap."""
    rounded = frame.astype(dict.fromkeys(rounding, float)).round(rounding)
    cells = rounded.to_dict("records")
    return inline([{str(name): None if value != value else value for name, value in row.items()} for row in cells])


def titled(chart: alt.VConcatChart, title: str, subtitle: Any = alt.Undefined) -> alt.VConcatChart:
    """The chart in the report's style under a title."""
    chart.title = alt.TitleParams(title, subtitle=subtitle, anchor="start", frame="bounds", offset=10)
    return styled(chart)


@contextmanager
def shared_parameters() -> Iterator[None]:
    """Put charts together without Altair's warning of a zoom or a cursor that they share, as is the intent."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Automatically deduplicated")
        yield


def styled(chart: alt.VConcatChart) -> alt.VConcatChart:
    """One look for every chart of the report; the page's menu saves images and offers nothing that leaves the page."""
    chart.config = alt.Config(
        background="white",
        font=FONT,
        view=alt.ViewConfig(stroke="#cccccc"),
        axis=alt.AxisConfig(gridColor="#ececec", titleFontWeight="normal", labelFontSize=11, titleFontSize=12, **GREY),
        legend=alt.LegendConfig(symbolType="stroke", symbolSize=300, symbolStrokeWidth=2.2, offset=14, **SMALL),
        title=alt.TitleConfig(fontSize=15, subtitleFontSize=12, subtitleColor="#555555", subtitlePadding=5),
    )
    chart.usermeta = {"embedOptions": {"actions": {"export": True, "source": False, "compiled": False, "editor": False}}}
    return chart


def time_axis(domain: Sequence[float], title: str | None = None) -> dict[str, Any]:
    """The axis of time that panels share, of which only the one with a ``title`` is labelled: arguments of its encoding."""
    axis = alt.Axis(format=",~f", tickCount=12) if title else alt.Axis(labels=False, ticks=False, tickCount=12)
    return {"scale": alt.Scale(domain=list(domain), nice=False), "axis": axis, "title": title}


def value_axis(*, whole: bool = False) -> alt.Axis:
    """The axis of a panel's values, as wide as that of any other; ``whole`` numbers have no mark between them."""
    axis = alt.Axis(labelExpr="format(datum.value, '~s')", tickCount=5, minExtent=52, maxExtent=52, titlePadding=4)
    if whole:
        axis.tickMinStep = 1
    return axis


def style_scales(styles: Mapping[str, Style]) -> tuple[alt.Scale, alt.Scale]:
    """The scales by which each name has its colour and its dash."""
    colours, dashes = ([style[part] for style in styles.values()] for part in (0, 1))
    return alt.Scale(domain=list(styles), range=colours), alt.Scale(domain=list(styles), range=dashes)


def series(rows: Rows, field: str, styles: Mapping[str, Style], x: dict[str, Any], y: alt.Y, **named: Any) -> alt.Chart:
    """The chart of ``rows`` by the time ``t`` in which each value of ``field`` has its style; ``named`` is of its legend."""
    colour, dash = style_scales(styles)
    channels = alt.Color(field, scale=colour, **named), alt.StrokeDash(field, scale=dash, **named)
    encoded: alt.Chart = alt.Chart(rows).encode(alt.X("t:Q", **x), y, *channels)
    return encoded


def zoom() -> alt.Parameter:
    """The zoom along the axis of time that panels share."""
    return alt.selection_interval(name="zoom", bind="scales", encodings=["x"])


def pointer() -> alt.Parameter:
    """The moment at the pointer, which :func:`cursor` shows."""
    return alt.selection_point(name="cursor", fields=["t"], nearest=True, on="pointermove", clear="pointerout")


def cursor(columns: Mapping[str, Sequence[float | None]], times: np.ndarray, x: dict[str, Any]) -> alt.Chart:
    """A rule at the :func:`pointer` that names each of ``columns`` with its value at that one of ``times``."""
    named = {f"v{n}": values for n, values in enumerate(columns.values())}
    moments = [{"t": round(float(t), 2), **{name: one[k] for name, one in named.items()}} for k, t in enumerate(times)]
    tips = [alt.Tooltip("t:Q", title="time (s)", format=",.1f")]
    tips += [alt.Tooltip(f"v{n}:Q", title=name, format=",.0f") for n, name in enumerate(columns)]
    shown = alt.OpacityValue(0, condition={"param": "cursor", "empty": False, "value": 0.8})
    rule = alt.Chart(inline(moments)).mark_rule(color=QUIET, strokeWidth=1, aria=False)
    drawn: alt.Chart = rule.encode(x=alt.X("t:Q", **x), opacity=shown, tooltip=tips)
    return drawn


def stacked(
    panels: Sequence[Any], title: str, subtitle: str, *, spacing: int = 14, legends: Literal["shared", "independent"]
) -> alt.VConcatChart:
    """Panels over one axis of time, with a title; their ``legends`` are independent, or shared."""
    with shared_parameters():
        chart = alt.vconcat(*panels, spacing=spacing)
    return titled(chart.resolve_scale(x="shared", color=legends, strokeDash=legends), title, subtitle)


CURSOR_STEPS = 300
MOST_POINTS = 5000
BUCKETS = 1000


def thin(table: pd.DataFrame, value: str, *, most: int = MOST_POINTS, buckets: int = BUCKETS) -> pd.DataFrame:
    """At most ``4 * buckets`` rows of a series ``[t, value]`` longer than ``most``; a shorter one is returned sorted, whole.

    Each bucket of time keeps its first, lowest, highest and last sample, and of one without any number an empty row, a gap.
    """
    ordered = table.sort_values("t", kind="stable").reset_index(drop=True)
    if len(ordered) <= most:
        return ordered
    times = ordered["t"].to_numpy(dtype=float)
    edges = np.linspace(times[0], times[-1], buckets + 1)[1:-1]
    bucket = pd.Series(np.searchsorted(edges, times, side="right"))
    known = ordered[value].notna()
    by_bucket = ordered[value][known].groupby(bucket[known])
    rows = [
        *ordered.index[known].to_series().groupby(bucket[known]).agg(["first", "last"]).to_numpy().ravel(),
        *by_bucket.idxmin(),
        *by_bucket.idxmax(),
        *ordered.index[~known].to_series()[~bucket[~known].isin(set(bucket[known]))].groupby(bucket[~known]).first(),
    ]
    return ordered.loc[np.unique(np.asarray(rows, dtype=int))].reset_index(drop=True)


def steps(table: pd.DataFrame, value: str, until: float | None = None) -> pd.DataFrame:
    """The rows where a step series ``[t, value]`` changes, with the first and the last, repeated at ``until``."""
    ordered = table.sort_values("t", kind="stable").reset_index(drop=True)
    changed = ordered[value].ne(ordered[value].shift())
    if len(ordered):
        changed.iloc[-1] = True
    kept = ordered[changed].reset_index(drop=True)
    return kept if until is None else pd.concat([kept, kept.tail(1).assign(t=until)])


def values_at(times: np.ndarray, table: pd.DataFrame, value: str) -> list[float | None]:
    """The value of a series ``[t, value]`` at each of ``times``: its last sample, None before the first or in a gap."""
    ordered = table.sort_values("t", kind="stable")
    found = np.searchsorted(ordered["t"].to_numpy(dtype=float), times, side="right") - 1
    values = ordered[value].to_numpy(dtype=float)
    return [None if index < 0 or np.isnan(values[index]) else float(values[index]) for index in found]


LABEL_ROWS, LINE = 3, 13


def placed(named: pd.DataFrame, domain: Sequence[float]) -> pd.DataFrame:
    """Names ``[label, start]`` as [label, at, width, row] in ``domain``: none ends beyond it, NaN is the row of one without.

    ``at`` and ``width`` are in the unit of the axis.
    """
    labels = named["label"].astype(str)
    widths = (labels.str.len().astype(float) * 6.6 + 8) * (domain[1] - domain[0]) / WIDTH
    at = np.minimum(named["start"].astype(float), domain[1] - widths)
    found = pd.DataFrame({"label": labels, "at": at, "width": widths, "middle": at + widths / 2})
    found = found.sort_values("middle", kind="stable", ignore_index=True)
    return found.assign(row=pd.Series(label_rows(found["middle"].tolist(), found["width"].tolist()), dtype=float))


def names(places: pd.DataFrame, x: dict[str, Any]) -> list[Layer]:
    """Names that are :func:`placed`, above all else, on a white edge that keeps them legible on a rule."""
    rows = records(places.assign(y=17 + LINE * places["row"])[["label", "at", "y"]], at=2)
    base = alt.Chart(rows).encode(x=alt.X("at:Q", **x), y=alt.Y("y:Q", scale=None), text="label:N")
    style: dict[str, Any] = {"align": "left", "dx": 4, "fontSize": 11, "fontWeight": "bold", "clip": True, "tooltip": None}
    return [base.mark_text(stroke="white", strokeWidth=3, color="white", **style), base.mark_text(color=QUIET, **style)]


def label_rows(times: list[float], widths: list[float]) -> list[int | None]:
    """A row for each label so that none overlaps its neighbour; None where LABEL_ROWS are not enough.

    ``times`` are the labels' middles in rising order, ``widths`` their widths, in the axis' unit.
    """
    free = [-np.inf] * LABEL_ROWS
    placed: list[int | None] = []
    for middle, width in zip(times, widths, strict=True):
        row = next((n for n, end in enumerate(free) if middle - width / 2 >= end), None)
        if row is not None:
            free[row] = middle + width / 2
        placed.append(row)
    return placed
