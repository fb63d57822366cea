"""The wheel, installed into an empty environment in another folder: an experiment of a user's own runs there."""

import json
import re
import shutil
import site
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

from benchmarks import core
from lab import paths
from lab.errors import BREACHED, FAULT

from .. import test_accept
from . import project

pytestmark = pytest.mark.services

SOURCES = ("lab", "acceptance", "fixtures", "manifests", "profiles", "pyproject.toml", "setup.py", "README.md", "LICENSE")
BUILD = "import sys; from setuptools import build_meta; build_meta.build_wheel(sys.argv[1])"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel, built in a folder without git."""
    source, wheels = (tmp_path_factory.mktemp(name) for name in ("source", "wheels"))
    for name in SOURCES:
        file = paths.PROJECT / name
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(file, source / name, ignore=ignored) if file.is_dir() else shutil.copy(file, source)
    subprocess.run([sys.executable, "-c", BUILD, wheels], cwd=source, check=True, capture_output=True, timeout=300)
    (built,) = wheels.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of the programs of an environment with the wheel in it.

    The libraries that the wheel requires are those of this environment, so that nothing is fetched.
    """
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    programs = folder / "bin"
    pip = [sys.executable, "-m", "pip", f"--python={programs / 'python'}", "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True, capture_output=True, timeout=300)
    packages = sysconfig.get_path("purelib", vars={"base": str(folder), "platbase": str(folder)})
    Path(packages, "libraries.pth").write_text("\n".join(site.getsitepackages()))
    return programs


def ask(installed, folder, *command):
    """What a program of the environment prints when it is run in ``folder``."""
    words = [installed / command[0], *command[1:]]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def files(folder):
    """The paths of all files in ``folder``, but what Python makes of them, half written by another worker's import or whole."""
    return {str(one.relative_to(folder)) for one in folder.rglob("*") if one.is_file() and "__pycache__" not in one.parts}


@pytest.mark.nightly
def test_an_installation_is_small_and_answers(wheel, tmp_path):
    """With what it requires, as pip fetches it into an environment that has nothing else."""
    python = core.environment(tmp_path / "environment")
    core.run(python, "-m", "pip", "install", "--quiet", wheel)
    assert core.megabytes(tmp_path / "environment") < 120
    assert "pod-minutes" in ask(python.parent, tmp_path, "elastic-lab", "simulate", *core.QUESTION)


@pytest.mark.parametrize(
    ("tags", "version"), [(["v0.2.0"], r"0\.2\.0"), ([], r"0\.1\.?\S*dev1\+g[0-9a-f]+")], ids=["tag", "none"]
)
def test_the_version_is_that_of_gits_tags(tmp_path, tags, version):
    """A commit behind no tag is named; in a folder without git it is the least (below)."""
    shutil.copy(paths.PROJECT / "pyproject.toml", tmp_path)
    who = ["-c", "user.name=x", "-c", "user.email=x"]
    for words in (["init", "-q"], ["add", "."], [*who, "commit", "-qm", "x"], *(["tag", name] for name in tags)):
        subprocess.run(["git", "-C", tmp_path, *words], check=True)
    asked = subprocess.run([sys.executable, "-m", "setuptools_scm"], cwd=tmp_path, check=True, capture_output=True, text=True)
    assert re.fullmatch(version, asked.stdout.strip())


def test_the_wheel_has_its_own_files(installed, tmp_path):
    """Code, profiles, manifests and fixtures are in the environment and not in this checkout, all of it inside ``lab``.

    The console script and ``python -m lab`` answer alike, and know their version.
    """
    code = "import json; from lab import paths; from lab.fixtures import trials; import lab\n"
    code += "print(json.dumps([lab.__file__, str(paths.PROFILES), str(paths.MANIFESTS), trials.__file__]))"
    places = [Path(place) for place in json.loads(ask(installed, tmp_path, "python", "-c", code))]
    packages = places[0].parent.parent
    assert packages.is_relative_to(installed.parent)
    assert all(place.is_relative_to(packages / "lab") for place in places)
    assert {path.name for path in packages.iterdir() if path.suffix in ("", ".py")} == {"lab"}
    for name in ("lab", "acceptance", "fixtures", "profiles", "manifests"):
        assert files(paths.PROJECT / name) <= files(packages / "lab" / ("" if name == "lab" else name))
    version = tomllib.loads((paths.PROJECT / "pyproject.toml").read_text())["tool"]["setuptools_scm"]["fallback_version"]
    for command in (["elastic-lab"], ["python", "-m", "lab"]):
        assert ask(installed, tmp_path, *command, "--version") == f"elastic-lab {version}"
    given = ["threshold", "--rate=100", "--slo=2", "--json"]
    assert ask(installed, tmp_path, "elastic-lab", *given) == ask(installed, tmp_path, "python", "-m", "lab", *given)


def test_an_experiment_of_ones_own_is_judged(installed, tmp_path):
    """Its profile and policy are those of its repository; what it breached is named, and the evidence is left."""
    folder = project.write(tmp_path / "ours")
    results = project.record(folder, tmp_path / "stored")
    ran = project.session(installed / "python", folder, "-m", "spike", f"--from-records={results}", "--results=left")
    assert ran.code == 1, ran.printed
    assert "1 failed" in ran.printed
    verdicts = json.loads((folder / "left" / "verdicts.json").read_text())
    assert [(row["experiment"], row["verdict"]) for row in verdicts] == [("mine", "held"), ("mine", "breached")]
    assert list((folder / "left" / "allure-results").glob("*-result.json"))


def test_a_users_file_is_accepted_in_an_empty_folder(installed, tmp_path):
    """By its own command, and by pytest: the test is the wheel's."""
    test_accept.store(tmp_path / "stored")
    (folder := tmp_path / "empty").mkdir()
    command = [installed / "elastic-lab", *test_accept.words(), "--from-records=../stored", "--results=left"]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == BREACHED, ran.stdout + ran.stderr
    assert ran.stdout.splitlines()[-2:] == ["orders.yaml: don't ship", "read left/report.html"]
    assert "orders.yaml: don't ship" in (folder / "left" / "summary.md").read_text()
    given = f"--scaledobject={test_accept.FILES.scaledobject}"
    ran = project.session(installed / "python", folder, "-m", "spike", "--collect-only", "-q", given)
    assert "test_acceptance.py::test_the_policy_is_accepted" in ran.printed


@pytest.mark.nightly
def test_an_experiment_of_ones_own_runs_on_a_cluster(installed, tmp_path):
    """The whole way, in a minute: the pods' programs are the wheel's too.

    Other tests run on the machine meanwhile. A trial that they disturb is invalid, and its numbers are shown without a verdict.
    """
    folder = project.write(tmp_path / "ours")
    ran = project.session(installed / "python", folder, "-m", "spike", "--results=left")
    allowed = {BREACHED: ["held", "breached"], FAULT: ["invalid", "invalid"]}
    assert ran.code in allowed, ran.printed
    verdicts = json.loads((folder / "left" / "verdicts.json").read_text())
    assert [row["verdict"] for row in verdicts] == allowed[ran.code], ran.printed
    assert all(row["measured"] > 0 for row in verdicts), ran.printed
