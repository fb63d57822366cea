"""Runs beside each other: the median and the band are those of the runs, and a difference is taken within a duet."""

from __future__ import annotations

import altair as alt
import numpy as np
import pandas as pd
import pytest

from lab.charts import bands, drawing, thumbnail
from lab.charts.comparison import comparison_chart
from tests.unit.charts.test_comparison import curves


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
