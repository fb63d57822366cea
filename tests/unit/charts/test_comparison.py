"""Trials and runs side by side: every trial is drawn, and the median and the band are those of the runs."""

from __future__ import annotations

from typing import Any

import altair as alt
import numpy as np
import pandas as pd
import pytest

from lab.charts import bands, comparison, drawing, thumbnail
from lab.charts.comparison import comparison_chart
from tests.unit.charts.test_timeline import encodings


def curves(trials: int = 2, *, samples: int = 100) -> pd.DataFrame:
    """Made-up curves: each trial its own level, the later trials shorter."""
    parts = []
    for n in range(trials):
        t = np.arange(-10.0, -10.0 + samples - 5 * n)
        for panel, value in (
            ("lag", 1000.0 + 37 * n + t),
            ("replicas", 4.0 + n + (t > 20)),
            ("throughput", 500.0 + 13 * n + 0 * t),
        ):
            parts.append(pd.DataFrame({"trial": f"trial {n}", "panel": panel, "t": t, "value": value}))
    return pd.concat(parts, ignore_index=True)


def drawn(spec: dict[str, Any], panel: str) -> pd.DataFrame:
    """The rows that a panel's lines are drawn from."""
    layers = next(view for view in spec["vconcat"] if view["name"] == panel)["layer"]
    return pd.DataFrame(spec["datasets"][layers[0]["data"]["name"]])


def test_every_trial_is_drawn_in_every_panel() -> None:
    """The rows in the spec are the rows given; a replica count is kept where it changes and to its own trial's end."""
    given_curves = curves(3)
    given_curves = given_curves[(given_curves["panel"] != "replicas") | (given_curves["t"] <= 40)]
    spec = comparison.comparison_chart(given_curves, "three", "made up").to_dict()
    assert [view["name"] for view in spec["vconcat"]] == ["lag", "replicas", "throughput"]
    for panel in ("lag", "throughput"):
        wanted = given_curves[given_curves["panel"] == panel][["trial", "t", "value"]].reset_index(drop=True)
        pd.testing.assert_frame_equal(drawn(spec, panel)[["trial", "t", "value"]], wanted)
    counts = drawn(spec, "replicas")
    for n, end in enumerate((89, 84, 79)):
        kept = counts.loc[counts["trial"] == f"trial {n}", ["t", "value"]].to_numpy().tolist()
        assert kept == [[-10, 4 + n], [21, 5 + n], [40, 5 + n], [end, 5 + n]]


def test_a_trial_has_one_colour_and_one_dash_everywhere() -> None:
    """All panels share the scales, and every axis has its unit; print tells six trials apart, by colour and by dash."""
    spec = comparison.comparison_chart(curves(6), "six", "made up").to_dict()
    assert spec["resolve"]["scale"] == {"x": "shared", "color": "shared", "strokeDash": "shared"}
    for channel in ("color", "strokeDash"):
        scales = [found["scale"] for found in encodings(spec, channel)]
        assert len(scales) == 3
        assert scales[0]["domain"] == [f"trial {n}" for n in range(6)]
        assert len({str(value) for value in scales[0]["range"]}) == 6
        assert all(scale == scales[0] for scale in scales)
    assert {tuple(x["scale"]["domain"]) for x in encodings(spec, "x") if "scale" in x} == {(-10.0, 89.0)}
    titles = {axis["title"] for channel in ("x", "y") for axis in encodings(spec, channel) if axis.get("title")}
    assert titles == {"Lag (messages)", "Desired replicas (pods)", "Consumed (messages/s)", "Time since the spike began (s)"}


def test_the_picture_names_every_trial() -> None:
    """The legend stands in the static image too, long and awkward labels in full."""
    long = "cooperative-sticky, 48 partitions, lagThreshold 1,500 a replica"
    renamed = curves(3).replace({"trial": {"trial 0": long, "trial 1": "a.b[0] 'quoted'"}})
    picture = drawing.svg(comparison.comparison_chart(renamed, "Which <policy>", "scale quick"))
    for text in (long, "a.b[0] 'quoted'", "trial 2", "Which &lt;policy&gt;", "scale quick"):
        assert f">{text}<" in picture


def test_a_long_trial_is_thinned_but_keeps_its_peak() -> None:
    """The chart of a day's samples stays small and shows the one highest lag."""
    data = curves(1, samples=20_000)
    peak = data.index[data["panel"] == "lag"][12_345]
    data.loc[peak, "value"] = 1e6
    lag = drawn(comparison.comparison_chart(data, "long", "").to_dict(), "lag")
    assert len(lag) <= comparison.MOST_POINTS
    assert lag["value"].max() == 1e6


def test_the_cursor_tells_each_trials_value() -> None:
    """The hidden rule holds every trial's value in force, and none before its first sample."""
    data = curves(2)
    data = data[(data["trial"] == "trial 0") | (data["t"] >= 0)]
    layers = comparison.comparison_chart(data, "two", "").to_dict()
    view = layers["vconcat"][0]["layer"][1]
    assert [tip["title"] for tip in view["encoding"]["tooltip"]] == ["time (s)", "trial 0", "trial 1"]
    first = layers["datasets"][view["data"]["name"]][0]
    assert first == {"t": -10.0, "v0": 990.0, "v1": None}


