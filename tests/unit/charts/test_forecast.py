"""Predictions drawn: every curve that was given is in the picture, and the marked policies are."""

import numpy as np
import pandas as pd

from lab.charts import drawing, forecast, policies
from lab.foresee.curve import Curve
from lab.inputs.profile import Profile, Step

PROFILE = Profile((Step(0, 10, "baseline"), Step(60, 100, "spike"), Step(120, 10, "drain")), 180)


def curve(most):
    """Lag that peaks at ``most`` when the spike ends; 2 replicas, then 4."""
    counts = np.array([2, 2, 4, 4])
    return Curve(np.array([0.0, 60.0, 120.0, 180.0]), np.array([0.0, 0.0, most, 0.0]), counts, counts)


def drawn(recorded=None, objective_s=2.0):
    """The chart and its rows by panel and series."""
    data = forecast.Forecast("lag-4500 on a step", "simulated", PROFILE, 0.0, objective_s, curve(900.0), recorded)
    chart = forecast.forecast(data)
    spec, found = chart.to_dict(), {}
    for panel in spec["vconcat"]:
        rows = [row for layer in panel["layer"] for row in spec["datasets"][layer["data"]["name"]] if "series" in row]
        found[panel["name"]] = dict(list(pd.DataFrame(rows).groupby("series")))
    return chart, found


def test_a_prediction_alone_shows_what_is_asked_for_and_what_is_at_work():
    """Lag, age with its objective, and both counts of replicas to the end; each phase is named in the picture."""
    chart, found = drawn()
    assert found["lag"]["predicted"]["value"].max() == 900
    assert set(found["age"]) == {"predicted", "objective"}
    assert (found["age"]["objective"]["value"] == 2).all()
    assert set(found["replicas"]) == {"asked for", "at work"}
    assert found["replicas"]["asked for"]["t"].max() == 180
    picture = drawing.svg(chart)
    assert all(f">{phase}</text>" in picture for phase in ("baseline", "spike", "drain"))


def test_a_record_is_drawn_beside_its_prediction():
    """In each panel, and the age with no objective where there is none."""
    _, found = drawn(curve(700.0), objective_s=None)
    assert list(found) == list(forecast.PANELS)
    assert all(set(series) == {"predicted", "recorded"} for series in found.values())
    assert found["lag"]["recorded"]["value"].max() == 700


def test_the_front_is_drawn_with_the_given_and_the_recommended():
    """Each kind in the legend, both marked ones by name."""
    rows = [(10, 5, policies.TRIED), (8, 4, policies.FRONT), (9, 2, policies.FRONT), (10, 5, policies.YOURS)]
    table = pd.DataFrame([*rows, (9, 2, policies.RECOMMENDED)], columns=["pod_minutes", "late_s", "kind"])
    picture = drawing.svg(policies.front(table.assign(label=""), "policies", "simulated", 2.0))
    for kind in (policies.TRIED, policies.FRONT):
        assert f">{kind}</text>" in picture
    for kind in (policies.YOURS, policies.RECOMMENDED):  # in the legend and beside the point
        assert picture.count(f">{kind}</text>") == 2
    assert policies.FLIPPING not in picture
