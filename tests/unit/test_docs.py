"""The project's pages name what exists: in their links, in their commands and in their text."""

from __future__ import annotations

import importlib
import importlib.util
import re
from pathlib import Path

import pytest

from lab import paths
from tests import pages

PAGES = sorted([*paths.PROJECT.glob("*.md"), *(paths.PROJECT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
MODULE = re.compile(r"python -m ((?:lab|tests|benchmarks)[\w.]*)")
IMPORT = re.compile(r"^ *from ((?:lab|tests)[\w.]*) import ([\w, ]+)$", re.MULTILINE)
FILE = re.compile(r"`((?:lab|tests|fixtures|manifests|profiles|docs)/[\w./-]+)`")
# The reader makes them.
EXAMPLES = {"manifests/scaledobjects/floor-8.yaml", "tests/experiments/test_19_floor.py"}


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


every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(paths.PROJECT)))


@every_page
def test_links_resolve(page: Path) -> None:
    """Every relative link of the page has its file, and its heading where it names one."""
    assert broken(page) == []


@every_page
def test_what_a_page_names_exists(page: Path) -> None:
    """A page that names a module or a file of the project names one that is there."""
    assert unknown(page) == []


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
