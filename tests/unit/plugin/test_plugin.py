"""The plugin in a repository that is not the lab's: its options, its root, its markers, and what it leaves alone."""

import re
import sys

import pytest

from lab import paths
from lab.errors import InputError
from lab.inputs import inputs
from lab.inputs import scale as scales
from lab.inputs.manifests import Library
from lab.inputs.workload import Workload

from . import project

pytestmark = pytest.mark.services

DECLARING = "def pytest_addoption(parser):\n    parser.addoption('--{}', action='store_true')\n"
ELSEWHERE = """
from types import SimpleNamespace

from lab.host import machine

machine.sys = SimpleNamespace(platform="darwin")
"""
ORDERS = paths.PROJECT / "docs" / "examples" / "orders.yaml"


@pytest.fixture
def folder(tmp_path):
    """A user's repository."""
    return project.write(tmp_path / "ours")


def test_a_file_outside_of_the_repository_is_brought(folder, tmp_path):
    """Root, configuration and testpaths are the repository's, and the acceptance is chosen."""
    file = tmp_path / "elsewhere" / "my.yaml"
    file.parent.mkdir()
    file.write_text(ORDERS.read_text())
    ran = project.session(sys.executable, folder, "-m", "spike", "-v", f"--scaledobject={file}")
    assert ran.code == 0, ran.printed
    assert f"rootdir: {folder}\n" in ran.printed
    assert "testpaths: experiments" in ran.printed
    assert re.findall(r"(test_\w+) PASSED", ran.printed) == ["test_brought"]
    apart = project.session(sys.executable, folder, "-m", "spike", "--scaledobject", file)
    assert (apart.code, f"allowed: --scaledobject={file}, in one word" in apart.printed) == (2, True), apart.printed


def test_an_option_of_anothers_name_is_left_to_it(folder):
    """A plugin's comes first. A conftest.py, which comes later, is told what to do. The lab's has a name of its own."""
    theirs = ["--scale", "--lab-scale=medium", "-k", "their_own_code"]
    (folder / "profiling.py").write_text(DECLARING.format("scale"))
    ran = project.session(sys.executable, folder, "-p", "profiling", *theirs)
    assert ran.code == 0, ran.printed
    (folder / "conftest.py").write_text(DECLARING.format("scale"))
    (line,) = project.session(sys.executable, folder).printed.strip().splitlines()
    assert line.startswith(f"ERROR: --scale is an option of elastic-lab and of {folder / 'conftest.py'}: short-options = ")
    (folder / "pyproject.toml").write_text('[tool.elastic-lab]\nshort-options = "off"\n')
    ran = project.session(sys.executable, folder, *theirs)
    assert ran.code == 0, ran.printed


def test_a_trial_elsewhere_than_on_linux_is_one_line(folder, tmp_path):
    """Said before anything of an earlier session is taken away; records are judged there too."""
    (folder / "elsewhere.py").write_text(ELSEWHERE)
    earlier = tmp_path / "earlier" / "verdicts.json"
    earlier.parent.mkdir()
    earlier.write_text("[]")
    given = [sys.executable, folder, "-p", "elsewhere", "-m", "spike", "-k", "mine"]
    ran = project.session(*given, f"--results={earlier.parent}")
    assert (ran.code, ran.printed.count("a trial needs Linux, and this is darwin")) == (3, 1), ran.printed
    assert earlier.exists()
    judged = project.session(*given, f"--from-records={project.record(folder, tmp_path / 'results')}")
    assert (judged.code, "a bound that nothing keeps" in judged.printed) == (1, True), judged.printed


def test_a_machine_that_is_too_slow_is_one_line(folder):
    """Said before a cluster is started; records are judged on it."""
    (folder / "experiments" / "test_mine.py").write_text(project.EXPERIMENT.replace("spike", "speed(1e12)\n@pytest.mark.spike"))
    given = [sys.executable, folder, "-m", "spike", "-k", "mine"]
    ran = project.session(*given)
    assert (ran.code, ran.printed.count("this machine is too slow now")) == (3, 1), ran.printed
    assert "cluster" not in ran.printed
    judged = project.session(*given, f"--from-records={project.record(folder, folder / 'stored')}")
    assert (judged.code, "too slow" in judged.printed) == (1, False), judged.printed


def test_a_repositorys_own_tests_are_left_alone(folder):
    """Without a marker's expression nothing of the lab's is written, and no cluster is started by a test that asks for none.

    Any other option of theirs is left alone.
    """
    (folder / "conftest.py").write_text(DECLARING.format("profile"))
    ran = project.session(sys.executable, folder, "--profile", "-k", "their_own_code")
    assert ran.code == 0, ran.printed
    assert "1 passed" in ran.printed
    assert not (folder / "results").exists()


def test_a_callers_own_files_come_first(folder):
    """A profile of the lab's name is the caller's; what the caller lacks is the lab's. Any other is refused."""
    steady = "{kind: steady, rate: 7, duration: 60}\n"
    (folder / "profiles" / "plateau.yaml").write_text(steady)
    read = [
        inputs.read("plateau", "lag", Workload(), 1, scales.load("real"), "binary", library=library)
        for library in (Library.of(folder), Library.of(paths.PROJECT))
    ]
    assert [len({step.rate for step in one.profile.steps}) for one in read] == [1, 2]
    assert read[0].policy.content == read[1].policy.content
    library = Library.of(folder)
    for find, mine, labs in ((library.profile, "ours", "plateau"), (library.policy, "our-lag", "lag-4500")):
        with pytest.raises(InputError) as error:
            find("none")
        assert {mine, labs} <= set(error.value.allowed.removeprefix("one of ").split(", "))
        assert "scales" not in error.value.allowed
    with pytest.raises(InputError, match="scaledobjects/lag-4500"):
        library.manifest("scaledobjects/none")
