"""The project's pages name what exists, in links, commands and text; and ask what the experiments ask, in the same words."""

from __future__ import annotations

import configparser
import contextlib
import importlib
import importlib.util
import io
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from lab import options, paths
from lab.__main__ import COMMANDS, main
from tests import pages

ALL = [file for place in ("*.md", "docs/**/*.md", ".github/**/*.md") for file in paths.PROJECT.glob(place)]
PAGES = sorted(page for page in ALL if paths.PROJECT / "docs" / "evidence" not in page.parents)
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
MODULE = re.compile(r"python -m ((?:lab|tests|benchmarks)[\w.]*)")
IMPORT = re.compile(r"^ *from ((?:lab|tests)[\w.]*) import ([\w, ]+)$", re.MULTILINE)
FILE = re.compile(r"`((?:lab|tests|fixtures|manifests|profiles|docs)/[\w./-]+)`")
TEST = re.compile(r"(?<![\w/])(tests/[\w/]+\.py)(?:::(\w+))?")
LINE = re.compile(r"(?:^ {4,}|`)((?:[\w./]+/bin/)?(?:elastic-lab|pytest|tox -e) (?:[^`\n]|(?<=\\)\n)*)", re.MULTILINE)
# Options of pytest-kind, Hypothesis, pytest-xdist and pytest itself, and of the differential tests' conftest.py.
OTHERS = {"--kubeconfig", "--keep-cluster", "--cluster-name", "--kind-bin", "--kind-image", "--hypothesis-profile", "--walks"}
# The reader makes them.
EXAMPLES = {"tests/experiments/test_20_floor.py", "tests/test_orders.py"}


def broken(page: Path) -> list[str]:
    """The relative links of ``page`` that lead nowhere."""
    wrong = []
    for target in LINK.findall(page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        linked = (page.parent / name).resolve() if name else page
        if not linked.exists() or (
            anchor and linked.suffix == ".md" and anchor not in pages.sections(linked.read_text(encoding="utf-8"))
        ):
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
        options.declare(lambda *names, **_: declared.extend(names), lambda *_, **__: None)
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
            if command == "--version":
                continue
            if command not in COMMANDS:
                wrong.append(f"elastic-lab {command}")
                continue
        wrong += [word for word in words if word.startswith("--") and word.partition("=")[0] not in known_options(command)]
    for file, test in TEST.findall(page.read_text(encoding="utf-8")):
        there = paths.PROJECT / file
        if file not in EXAMPLES and not (there.is_file() and f"def {test}" in there.read_text()):
            wrong.append(f"{file}::{test}")
    return wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(paths.PROJECT)))
def test_what_a_page_names_exists(page: Path) -> None:
    """Its links have their files and headings; modules, files and tests are there, and its commands can be typed."""
    assert (broken(page), unknown(page), wrong_commands(page)) == ([], [], [])


@pytest.mark.parametrize(
    ("find", "text", "gone"),
    [
        (broken, "# One: two\n[a](#one-two) [b](#three) [c](gone.md) [d](https://example.org/x)", ["#three", "gone.md"]),
        (unknown, "python -m lab.gone and python -m lab; `lab/errors.py`, `lab/gone.py`", ["lab.gone", "lab/gone.py"]),
        (
            unknown,
            "    from lab.errors import NoData, Gone\n    from lab.gone import there",
            ["lab.errors.Gone", "lab.gone.there"],
        ),
        (
            wrong_commands,
            "    tox -e gone -- --repeat 3\n    pytest --repeats 2 tests/unit/test_docs.py::test_gone\n"
            "`elastic-lab fly` `elastic-lab plane --high`",
            ["gone", "--repeats", "elastic-lab fly", "--high", "tests/unit/test_docs.py::test_gone"],
        ),
    ],
)
def test_what_is_gone_is_found(tmp_path: Path, find: Callable[[Path], list[str]], text: str, gone: list[str]) -> None:
    """By name, and nothing that is there."""
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    assert find(page) == gone


ROW = re.compile(r"^\| \[[^]]+\]\(\.\./(tests/experiments/\S+)\) \| (.+?) \|", re.MULTILINE)
QUESTIONS = ROW.findall((paths.PROJECT / "docs" / "experiments.md").read_text())


def test_the_page_asks_what_the_experiments_ask() -> None:
    """In the same words, but for the first letter; all that are numbered, the model, and no other.

    Every module begins with a question, which the session's page shows; the session's summary asks none.
    """
    folder = paths.PROJECT / "tests" / "experiments"
    for module, question in QUESTIONS:
        assert (paths.PROJECT / module).read_text().partition("\n")[0].partition(": ")[2].lower() == question.lower()
    numbered = sorted(file.name for file in folder.glob("test_*.py") if re.match(r"test_(\d+_|model)", file.name))
    assert sorted(module.rpartition("/")[2] for module, _ in QUESTIONS) == numbered
    modules = [file for name in ("experiments", "scenarios") for file in (paths.PROJECT / "tests" / name).rglob("test_*.py")]
    assert len(modules) > len(QUESTIONS)
    for file in modules:
        assert file.stem == "test_summary" or file.read_text().partition("\n")[0].endswith("?"), file
