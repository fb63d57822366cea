"""The session's summary: every objective in one table, and the policy the experiments recommend.

It is the last test of a session and asserts one thing: that no experiment is missing.
"""

import allure
import pytest

from lab import paths

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("Summary")]

EXPERIMENTS = (
    "1_signal",
    "2_reaction_and_drain",
    "3_rebalance_dip",
    "4_past_p",
    "5_flapping",
    "6_scale_down",
    "7_repartition",
    "8_lag_threshold",
    "9_controller",
    "10_persistent_lag",
    "model",
)
RECOMMENDED = paths.MANIFESTS / "scaledobjects" / "lag-4500-patient.yaml"


@allure.story("Objectives and the recommended policy")
def test_no_experiment_is_missing(experiments_missing):
    """All were judged, and the model beside them; the session's page says how, and what follows."""
    assert experiments_missing(EXPERIMENTS, RECOMMENDED) == []
