"""The timeline and the breakdown: what the spec promises, and that its pages fetch nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lab.charts import drawing
from lab.charts.breakdown import reaction_breakdown
from lab.charts.curves import timeline_of
from lab.charts.drawing import WIDTH
from lab.charts.timeline import THRESHOLD, Timeline, _names, timeline
from lab.inputs.faults import Injection
from lab.measure.reaction.step import PARTS, Reaction
from lab.record.trial import Fault
from tests.thoroughness import examples
from tests.unit.measure import built, similar
from tests.unit.report import browser

FETCHING = re.compile(r"<(?:script|link|img|iframe)\b[^>]*(?:src|href)=[\"']?(?:https?:)?//", re.IGNORECASE)


def encodings(view: Any, channel: str) -> Iterator[dict[str, Any]]:
    """Every use of a channel anywhere in a spec."""
    if isinstance(view, dict):
        found = view.get("encoding", {}).get(channel)
        if found is not None:
            yield found
        for inner in view.values():
            yield from encodings(inner, channel)
    elif isinstance(view, list):
        for inner in view:
            yield from encodings(inner, channel)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Timeline:
    """What is drawn of a made-up trial of 120 s with a spike, two scalings and an event."""
    record = similar.write(tmp_path_factory.mktemp("record"), 10)
    event = {"t": record.zero + 20, "until": record.zero + 24, "due": record.zero + 20, "phase": "spike", "event": "grow"}
    return timeline_of(built.sealed(record.folder, events=(event | {"partitions": 48, "result": {}},)))


def test_each_fault_of_a_schedule_is_a_bar(tmp_path: Path) -> None:
    """Until it was taken back; a kill that nothing takes back for a second. One that struck nothing has none."""
    record = similar.write(tmp_path, 10)
    planned = [Injection(at, "prometheus", "sigkill", 3.0, 0.0) for at in (1.0, 2.0, 3.0)]
    struck = [Fault(record.zero + one.at, one.kind, component=one.component, injection=one) for one in planned]
    faults = (replace(struck[0], until=record.zero + 4), struck[1], replace(struck[2], skipped="it was not there"))
    bars = timeline_of(built.sealed(record.folder, faults=faults)).events
    assert bars["label"].tolist() == ["sigkill prometheus"] * 2
    assert bars[["start", "end"]].to_numpy().ravel().tolist() == pytest.approx([1, 4, 2, 3])


def test_lag_that_was_not_seen_has_no_line(tmp_path: Path) -> None:
    """There is an empty row where an exporter was away for longer than a trial allows, and the cursor says nothing there."""
    folder = similar.write(tmp_path, 10).folder
    samples = pd.read_parquet(folder / "samples.parquet")
    away = (samples["t"] > 1030) & (samples["t"] < 1039)
    samples[~away].to_parquet(folder / "samples.parquet")
    record = built.sealed(folder)
    lag = timeline_of(record).lag
    (unseen,) = lag.loc[lag["lag"].isna(), "t"] + record.zero
    assert 1030 < unseen < 1039
    before, within, after = drawing.values_at(np.array([1029, 1036, 1040]) - record.zero, lag, "lag")
    assert within is None
    assert None not in (before, after)


@pytest.fixture(scope="module")
def chart(made: Timeline) -> alt.VConcatChart:
    """Its timeline."""
    return timeline(replace(made, title="Step <10x> & hold"))


@pytest.fixture(scope="module")
def spec(chart: alt.VConcatChart) -> dict[str, Any]:
    """Its timeline as a Vega-Lite spec."""
    return chart.to_dict()


@pytest.fixture(scope="module")
def page(chart: alt.VConcatChart) -> str:
    """It as a page."""
    return drawing.html(chart)


def test_three_panels_share_one_time_scale(made: Timeline, spec: dict[str, Any]) -> None:
    """Lag, replicas and throughput are stacked, equally wide, on the same explicit time domain, and each axis has its unit."""
    assert [panel["name"] for panel in spec["vconcat"]] == ["lag", "replicas", "throughput"]
    assert {panel["width"] for panel in spec["vconcat"]} == {WIDTH}
    assert spec["resolve"]["scale"]["x"] == "shared"
    domains = {tuple(x["scale"]["domain"]) for x in encodings(spec, "x") if "scale" in x}
    assert domains == {(made.replicas["t"].min(), made.throughput["t"].max())}
    titles = {axis["title"] for channel in ("x", "y") for axis in encodings(spec, channel) if axis.get("title")}
    assert titles == {"Lag (messages)", "Replicas (pods)", "Throughput (messages/s)", "Time since the spike began (s)"}


def test_zoom_and_cursor_work_from_every_panel(spec: dict[str, Any]) -> None:
    """One zoom bound to the shared scale and one cursor, each with a view in all three panels."""
    params = {param["name"]: param for param in spec["params"]}
    assert params["zoom"]["bind"] == "scales"
    for panel in spec["vconcat"]:
        views = {layer["name"] for layer in panel["layer"] if "name" in layer}
        assert all(views & set(param["views"]) for param in params.values())


@pytest.mark.services
def test_a_page_fetches_nothing(page: str) -> None:
    """The scripts are inside, and the title is escaped."""
    assert not FETCHING.search(page)
    assert "<title>Step &lt;10x&gt; &amp; hold</title>" in page


def test_an_image_has_its_words_and_nothing_for_a_pointer(chart: alt.VConcatChart) -> None:
    """No cells around the cursor's places, no label on each mark: they were two thirds of a timeline's image."""
    drawn = drawing.svg(chart)
    for text in ("scale made up", "spike", "grow 48", "12→4", "lagThreshold", "rebalance", "produced"):
        assert f">{text}" in drawn
    for text in ('stroke-width="0.35"', "aria-label", "beyond this axis"):
        assert text not in drawn


def test_a_backlog_is_drawn_without_marks_or_a_threshold(made: Timeline) -> None:
    """The time counts from its fill, no legend names a threshold, and what is produced goes on beyond the axis.

    What is produced at once may be forty times what is consumed, which would lie on the floor.
    """
    filled = made.throughput.assign(rate=lambda one: one["rate"].where(one["series"] == "consumed", 1e6))
    spans = pd.DataFrame([{"start": 0.0, "end": 9.0, "label": "fill"}])
    ready = made.replicas[made.replicas["kind"] == "ready"]
    bare = replace(made, lag_objective=None, replicas=ready, throughput=filled, spans=spans, lag=made.lag.assign(lag=np.nan))
    picture = drawing.svg(timeline(replace(bare, marks=made.marks.iloc[:0], events=made.events.iloc[:0])))
    assert "produced: up to 1,000,000 messages/s, beyond this axis" in picture
    assert "Time since the fill began (s)" in picture
    assert THRESHOLD not in picture


def test_marks_upon_each_other_are_one() -> None:
    """A group of 24 hands over at one moment: its image has one tick for it, or two on both sides of a half pixel."""
    moments = drawing.inline([{"t": 50.0 + n / 1000} for n in range(24)])
    marks = alt.Chart(moments).mark_rule().encode(x=alt.X("t:Q", scale=alt.Scale(domain=[0, 100]), axis=None))
    assert 1 <= drawing.svg(marks).count("<line") <= 2


@pytest.mark.services
@browser.needed
def test_a_browser_draws_the_interactive_chart(page: str, tmp_path: Path) -> None:
    """Where scripts run, and it asks for nothing."""
    (tmp_path / "page.html").write_text(page, encoding="utf-8")
    with browser.started() as chromium:
        view = browser.look(chromium, tmp_path / "page.html")
        view.page.locator("canvas").wait_for()
        assert view.requests == []


def test_no_name_ends_beyond_the_chart(made: Timeline) -> None:
    """A late phase is named to the left of its begin."""
    late = pd.DataFrame([{"start": 650.0, "end": 660.0, "label": "a phase that begins at the very end"}])
    placed = _names(replace(made, spans=late), (-60.0, 660.0))
    assert len(placed) == 1 + len(made.events)
    assert (placed["at"] + placed["width"] <= 660.0).all()


def test_names_of_many_faults_are_not_written_over_each_other(made: Timeline) -> None:
    """Those without room are told by their bars; a phase keeps its name."""
    starts = np.arange(20.0)
    crowd = pd.DataFrame({"start": starts, "end": starts + 2, "label": "sigkill kube-controller-manager"})
    placed = _names(replace(made, events=crowd), (0.0, 60.0))
    assert set(made.spans["label"]) <= set(placed["label"])
    assert len(made.spans) < len(placed) < 20


def test_a_timeline_without_data_is_refused(made: Timeline) -> None:
    """An empty panel would look like a measurement of nothing."""
    with pytest.raises(ValueError, match="'lag' is empty"):
        timeline(replace(made, lag=made.lag.iloc[:0]))


@given(st.lists(st.floats(-1e9, 1e9) | st.just(float("nan")), min_size=1, max_size=400), st.integers(2, 20))
@settings(max_examples=examples(50), deadline=None)
def test_thinning_keeps_extremes_ends_and_order(values: list[float], buckets: int) -> None:
    """Whatever the series: at most four rows a bucket, no made-up row, the extremes stay, time never goes back."""
    table = pd.DataFrame({"t": np.arange(len(values)) * 1.0, "lag": values})
    thinned = drawing.thin(table, "lag", most=10, buckets=buckets)
    assert len(thinned) <= max(10, 4 * buckets)
    assert thinned["t"].is_monotonic_increasing
    merged = thinned.merge(table, on="t", suffixes=("", "_was"))
    pd.testing.assert_series_equal(merged["lag"], merged["lag_was"], check_names=False)
    if table["lag"].notna().any():
        assert (thinned["lag"].max(), thinned["lag"].min()) == (table["lag"].max(), table["lag"].min())


@given(st.lists(st.integers(0, 3), min_size=1, max_size=60))
@settings(max_examples=examples(50), deadline=None)
def test_steps_lose_nothing(counts: list[int]) -> None:
    """A step line drawn from the kept rows has the same value at every moment."""
    times = np.arange(len(counts)) * 1.0
    table = pd.DataFrame({"t": times, "replicas": counts})
    assert drawing.values_at(times, drawing.steps(table, "replicas"), "replicas") == counts


@given(st.lists(st.floats(0, 100), max_size=30), st.floats(0.1, 30))
def test_labels_never_overlap(times: list[float], width: float) -> None:
    """Two labels in one row are at least a width apart."""
    times.sort()
    rows = drawing.label_rows(times, [width] * len(times))
    for row in range(3):
        kept = [time for time, placed in zip(times, rows, strict=True) if placed == row]
        assert all(after - before >= width * 0.999 for before, after in pairwise(kept))


def test_a_breakdown_names_every_part_and_the_bound() -> None:
    """Tiny parts too are named with their seconds; the title has the sum and the bound."""
    parts = dict.fromkeys(PARTS, 0.05) | {"subscribed": 60.3}
    made = Reaction(spike_start=0.0, pod="a", parts=parts, total_s=60.6, decided_s=0.1, divided_s=2.0)
    picture = drawing.svg(reaction_breakdown(made))
    for text in ("Reaction: 60.6 s, within the bound of 90 s", *PARTS, "consumer start", ">0.05 s<"):
        assert text in picture
