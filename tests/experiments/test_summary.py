"""The session's summary: every objective in one table, and the policy the experiments recommend.

It is the last module of a session. It asserts that no experiment is missing, and that no experiment of six runs or more decides
a setting otherwise than the recommended policy has it; the latter also in the session of experiment 17. Refuted by one such
setting, which is named with both values: then the policy's file is to be changed, or the experiment explained.
"""

import allure
import pytest

from lab import paths, yamlfile
from tests.defects import page
from tests.experiments.recommended_policy import beaten

pytestmark = [allure.epic("Scaling on lag"), allure.feature("Summary")]

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
ACCEPTANCE = (EXPERIMENTS[0], *EXPERIMENTS[2:8], "acceptance")  # in which experiment 2 is
RECOMMENDED = paths.MANIFESTS / "scaledobjects" / "recommended.yaml"


@pytest.mark.parametrize(
    "expected",
    [
        pytest.param(ACCEPTANCE, marks=pytest.mark.spike, id="acceptance"),
        pytest.param(EXPERIMENTS, marks=pytest.mark.extended, id="all"),
    ],
)
@allure.story("Objectives and the recommended policy")
def test_no_experiment_is_missing(experiments_missing, add_section, expected):
    """All were judged; the session's page says how, and what follows."""
    if expected is EXPERIMENTS:
        add_section("Known behaviours", page.table(), page.NOTE)
    assert experiments_missing(expected, RECOMMENDED) == []


@pytest.mark.extended
@pytest.mark.stretch
@allure.story("The recommended policy is what the session concludes")
def test_no_setting_of_the_recommended_policy_is_beaten(conclusions, pytestconfig):
    """From six runs on: lagThreshold, ceiling, idle consumers, cached metrics; triggers in the session of experiment 17."""
    assert beaten(conclusions, yamlfile.read(RECOMMENDED), pytestconfig.getoption("lab_repeat")) == []
