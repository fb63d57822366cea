"""Steps up beside the scaler's metrics: hand-made syncs at 10 s, and scrapes each second."""

from types import SimpleNamespace

import pandas as pd
import pytest

from lab.model.hpa_log import Sync
from tests.experiments.measure.reasons import LASTING, METRIC, reasons
from tests.unit.scenarios.payments.test_hpa_steps import SPEC


def made(*, metric=(0, 4_000), lasting=(0, 4_000), desired=8, scaled=True, at=10.5):
    """A sync that goes from 4 pods to ``desired``; both metrics have their first value up to 10 s, and then the second."""
    times = [float(second) for second in range(20)]
    rows = [
        (t, name, values[t > 10])
        for name, values in ((METRIC, metric), (LASTING, lasting))
        for t in times
        if values[t > 10] is not None
    ]
    return SimpleNamespace(
        samples=pd.DataFrame(rows, columns=["t", "metric", "value"]),
        hpa_syncs=[Sync(at, SPEC, 4, desired, desired, (), scaled_at=at if scaled else None)],
        profile_start=5.0,
        lag_threshold=500,
    )


@pytest.mark.parametrize(
    ("change", "steps", "unexplained"),
    [
        ({}, 1, 0),  # the scrape after it asks for 8
        ({"metric": (4_000, 0), "lasting": (4_000, 0)}, 1, 0),  # the scrape before it did
        ({"metric": (0, 3_501)}, 1, 0),  # a part of a pod's lag takes a pod
        ({"metric": (0, 3_500)}, 1, 1),  # for 7
        ({"lasting": (0, 0)}, 1, 1),  # nothing had lasted
        ({"at": 9.5}, 1, 1),  # a second too early
        ({"scaled": False}, 0, 0),  # one that the window held
        ({"desired": 3}, 0, 0),  # one down
        ({"at": 4.5}, 0, 0),  # before the profile began
    ],
)
def test_a_step_is_explained_by_a_scrape_beside_it(change, steps, unexplained):
    """By lag that has lasted and by a metric for as many pods; by nothing that came later. Other syncs are no steps."""
    found = reasons(made(**change))
    assert (found.steps.number, found.unexplained.number) == (steps, unexplained)


@pytest.mark.parametrize("lacking", [{"metric": (None, None)}, {"lasting": (None, None)}])
def test_without_the_scalers_metrics_there_is_no_data(lacking):
    """A missing metric explains nothing, and is no step without a reason either."""
    assert "was scraped" in reasons(made(**lacking)).unexplained.why
