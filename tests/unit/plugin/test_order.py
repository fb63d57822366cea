"""The order of tests: experiments as in every report, and ``--dist loadscope`` group by group, by a session of its own."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab import paths, plugin

CONFTEST = """
import os
import time
from pathlib import Path

import pytest

from tests.groups import scheduler

NOTES = Path(__file__).with_name("notes")


def note(word):
    with NOTES.open("a") as file:
        file.write(f"{word} {os.environ['PYTEST_XDIST_WORKER']}\\n")


@pytest.fixture(scope="session", autouse=True)
def started():
    yield note("begin")
    time.sleep(0.2)
    note("end")


@pytest.fixture
def ran(request):
    note(request.node.name)


def pytest_xdist_make_scheduler(config, log):
    return scheduler(config, log, lambda nodeid: nodeid.partition("::")[0], "test_alone.py")
"""
MANY = "".join(f"def test_{number}(ran): pass\n" for number in range(4))
FEW = "def test_only(ran): pass\n"
ALONE = "def test_first(ran): pass\ndef test_second(ran): pass\n"


@pytest.mark.services
@pytest.mark.parametrize("files", [0, 1, 5])
def test_what_runs_alone_begins_when_every_other_worker_has_ended(tmp_path, files):
    """Whether there are more workers than groups or fewer; every test runs once, and what is collected first begins first."""
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_alone.py").write_text(ALONE)
    for number in range(files):
        (tmp_path / f"test_many_{number}.py").write_text(MANY if number else FEW)
    command = [sys.executable, "-m", "pytest", "-p", "xdist.plugin", "-n", "3", "--dist", "loadscope", "-c"]
    command += [f"{tmp_path / 'pytest.ini'}", f"{tmp_path}"]
    around = dict(os.environ, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_ADDOPTS="")
    ran = subprocess.run(command, cwd=paths.PROJECT, env=around, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout
    assert f"{4 * files - 3 * (files > 0) + 2} passed" in ran.stdout
    notes = [line.split() for line in (tmp_path / "notes").read_text().splitlines()]
    if files:
        (eager,) = (where for what, where in notes if what == "test_only")  # the worker that was ready first
        assert next(what for what, where in notes if what.startswith("test") and where == eager) == "test_only"
    first = notes.index(next(note for note in notes if note[0] == "test_first"))
    (worker,) = {where for what, where in notes if what in ("test_first", "test_second")}
    assert {where for what, where in notes[:first] if what == "begin"} - {worker} == {
        where for what, where in notes[:first] if what == "end"
    }
    assert {what for what, _ in notes[first:]} == {"test_first", "test_second", "end"}


def item(name: str, *, judging: bool = True) -> SimpleNamespace:
    """A test of the module ``name``."""
    return SimpleNamespace(
        nodeid=name,
        path=Path(f"tests/{name}.py"),
        fixturenames=[],
        iter_markers=lambda: [SimpleNamespace(name="spike")] * judging,
        add_marker=lambda mark: None,
    )


def test_experiments_run_in_their_natural_order() -> None:
    """1, 2, 10, then those with a name; other tests keep their places, and tests of one experiment their order."""
    config = SimpleNamespace(
        pluginmanager=SimpleNamespace(hasplugin=lambda name: False),
        option=SimpleNamespace(**dict.fromkeys(("lab_scaledobject", "lab_profile", "lab_workload", "lab_name", "lab_topic"))),
        hook=SimpleNamespace(),
    )
    second = item("test_2_reaction")
    items = [item("test_10_lag"), item("test_code", judging=False), item("test_1_signal"), second, item("test_2_reaction")]
    items.append(item("test_model"))
    plugin.pytest_collection_modifyitems(config, items)
    names = [one.nodeid for one in items]
    assert names == ["test_1_signal", "test_code", "test_2_reaction", "test_2_reaction", "test_10_lag", "test_model"]
    assert items[2] is second
