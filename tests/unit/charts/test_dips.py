"""The dips of the rebalance experiment: every step given is drawn, and what was not measured is said."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest

from lab.charts import dips, drawing

DEPTHS = {"range": 0.9, "cooperative-sticky, stock": 0.4, "control: none joins": 0.05}


def traces(*, steps: int = 5) -> pd.DataFrame:
    """Made-up dips: in each step the share falls to 1 - depth at 1 s; the control has no scale-down."""
    times = np.arange(-3.0, 9.0, 0.2) + 0.1
    parts = []
    for name, depth in DEPTHS.items():
        for kind in ("control",) if name.startswith("control") else ("up", "down"):
            for step in range(steps):
                share = 1 - depth * (1 + 0.01 * step**2) * (abs(times - 1.1) < 0.05)
                parts.append(pd.DataFrame({"configuration": name, "kind": kind, "step": step, "t": times, "share": share}))
    return pd.concat(parts, ignore_index=True)


def table() -> pd.DataFrame:
    """Five steps of each configuration and kind; one never recovered, one has no depth."""
    rows = [
        {
            "configuration": name,
            "kind": kind,
            "depth_1s": depth * (1 - 0.05 * n**2),
            "depth_200ms": depth * 1.5,
            "recovery_s": 1.0 + n,
        }
        for name, depth in DEPTHS.items()
        for kind in (("control",) if name.startswith("control") else ("up", "down"))
        for n in range(5)
    ]
    made = pd.DataFrame(rows)
    made.loc[0, "recovery_s"] = np.nan
    made.loc[5, "depth_1s"] = np.nan
    return made


def panels(spec: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The small multiples, row by row."""
    for row in spec["vconcat"]:
        yield from row["hconcat"]


def rows_of(spec: dict[str, Any], layer: dict[str, Any]) -> pd.DataFrame:
    """The rows a layer is drawn from."""
    return pd.DataFrame(spec["datasets"][layer["data"]["name"]])


@pytest.fixture(scope="module")
def spec() -> dict[str, Any]:
    """The demo traces as a Vega-Lite spec."""
    return dips.dip_traces(traces(), table(), "Dips", "made up").to_dict()


def test_every_step_is_drawn_in_its_own_panel(spec: dict[str, Any]) -> None:
    """Each panel has exactly the samples of its configuration and kind within the window; the control is on the left."""
    given = traces()
    shown = [("range", "up"), ("range", "down"), ("cooperative-sticky, stock", "up"), ("cooperative-sticky, stock", "down")]
    for panel, (name, kind) in zip(panels(spec), [*shown, ("control: none joins", "control")], strict=False):
        own = given[(given["configuration"] == name) & (given["kind"] == kind) & given["t"].between(-2, 8)]
        wanted = own[["step", "t", "share"]].round(3).reset_index(drop=True)
        pd.testing.assert_frame_equal(rows_of(spec, panel["layer"][0])[["step", "t", "share"]], wanted)
        assert panel["layer"][0]["encoding"]["detail"]["field"] == "step"
        assert panel["title"]["text"].startswith(name)
        assert panel["title"]["text"].endswith("5 steps")


def test_the_thick_line_is_the_median(spec: dict[str, Any]) -> None:
    """The median of the five steps at each time, not their mean."""
    for panel, depth in zip(panels(spec), (0.9, 0.9, 0.4, 0.4, 0.05), strict=False):
        median = rows_of(spec, panel["layer"][1])
        assert panel["layer"][1]["mark"]["strokeWidth"] > panel["layer"][0]["mark"]["strokeWidth"]
        assert len(median) == 50
        assert median["share"].min() == pytest.approx(1 - depth * 1.04, abs=0.002)
        assert median.loc[median["share"].idxmin(), "t"] == pytest.approx(1.1)


def test_the_median_of_steps_sampled_at_other_times_is_not_smoothed() -> None:
    """Samples that lie apart by less than half a sampling length are one moment: the dip keeps its depth."""
    shifted = traces()
    shifted["t"] += shifted["step"] * 0.02
    drawn = dips.dip_traces(shifted[shifted["configuration"] == "range"], table(), "Dips", "").to_dict()
    median = rows_of(drawn, next(panels(drawn))["layer"][1])
    assert median["share"].min() == pytest.approx(1 - 0.9 * 1.04, abs=0.002)


