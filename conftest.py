"""What the lab's own tests share. The options and the fixtures of experiments are the installed plugin's, :mod:`lab.plugin`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import settings

from tests.thoroughness import DEFAULT, THOROUGH

# A busy machine is no counterexample.
settings.register_profile("lab", deadline=None, print_blob=True, max_examples=DEFAULT)
settings.register_profile("thorough", deadline=None, print_blob=True, max_examples=THOROUGH)
settings.load_profile("lab")


@pytest.fixture(scope="session")
def bootstrap(kafka) -> str:
    """The address of a broker that lives as long as the session."""
    return kafka.bootstrap


# Fixtures that start a control plane, a broker or Spark, or build with Go.
SERVICES = frozenset({"bootstrap", "cluster", "kafka", "oracle", "plane", "session", "spark"})

# Files whose tests one worker of pytest-xdist runs, so that they share what its session starts: a cluster, or a broker and
# Spark. The first prefix that fits a file is its group's. They begin first, as they take longest. Every other file is a group
# of its own. (The mark xdist_group does nothing with pytest 9.2: pytest-xdist 3.8 writes it where pytest no longer reads it.)
SHARING = {
    "crash": ("tests/faults/test_crash",),
    "trials": ("tests/faults/",),
    "cluster": ("tests/unit/programs/lagscaler/test_with_keda", "tests/unit/cluster/", "tests/differential/test_hpa"),
    "kafka": ("tests/unit/programs/", "tests/unit/record/", "tests/unit/kafka/", "tests/unit/scenarios/"),
}


def group(nodeid: str) -> str:
    """The name of the group of a test: one of SHARING, or its file."""
    return next((name for name, starts in SHARING.items() if nodeid.startswith(starts)), nodeid.partition("::")[0])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadscope`` a worker is given a group at a time."""
    from xdist.scheduler import LoadScopeScheduling

    class Groups(LoadScopeScheduling):  # type: ignore[misc] # has no types
        def _split_scope(self, nodeid: str) -> str:
            return group(nodeid)

    return Groups(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``.

    The groups that take longest come first.
    """
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
    order = {name: place for place, name in enumerate(SHARING)}
    items.sort(key=lambda item: (order.get(group(item.nodeid), len(order)), item.get_closest_marker("services") is None))
