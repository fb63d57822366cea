"""The core knows no scenario: what one needs it declares in its manifests."""

import re

import pytest

from lab import paths
from lab.trial import samples

SCENARIOS = sorted(file.parent.name for file in (paths.PROJECT / "tests" / "scenarios").glob("*/__init__.py"))
CORE = sorted((paths.PROJECT / "lab").rglob("*.py"))
IMPORT = re.compile(r"^\s*(?:from|import) +(?:tests|fixtures)\b", re.MULTILINE)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_core_names_no_scenario(scenario):
    """Neither in code nor in words, however its name is written."""
    name = re.compile(r"\b" + scenario.replace("_", "[-_ ]?") + r"\b", re.IGNORECASE)
    assert [str(file) for file in CORE if name.search(file.read_text())] == []


def test_the_core_imports_nothing_of_the_tests():
    """The programs of a scenario import the core, and not the other way round."""
    assert [str(file) for file in CORE if IMPORT.search(file.read_text())] == []


def test_every_trial_records_only_metrics_of_the_core():
    """Those of a scenario's own programs come with its manifests."""
    assert not {"ingestion_events_total", "matching_pending_requests"} & set(samples.METRICS)
