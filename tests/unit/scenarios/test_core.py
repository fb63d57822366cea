"""The core knows no scenario: what one needs it declares in its manifests."""

import re

from lab import paths
from lab.trial import samples

SCENARIOS = sorted(file.parent.name for file in (paths.PROJECT / "tests" / "scenarios").glob("*/__init__.py"))
IMPORT = re.compile(r"^\s*(?:from|import) +(?:tests|fixtures)\b", re.MULTILINE)


def test_the_core_names_no_scenario_and_imports_no_test():
    """Neither in code nor in words, however its name is written: the programs of a scenario import the core.

    Metrics of a scenario's own programs come with its manifests.
    """
    names = "|".join(one.replace("_", "[-_ ]?") for one in SCENARIOS)
    named = re.compile(rf"\b({names})\b", re.IGNORECASE)
    texts = {str(file): file.read_text() for file in (paths.PROJECT / "lab").rglob("*.py")}
    assert not {"ingestion_events_total", "matching_pending_requests"} & set(samples.METRICS)
    assert [file for file, text in texts.items() if named.search(text) or IMPORT.search(text)] == []
