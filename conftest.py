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

# Groups of tests, each of which one worker of pytest-xdist runs, so that its tests share what their session starts: a cluster,
# or a broker and Spark. They begin first, as they take longest. Every other file is a group of its own.
SHARING = ("crash", "trials", "cluster", "kafka")


def group(item: pytest.Item) -> str:
    """The name of the group of ``item``: its own mark's, one of SHARING, or its file's."""
    if mark := item.get_closest_marker("xdist_group"):
        return str(mark.args[0])
    file = item.nodeid.partition("::")[0].removeprefix("tests/").removesuffix(".py")
    if file.startswith("faults/"):
        return "crash" if file == "faults/test_crash" else "trials"
    asks = set(getattr(item, "fixturenames", ()))
    return "cluster" if "cluster" in asks else "kafka" if asks & {"kafka", "spark"} else file


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``.

    With workers, each test has its group, and the groups that take longest come first.
    """
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
    if config.getoption("dist", "no") == "loadgroup":
        groups = {item: group(item) for item in items}
        for item, name in groups.items():
            if not item.get_closest_marker("xdist_group"):
                item.add_marker(pytest.mark.xdist_group(name))
        order = {name: place for place, name in enumerate(SHARING)}
        items.sort(key=lambda item: (order.get(groups[item], len(order)), item.get_closest_marker("services") is None))
