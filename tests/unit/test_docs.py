"""The project's pages name what exists: in their links, in their commands and in their text."""

from __future__ import annotations

import configparser
import contextlib
import importlib
import importlib.util
import io
import re
from functools import cache
from pathlib import Path

import pytest

from lab import options, paths
from lab.__main__ import COMMANDS, main
from tests import pages

ALL = [*paths.PROJECT.glob("*.md"), *(paths.PROJECT / "docs").rglob("*.md")]
PAGES = sorted(page for page in ALL if paths.PROJECT / "docs" / "evidence" not in page.parents)
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
MODULE = re.compile(r"python -m ((?:lab|tests|benchmarks)[\w.]*)")
IMPORT = re.compile(r"^ *from ((?:lab|tests)[\w.]*) import ([\w, ]+)$", re.MULTILINE)
FILE = re.compile(r"`((?:lab|tests|fixtures|manifests|profiles|docs)/[\w./-]+)`")
TEST = re.compile(r"(?<![\w/])(tests/[\w/]+\.py)(?:::(\w+))?")
LINE = re.compile(
    r"(?:^ {4,}|`)((?:[\w./]+/bin/)?(?:elastic-lab|pytest|tox -e) (?:[^`\n]|(?<=\\)\n)*)", re.MULTILINE
)  # a command, with its next lines
# Options of pytest-kind, Hypothesis, pytest-xdist and pytest itself, and of the differential tests' conftest.py.
OTHERS = {"--kubeconfig", "--keep-cluster", "--cluster-name", "--kind-bin", "--kind-image", "--hypothesis-profile", "--walks"}
# The reader makes them.
EXAMPLES = {"tests/experiments/test_19_floor.py", "tests/test_orders.py"}


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of ``page``."""
    return set(pages.sections(page.read_text(encoding="utf-8"))) - {""}


def broken(page: Path) -> list[str]:
    """The relative links of ``page`` that lead nowhere."""
    wrong = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (anchor and linked.suffix == ".md" and anchor not in anchors(linked)):
            wrong.append(target)
    return wrong


def unknown(page: Path) -> list[str]:
    """What ``page`` names and the project does not have: modules that its commands run, names that its code imports, files."""
    text = page.read_text(encoding="utf-8")
    modules = [name.rstrip(".") for name in MODULE.findall(text)]
    modules += [f"{module}.{name}" for module, names in IMPORT.findall(text) for name in names.split(", ")]
    return [name for name in modules if not found(name)] + [
        name for name in FILE.findall(text) if name not in EXAMPLES and not (paths.PROJECT / name).exists()
    ]


def found(module: str) -> bool:
    """Whether ``module`` can be imported, or is a name in a module that can."""
    package, _, name = module.rpartition(".")
    try:
        return importlib.util.find_spec(module) is not None or hasattr(importlib.import_module(package), name)
    except ModuleNotFoundError:
        return package != "" and found(package) and hasattr(importlib.import_module(package), name)


@cache
def known_options(command: str) -> frozenset[str]:
    """The options of a command of the lab, or of ``pytest``: the lab's, and those of others that pages use."""
    if command == "pytest":
        declared = list[str]()
        options.declare(lambda name, **_: declared.append(name), lambda *_, **__: None)
        return frozenset({*declared, *OTHERS})
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        main([command, "--help"])
    return frozenset(re.findall(r"--[a-z][\w-]*", printed.getvalue()))


def wrong_commands(page: Path) -> list[str]:
    """The commands of ``page`` that can't be typed: an environment of tox, a command, an option or a test that is not there."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(paths.PROJECT / "tox.ini")
    wrong = []
    for line in LINE.findall(page.read_text(encoding="utf-8")):
        line = line.partition("#")[0].replace("\\\n", " ")
        program, _, rest = line.partition(" ")
        words = rest.split()
        if program.endswith("tox"):
            wrong += [name for name in words[1].split(",") if f"testenv:{name}" not in tox]
            command, words = "pytest", rest.partition(" -- ")[2].split()
        elif program.endswith("pytest"):
            command = "pytest"
        else:
            command = words[0]
            if command not in COMMANDS:
                wrong.append(f"elastic-lab {command}")
                continue
        wrong += [word for word in words if word.startswith("--") and word.partition("=")[0] not in known_options(command)]
    for file, test in TEST.findall(page.read_text(encoding="utf-8")):
        if file not in EXAMPLES and not (
            (paths.PROJECT / file).is_file() and f"def {test}" in (paths.PROJECT / file).read_text()
        ):
            wrong.append(f"{file}::{test}")
    return wrong


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(paths.PROJECT)))


@every_page
def test_links_resolve(page: Path) -> None:
    """Every relative link of the page has its file, and its heading where it names one."""
    assert broken(page) == []


@every_page
def test_what_a_page_names_exists(page: Path) -> None:
    """A page that names a module or a file of the project names one that is there."""
    assert unknown(page) == []


@every_page
def test_what_a_page_says_can_be_typed(page: Path) -> None:
    """Commands, their options, environments of tox and tests are there."""
    assert wrong_commands(page) == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    """A missing file and a missing heading are both named."""
    page = tmp_path / "page.md"
    page.write_text("# One: two\n[a](#one-two) [b](#three) [c](gone.md) [d](https://example.org/x)", encoding="utf-8")
    assert broken(page) == ["#three", "gone.md"]


def test_a_name_that_is_gone_is_found(tmp_path: Path) -> None:
    """A module and a file that are not there are both named; those that are there are not."""
    page = tmp_path / "page.md"
    page.write_text("python -m lab.gone and python -m lab; `lab/errors.py`, `lab/gone.py`", encoding="utf-8")
    assert unknown(page) == ["lab.gone", "lab/gone.py"]
    page.write_text("    from lab.errors import NoData, Gone\n    from lab.gone import there", encoding="utf-8")
    assert unknown(page) == ["lab.errors.Gone", "lab.gone.there"]


def test_a_command_that_is_gone_is_found(tmp_path: Path) -> None:
    """An environment, a command, an option and a test that are not there are all named."""
    page = tmp_path / "page.md"
    text = "    tox -e gone -- --repeat 3\n    pytest --repeats 2 tests/unit/test_docs.py::test_gone\n"
    text += "`elastic-lab fly` `elastic-lab plane --high`"
    page.write_text(text, encoding="utf-8")
    assert wrong_commands(page) == ["gone", "--repeats", "elastic-lab fly", "--high", "tests/unit/test_docs.py::test_gone"]
