"""A session that decides a setting otherwise than the recommended policy names it; one that agrees, or is short, names none."""

import pytest

from lab import paths, yamlfile
from lab.report.session import Conclusion
from tests.experiments import test_17_arrivals, test_summary
from tests.experiments.recommended_policy import SETTINGS, beaten
from tests.experiments.test_summary import RECOMMENDED


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


def test_triggers_are_their_kinds(policy):
    """A policy on lag alone is beaten by one on arrivals too, and by no other of its own kind."""
    plain = yamlfile.read(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml")
    beside = concluded("triggers", "kafka, prometheus")
    assert beaten([concluded("triggers", "kafka")], plain, 6) == beaten([beside], policy, 6) == []
    (line,) = beaten([beside], plain, 6)
    assert "has kafka, this session concludes kafka, prometheus" in line


def test_a_session_that_concludes_the_triggers_is_compared():
    """``tox -e stretch`` runs experiment 17, which alone concludes them. ``tox -e extended`` runs what concludes the rest."""
    test = test_summary.test_no_setting_of_the_recommended_policy_is_beaten
    compared = {mark.name for mark in vars(test)["pytestmark"]}
    (concluding,) = {mark.name for mark in test_17_arrivals.pytestmark} & {"spike", "extended", "stretch"}
    assert {concluding, "extended"} <= compared
