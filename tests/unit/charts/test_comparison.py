"""Trials side by side: the chart draws every trial it was given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.charts import comparison, drawing
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
