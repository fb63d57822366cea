"""A session that decides a setting otherwise than the recommended policy names it; one that agrees, or is short, names none."""

import pytest

from lab import paths, yamlfile
from lab.inputs import variant
from lab.report.session import Conclusion
from tests.experiments.recommended_policy import SETTINGS, beaten
from tests.experiments.test_summary import RECOMMENDED

WINDOW = "scaleDown.stabilizationWindowSeconds"


def concluded(setting, value):
    """What an experiment concluded of a setting."""
    return Conclusion(setting, str(value), "it flipped least", "5_flapping")


@pytest.fixture
def policy():
    """The recommended policy as it is written."""
    return yamlfile.read(RECOMMENDED)


def test_a_session_that_agrees_beats_nothing(policy):
    """Numbers and switches are read as what they mean, and a setting that no ScaledObject has is none of it."""
    agreed = {"lagThreshold": 4500, "maxReplicaCount": "24.0", "allowIdleConsumers": '"true"', "useCachedMetrics": "false"}
    rows = [concluded(setting, value) for setting, value in agreed.items()]
    assert beaten([*rows, concluded("auto.offset.reset", "latest")], policy, 6) == []


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_setting_can_be_beaten(policy, setting):
    """By name, with both values and why; fewer than six runs hold no median at 95 %."""
    (line,) = beaten([concluded(setting, 7)], policy, 6)
    assert line.startswith(f"{setting}: the recommended policy has ")
    assert line.endswith("this session concludes 7 (5_flapping: it flipped least)")
    assert beaten([concluded(setting, 7)], policy, 5) == []


def test_a_tolerance_that_is_not_written_is_the_default(policy):
    """So a policy without one is beaten by 0.94, and agrees with 0.1."""
    plain = yamlfile.read(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml")
    assert beaten([concluded("scaleDown.tolerance", 0.1), concluded(WINDOW, 300)], plain, 6) == []
    (line,) = beaten([concluded("scaleDown.tolerance", 0.94)], plain, 6)
    assert "has 0.1, this session concludes 0.94" in line
    tolerant = variant.policy("lag-4500", scale_down_tolerance=0.94).applied(plain, "here")
    assert beaten([concluded("scaleDown.tolerance", 0.94)], tolerant, 6) == []
