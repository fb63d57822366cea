"""Hypothesis without deadlines, since a busy machine is no counterexample; and which tests start a real service."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("lab", deadline=None, print_blob=True)
settings.load_profile("lab")

# Fixtures that start a control plane, a broker or Spark, or build with Go.
SERVICES = frozenset({"bootstrap", "cluster", "oracle", "plane", "session", "spark"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``."""
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
