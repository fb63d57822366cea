"""What the lab's own tests share. The options and the fixtures of experiments are the installed plugin's, :mod:`lab.plugin`."""

from __future__ import annotations

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

# Files whose tests one worker of pytest-xdist runs, in this order, so that they share what their session starts. The first
# begin first: they take longest. Every other file is a group of its own.
GROUPS = {
    "crash": ("faults/test_crash",),
    "trials": ("faults/",),
    "keda": ("unit/programs/lagscaler/test_with_keda", "unit/cluster/test_", "differential/test_hpa_differential"),
    "kafka": (),  # all that ask for a broker or for Spark
}


def group(item: pytest.Item) -> str:
    """The name of the group of ``item``: its own mark's, one of GROUPS, or its file's."""
    if mark := item.get_closest_marker("xdist_group"):
        return str(mark.args[0])
    file = item.nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    named = next((name for name, starts in GROUPS.items() if file.startswith(starts)), None)
    if named is None and {"kafka", "spark"} & set(getattr(item, "fixturenames", ())):
        return "kafka"
    return named or file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``.

    With workers, each test has its group, and the groups that take longest come first.
    """
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
    if config.getoption("dist", "no") == "loadgroup":
        places = {name: place for place, name in enumerate(GROUPS)}
        groups = {item: group(item) for item in items}
        for item, name in groups.items():
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(name))
        last = len(GROUPS)
        items.sort(key=lambda item: (places.get(groups[item], last), not any(item.iter_markers("services"))))