@pytest.mark.parametrize(
    ("broken", "said"), [(curves().query("panel != 'throughput'"), "'throughput' is empty"), (curves(7), "7 trials, at most 6")]
)
def test_what_can_not_be_drawn_is_refused_in_one_line(broken: pd.DataFrame, said: str) -> None:
    """The message names the chart and what is wrong with its table."""
    with pytest.raises(ValueError, match=said) as refused:
        comparison.comparison_chart(broken, "night", "")
    assert "'night'" in str(refused.value)
    assert "\n" not in str(refused.value)


def runs(*levels: float, trial: str = "a", samples: int = 50) -> pd.DataFrame:
    """Curves of one trial whose runs have these levels of lag."""
    t = np.arange(float(samples))
    parts = [pd.DataFrame({"trial": trial, "run": n, "t": t, "value": level}) for n, level in enumerate(levels)]
    return pd.concat(parts, ignore_index=True)


def test_a_band_holds_all_runs_and_its_line_is_their_median() -> None:
    """At each moment; a trial of one run has no band, and the last sample of a run that ended says nothing of what follows."""
    found = bands.spread(pd.concat([runs(10, 30, 20), runs(5, trial="b")]))
    assert set(found["trial"]) == {"a"}
    assert found[["value", "low", "high"]].drop_duplicates().to_numpy().tolist() == [[20, 10, 30]]
    ended = bands.spread(runs(10, 30).query("run == 0 or t <= 20"))
    assert ended[ended["t"] > 21][["value", "low", "high"]].drop_duplicates().to_numpy().tolist() == [[10, 10, 10]]


def test_a_count_is_in_force_to_the_end_of_its_run() -> None:
    """Its last change says nothing of when the run ended."""
    counts = pd.concat([runs(4, 6), runs(9, 9).query("t == 40")])
    found = bands.spread(counts.query("t in (0, 40)"), counts.groupby(["trial", "run"])["t"].max() + 10)
    assert (found["t"].iloc[0], found["t"].iloc[-1]) == (0, 59)
    assert found[["low", "high"]].iloc[[0, -1]].to_numpy().tolist() == [[4, 6], [9, 9]]


def test_a_difference_is_of_the_two_sides_of_one_duet() -> None:
    """Run by run: what both sides share is not in it, however far runs are apart."""
    both = pd.concat([runs(100, 1000), runs(90, 980, trial="b")])
    found = bands.difference(both, ("a", "b"))
    assert found[["value", "low", "high"]].drop_duplicates().to_numpy().tolist() == [[15, 10, 20]]


def test_the_difference_of_a_duet_lies_below_its_bands() -> None:
    """The panels share their time; only the lowest has it written. The others have a line a trial and not a line a run."""
    several = pd.concat([curves(2).assign(run=n, value=lambda one, n=n: one["value"] + n) for n in range(3)])
    spec = comparison_chart(several, "duet", "made up", [("trial 0", "trial 1")]).to_dict()
    assert [view["name"] for view in spec["vconcat"]] == ["lag", "replicas", "throughput", "difference"]
    assert "Lag, difference (messages)" in str(spec["vconcat"][3])
    assert "Time since the spike began (s)" in str(spec["vconcat"][3])
    assert "Time since the spike began (s)" not in str(spec["vconcat"][2])
    for view in spec["vconcat"][:3]:
        marks = [layer["mark"]["type"] for layer in view["layer"]]
        assert marks == ["line", "area", "area", "rule"]


def test_it_can_be_drawn() -> None:
    """The pair is named in the picture, also where both sides are equal all the time."""
    same = pd.concat([curves(1), curves(1).assign(trial="other")])
    picture = drawing.svg(comparison_chart(same, "A/A", "made up", [("trial 0", "other")]))
    assert "trial 0 less other" in picture


@pytest.mark.parametrize(("trials", "areas"), [(2, 2), (4, 4), (5, 0)])
def test_a_small_chart_has_a_band_for_repeats_too(trials: int, areas: int) -> None:
    """A line a trial and not a line a run, on the session's page as in the evidence; no band where too many would overlap."""
    several = pd.concat([curves(trials).assign(run=n, value=lambda one, n=n: one["value"] + n) for n in range(6)])
    panel = thumbnail.panel(several, "lag", [f"trial {n}" for n in range(trials)]).to_dict()
    assert [layer["mark"]["type"] for layer in panel["layer"]] == ["line", *["area"] * areas]
    assert max(map(len, panel["datasets"].values())) == trials * thumbnail.MOMENTS


def test_an_axis_of_pods_has_whole_numbers() -> None:
    """Two pods all the time once had a mark at "500m"."""
    two = curves(1).assign(run=0, value=2.0)
    assert ">500m<" not in drawing.svg(alt.vconcat(thumbnail.panel(two, "replicas", ["trial 0"])))
