"""The dips of the rebalance experiment: every step given is drawn, and what was not measured is said."""

import numpy as np
import pandas as pd
import pytest

from lab.charts import drawing
from tests.experiments.dip_chart import dip_traces

DEPTHS = {"range": 0.9, "cooperative-sticky, stock": 0.4, "control: none joins": 0.05}
SHOWN = [(name, kind) for name in DEPTHS for kind in (("control",) if name.startswith("control") else ("up", "down"))]


def traces():
    """Made-up dips: in each of five steps the share falls to 1 - depth at 1 s; the control has no scale-down."""
    times = np.arange(-3.0, 9.0, 0.2) + 0.1
    parts = []
    for name, kind in SHOWN:
        for step in range(5):
            share = 1 - DEPTHS[name] * (1 + 0.01 * step**2) * (abs(times - 1.1) < 0.05)
            parts.append(pd.DataFrame({"configuration": name, "kind": kind, "step": step, "t": times, "share": share}))
    return pd.concat(parts, ignore_index=True)


def table():
    """Five steps of each configuration and kind; one never recovered, one has no depth."""
    rows = [(name, kind, DEPTHS[name] * (1 - 0.05 * n**2), 1.0 + n) for name, kind in SHOWN for n in range(5)]
    made = pd.DataFrame(rows, columns=["configuration", "kind", "depth", "recovery_s"])
    made.loc[0, "recovery_s"] = made.loc[5, "depth"] = np.nan
    return made


def panels(spec):
    """The small multiples, row by row."""
    return [panel for row in spec["vconcat"] for panel in row["hconcat"]]


def rows_of(spec, layer):
    """The rows a layer is drawn from."""
    return pd.DataFrame(spec["datasets"][layer["data"]["name"]])


@pytest.fixture(scope="module")
def spec():
    """The made-up traces as a Vega-Lite spec."""
    return dip_traces(traces(), table()).to_dict()


def test_every_step_is_drawn_in_its_own_panel_with_their_median(spec):
    """Each panel has the samples of its configuration and kind within the window; the thick line is their median."""
    given = traces()
    for panel, (name, kind) in zip(panels(spec), SHOWN, strict=False):
        own = given[(given["configuration"] == name) & (given["kind"] == kind) & given["t"].between(-2, 8)]
        thin, thick = panel["layer"][:2]
        wanted = own[["step", "t", "share"]].round(3).reset_index(drop=True)
        pd.testing.assert_frame_equal(rows_of(spec, thin)[["step", "t", "share"]], wanted)
        assert thin["encoding"]["detail"]["field"] == "step"
        assert (panel["title"]["text"].startswith(name), panel["title"]["text"].endswith("5 steps")) == (True, True)
        median = rows_of(spec, thick)
        assert thick["mark"]["strokeWidth"] > thin["mark"]["strokeWidth"]
        assert len(median) == 50
        assert median["share"].min() == pytest.approx(1 - DEPTHS[name] * 1.04, abs=0.002)
        assert median.loc[median["share"].idxmin(), "t"] == pytest.approx(1.1)


def test_the_median_of_steps_sampled_at_other_times_is_not_smoothed():
    """Samples less than half a sampling length apart are one moment. One step that goes on alone is not what the steps do."""
    shifted = traces().query("configuration == 'range' and (t < 3 or step == 0)")
    drawn = dip_traces(shifted.assign(t=shifted["t"] + shifted["step"] * 0.02), table()).to_dict()
    thin, median = (rows_of(drawn, layer) for layer in panels(drawn)[0]["layer"][:2])
    assert median["share"].min() == pytest.approx(1 - 0.9 * 1.04, abs=0.002)
    assert thin["t"].max() > 7
    assert median["t"].max() < 3


def test_the_objective_and_no_change_are_ruled_in_every_panel(spec):
    """A rule at 1.0, a dashed one at 0.8, named once a row; the axes are the same everywhere.

    Views of one name were drawn with each other's data: the picture showed a calm group where the median dived.
    """
    names = [panel["layer"][0]["name"] for panel in panels(spec)]
    assert len(set(names)) == len(names) == 6
    assert set(names) <= set(spec["params"][0]["views"])
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


def test_what_was_not_run_is_said():
    """A control has no scale-down; a configuration without one has no data, which is not the same; without any step none is."""
    picture = drawing.svg(dip_traces(traces().query("configuration != 'range' or kind == 'up'"), table()))
    assert ">a control has no scale-down<" in picture
    assert ">no data: scale-down<" in picture
    assert picture.count(">objective: -20 %<") == len(DEPTHS)
    with pytest.raises(ValueError, match="no step"):
        dip_traces(traces().iloc[:0], table())


def test_depths_and_recoveries_are_summed_up_above_their_panel():
    """A step that never recovered and one without a depth are counted; of a kind without any depth that is said."""
    made = table()
    made.loc[(made["configuration"] == "cooperative-sticky, stock") & (made["kind"] == "down"), "depth"] = np.nan
    notes = [panel["title"]["subtitle"] for panel in panels(dip_traces(traces(), made).to_dict())]
    assert notes[:2] == [
        ["dip: median 72, worst 90 %; back in 3.5 s; 1 never back"],
        ["dip: median 60.8, worst 85.5 %; back in 3.5 s; 1 no data"],
    ]
    assert notes[3:] == [["no data in 5 steps"], ["dip: median 4, worst 5 %; back in 3 s"], []]
