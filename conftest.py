"""What the lab's own tests share. The options and the fixtures of experiments are the installed plugin's, :mod:`lab.plugin`."""

from __future__ import annotations

import pytest
from hypothesis import settings

settings.register_profile("lab", deadline=None, print_blob=True)  # a busy machine is no counterexample
settings.load_profile("lab")


@pytest.fixture(scope="session")
def bootstrap(kafka) -> str:
    """The address of a broker that lives as long as the session."""
    return kafka.bootstrap


# Fixtures that start a control plane, a broker or Spark, or build with Go.
SERVICES = frozenset({"bootstrap", "cluster", "kafka", "oracle", "plane", "session", "spark"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``."""
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