def test_a_moment_that_few_steps_reach_has_no_median() -> None:
    """One step that goes on alone is not what the steps do."""
    data = traces()
    data = data[(data["configuration"] == "range") & ((data["t"] < 3) | (data["step"] == 0))]
    drawn = dips.dip_traces(data, table(), "Dips", "").to_dict()
    layers = next(panels(drawn))["layer"]
    assert rows_of(drawn, layers[0])["t"].max() > 7
    assert rows_of(drawn, layers[1])["t"].max() < 3


def test_no_two_views_share_a_name(spec: dict[str, Any]) -> None:
    """Views of one name were drawn with each other's data: the picture showed a calm group where the median dived."""
    names = [panel["layer"][0]["name"] for panel in panels(spec)]
    assert len(set(names)) == len(names) == 6
    assert set(names) <= set(spec["params"][0]["views"])


def test_the_objective_and_no_change_are_ruled_in_every_panel(spec: dict[str, Any]) -> None:
    """A rule at 1.0, a dashed one at 0.8, named once a row; the axes are the same everywhere."""
    for panel in panels(spec):
        rules = [layer for layer in panel["layer"] if layer["mark"]["type"] == "rule"]
        assert [rows_of(spec, rule)["share"].tolist() for rule in rules] == [[1.0], [0.8]]
        assert ["strokeDash" in rule["mark"] for rule in rules] == [False, True]
        encoding = panel["layer"][0]["encoding"]
        assert (encoding["x"]["scale"]["domain"], encoding["y"]["scale"]["domain"]) == ([-2, 8], [0, 1.6])
    words = [layer for panel in panels(spec) for layer in panel["layer"] if layer["mark"]["type"] == "text"]
    named = [layer for layer in words if rows_of(spec, layer)["text"].tolist() == ["objective: -20 %"]]
    # A view that zooms clips its marks unless told not to, and the words stand outside of it.
    assert [layer["mark"]["clip"] for layer in named] == [False] * len(DEPTHS)
    assert drawing.svg(dips.dip_traces(traces(), table(), "Dips", "made up")).count(">objective: -20 %<") == len(DEPTHS)


def test_what_was_not_run_is_said() -> None:
    """A control has no scale-down; a configuration without one has no data, which is not the same."""
    data = traces()
    data = data[(data["configuration"] != "range") | (data["kind"] == "up")]
    picture = drawing.svg(dips.dip_traces(data, table(), "Dips", ""))
    assert ">a control has no scale-down<" in picture
    assert ">no data: scale-down<" in picture


def test_depths_and_recoveries_are_summed_up_above_their_panel() -> None:
    """A step that never recovered and one without a depth are counted; of a kind without any depth that is said."""
    made = table()
    made.loc[(made["configuration"] == "cooperative-sticky, stock") & (made["kind"] == "down"), "depth_1s"] = np.nan
    notes = [panel["title"]["subtitle"] for panel in panels(dips.dip_traces(traces(), made, "Dips", "").to_dict())]
    assert notes[:2] == [
        ["dip over 1 s: median 72, worst 90 %; back in 3.5 s; 1 never back"],
        ["dip over 1 s: median 60.8, worst 85.5 %; back in 3.5 s; 1 no data"],
    ]
    assert notes[3:] == [["no data in 5 steps"], ["dip over 1 s: median 4, worst 5 %; back in 3 s"], []]


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        (traces().iloc[:0], "'night': the table is empty"),
        (traces().drop(columns="share"), "'night': the table has no column share"),
        (traces().replace({"kind": {"up": "sideways"}}), "'night': 'sideways' is not one of up, down, control"),
    ],
)
def test_traces_that_can_not_be_drawn_are_refused(broken: pd.DataFrame, said: str) -> None:
    """One line that names the chart and what is wrong."""
    with pytest.raises(ValueError, match=said):
        dips.dip_traces(broken, table(), "night", "")
