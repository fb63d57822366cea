"""What the lab's own tests share. The options and the fixtures of experiments are the installed plugin's, :mod:`lab.plugin`."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from tests.groups import scheduler
from tests.thoroughness import DEFAULT, THOROUGH

if TYPE_CHECKING:
    from lab.cluster import Cluster
    from lab.cluster.broker import Broker
    from tests.defects.source import Sources
    from tests.defects.target import Target
    from tests.defects.topic import Topic

# What is collected stays: to look through it for garbage while it grows takes a third of the collection, in every worker.
gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage again, of what the tests make: the collected tests and the modules outlive them."""
    gc.freeze()
    gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    """How long the differential run is, and the soak."""
    parser.addoption("--walks", type=int, metavar="N", help="walks of the differential run (default: 20; 80 when thorough)")
    parser.addoption("--soak", type=int, metavar="MINUTES", default=120, help="how long the soak drives bursts (default: 120)")


# A busy machine is no counterexample. By default the cases are the same every time, so no change fails by luck. Every night
# they are others, also where Hypothesis sees in the environment that it is in CI, and by itself would draw the same.
settings.register_profile("lab", deadline=None, derandomize=True, print_blob=True, max_examples=DEFAULT)
settings.register_profile("thorough", deadline=None, derandomize=False, print_blob=True, max_examples=THOROUGH)
settings.load_profile("lab")


@pytest.fixture(scope="session")
def bootstrap(kafka) -> str:
    """The address of a broker that lives as long as the session."""
    return kafka.bootstrap


@pytest.fixture(scope="session")
def closed() -> Iterator[Broker]:
    """A broker that takes no one without the login in its ``settings``; it lives as long as the session."""
    from lab.cluster import broker
    from lab.host import processes, runs
    from lab.kafka import login

    started, run, guard = runs.start(lambda run: broker.start(run, login.new()))
    try:
        yield started
    finally:
        processes.clear(run)
        processes.dismiss(guard)


@pytest.fixture
def target(cluster: Cluster) -> Iterator[Callable[..., Target]]:
    """Makes a :class:`~tests.defects.target.Target` for triggers and settings; all are deleted after the test."""
    from tests.defects.target import Target

    made: list[Target] = []

    def make(*triggers: dict[str, Any], **settings: Any) -> Target:
        made.append(Target(cluster, *triggers, **settings))
        return made[-1]

    yield make
    for one in made:
        one.delete()


@pytest.fixture
def topic(bootstrap: str) -> Callable[..., Topic]:
    """Makes a :class:`~tests.defects.topic.Topic` on the session's broker."""
    from tests.defects.topic import Topic

    def make(partitions: int = 10, **settings: Any) -> Topic:
        return Topic(bootstrap, partitions, **settings)

    return make


@pytest.fixture
def kind_cluster(cluster: Cluster) -> Cluster:
    """The session's cluster, which must be of kind."""
    assert cluster.runtime == "kind", "tests/kind needs --cluster kind"
    return cluster


@pytest.fixture
def sources() -> Iterator[Sources]:
    """Sources of metrics that are well."""
    from tests.defects.source import Sources

    made = Sources()
    yield made
    made.close()


# Fixtures that start a control plane, a broker or Spark, or build with Go.
SERVICES = frozenset({"bootstrap", "closed", "cluster", "kafka", "oracle", "plane", "session", "spark"})

# Tests that one worker of pytest-xdist runs, so that they share what its session starts: a cluster, a broker and Spark, or what
# draws charts. The first prefix that fits a test is its group's. The groups begin in this order, the longest first; any other
# file is a group of its own. (The mark xdist_group does nothing with pytest 9.2: pytest-xdist 3.8 writes it where pytest no
# longer reads it.)
SHARING = {
    "breaks": ("tests/faults/test_breaks", "tests/faults/test_boards", "tests/faults/test_exposure", "tests/faults/test_watch"),
    "keda": (
        "tests/unit/programs/lagscaler/test_with_keda",
        "tests/unit/cluster/",
        "tests/faults/test_two_clusters",
        "tests/faults/test_existing",
        "tests/faults/test_shadow",
        "tests/differential/test_hpa",
    ),
    "trials": ("tests/faults/test_duet", "tests/faults/test_decreed", "tests/faults/test_baseline", "tests/unit/record/"),
    "crash": ("tests/faults/test_crash",),
    "programs": ("tests/unit/programs/", "tests/unit/kafka/"),
    "dashboards": tuple(f"tests/unit/scenarios/ride_hailing/test_{name}" for name in ("analytics", "pipeline")),
    "charts": ("tests/unit/charts/", "tests/unit/report/", "tests/unit/experiments/test_dip_chart"),
}

# Tests that share nothing, each of which judges a session in a process of its own: each is a group, so every worker takes some.
APART = tuple(
    f"tests/records/test_judged_again.py::test_{name}"
    for name in ("committed_records_give_the_same_verdicts", "a_test_reads_the_same_for_two_runs_as_for_one")
)

# Tests that show a rate, for which they need the machine to themselves: they run last, when every other worker has ended.
ALONE = ("tests/faults/test_decreed.py::test_a_group_is_taken_through_its_steps",)


def group(nodeid: str) -> str:
    """The name of the group of a test: "alone", the test itself, one of SHARING, or its file."""
    if nodeid.startswith(ALONE):
        return "alone"
    if nodeid.startswith(APART):
        return nodeid
    return next((name for name, starts in SHARING.items() if nodeid.startswith(starts)), nodeid.partition("::")[0])


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a coroutine function in an event loop of its own; any other is pytest's to call."""
    if not inspect.iscoroutinefunction(pyfuncitem.function):
        return None
    names = inspect.signature(pyfuncitem.function).parameters
    asyncio.run(pyfuncitem.function(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """With ``--dist loadscope`` a worker is given a group at a time."""
    return scheduler(config, log, group, "alone") if config.getoption("dist") == "loadscope" else None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> Generator[None]:
    """Mark the tests that ask for a service; a module that starts one by itself has the mark in its ``pytestmark``.

    The groups that take longest come first, after pytest has put tests of one fixture together.
    """
    for item in items:
        if SERVICES & set(getattr(item, "fixturenames", ())):
            item.add_marker("services")
    yield
    order = {name: place for place, name in enumerate(SHARING)}
    items.sort(key=lambda item: (order.get(group(item.nodeid), len(order)), item.get_closest_marker("services") is None))
