"""Who imports what: each import of a test module is there in the smaller environments, and the core needs no scenario."""

import ast
import configparser
import re
import sys
import tomllib
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from lab.trial import samples

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
homes = cache(packages_distributions)
OURS = {"lab", "tests", "acceptance", "fixtures"}
# Packages of a distribution that a declared one brings along.
BROUGHT = {"allure": "allure-pytest", "allure_commons": "allure-pytest", "_pytest": "pytest"}


def _declared(*extras: str) -> set[str]:
    """The distributions of the project, of ``extras``, and of the dependency group ``test``."""
    project, names = PROJECT["project"], set[str]()
    open_ = [*project["dependencies"], *PROJECT["dependency-groups"]["test"]]
    open_ += [item for extra in extras for item in project["optional-dependencies"][extra]]
    while open_:
        wanted = Requirement(open_.pop())
        names.add(canonicalize_name(wanted.name))
        if wanted.name == project["name"]:
            open_ += [item for extra in wanted.extras for item in project["optional-dependencies"][extra]]
    return names


@cache
def _imported() -> list[tuple[Path, str]]:
    """Each package that a module of the tests imports when it is collected; pods' programs are not."""
    found = []
    for path in sorted((ROOT / "tests").rglob("*.py")):
        if "programs" in path.parts and "scenarios" in path.parts:
            continue
        for node in ast.parse(path.read_text()).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                names = [node.module]
            found += [(path, name.partition(".")[0]) for name in names]
    return found


def _collecting() -> dict[str, list[str]]:
    """The extras of each environment of tox whose pytest is given no folder of tests."""
    settings = configparser.ConfigParser(interpolation=None)
    settings.read(ROOT / "tox.ini")
    shared, found = settings["testenv"]["extras"], dict[str, list[str]]()
    for name in settings.sections():
        command = settings[name].get("commands", "").lstrip()
        of_folder = any(word.startswith("tests/") for word in command.split())
        if name.startswith("testenv:") and command.startswith("pytest") and not of_folder:
            extras = settings[name].get("extras", shared)
            found[name.removeprefix("testenv:")] = [one.strip() for one in extras.split(",")]
    return found


@pytest.mark.parametrize("environment", _collecting())
def test_an_environment_of_tox_has_what_collecting_its_tests_imports(environment: str) -> None:
    """Also what ``pytest -m spike`` deselects is imported first. Most have an extra or two, and the group ``test`` alone."""
    assert {"spike", "scenario", "stretch", "real-time"} <= _collecting().keys()
    declared = _declared(*_collecting()[environment])
    missing = sorted(
        f"{path.relative_to(ROOT)}: {name}"
        for path, name in _imported()
        if name not in sys.stdlib_module_names and name not in OURS and name in homes()
        if not declared & {canonicalize_name(home) for home in [*homes()[name], BROUGHT.get(name, name)]}
    )
    assert not missing


SCENARIOS = sorted({file.parent.name for file in (ROOT / "tests" / "scenarios").glob("*/test_*.py")})
IMPORT = re.compile(r"^\s*(?:from|import) +(?:tests|fixtures)\b", re.MULTILINE)


def test_the_core_names_no_scenario_and_imports_no_test() -> None:
    """Neither in code nor in words, however its name is written: the programs of a scenario import the core.

    Metrics of a scenario's own programs come with its manifests.
    """
    names = "|".join(one.replace("_", "[-_ ]?") for one in SCENARIOS)
    named = re.compile(rf"\b({names})\b", re.IGNORECASE)
    texts = {str(file): file.read_text() for file in (ROOT / "lab").rglob("*.py")}
    assert not {"ingestion_events_total", "matching_pending_requests"} & set(samples.METRICS)
    assert [file for file, text in texts.items() if named.search(text) or IMPORT.search(text)] == []
