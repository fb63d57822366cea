"""``python -m lab.report.measures [PACKAGE ...]``: every measure with its formulas, printed from their classes.

A measure is a subclass of :class:`lab.judge.measure.Measure`. Its docstring gives the formulas, and its numbers give units and
names. A function under :func:`lab.judge.measure.quantity` is one number, with its own docstring.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_type_hints

from lab.judge.measure import Detail, Measure, Number
from lab.report.tables import render

PACKAGES = ("lab.measure",)


@dataclass(frozen=True)
class Entry:
    """One section of the page: a measure's function, its ``text`` in Markdown, and its rows (field, unit, name)."""

    module: str
    function: str
    text: str
    rows: tuple[tuple[str, str, str], ...]

    @property
    def first(self) -> str:
        """The first paragraph of the text, as one cell of a table."""
        return " ".join(self.text.partition("\n\n")[0].split()).replace("|", "\\|")


def modules(packages: Iterable[str] = PACKAGES) -> Iterator[ModuleType]:
    """The modules of ``packages`` by name, imported."""
    for package in packages:
        found = importlib.import_module(package)
        for item in sorted(pkgutil.walk_packages(found.__path__, f"{package}."), key=lambda item: item.name):
            yield importlib.import_module(item.name)


def entries(module: ModuleType) -> list[Entry]:
    """The measures that ``module`` computes, in the order of the code."""
    made = []
    for name, function in vars(module).items():
        if not inspect.isfunction(function) or function.__module__ != module.__name__ or name.startswith("_"):
            continue
        if (single := _single(function)) is not None:
            made.append(_entry(module, name, [(name, *single)], function))
        elif (kind := _kind(function)) is not None:
            made.append(_entry(module, name, [_row(*item) for item in kind.declared().items()], kind, function))
    return made


def page(packages: Sequence[str] = PACKAGES) -> str:
    """The whole page as Markdown."""
    found = [entry for module in modules(packages) for entry in entries(module)]
    return render("measures.md", measures=found)


def _entry(module: ModuleType, function: str, rows: Sequence[tuple[str, str, str]], *documented: object) -> Entry:
    text = "\n\n".join(filter(None, map(inspect.getdoc, documented)))
    return Entry(module.__name__, function, _prose(text), tuple(rows))


def _kind(function: Callable[..., Any]) -> type[Measure] | None:
    """The class of the measure that ``function`` computes, or None."""
    if not hasattr(function, "__wrapped__"):
        return None
    kind = get_type_hints(function).get("return")
    return kind if inspect.isclass(kind) and issubclass(kind, Measure) else None


def _single(function: Callable[..., Any]) -> tuple[str, str] | None:
    """(unit, name) of a function under ``quantity``, or None. The decorator keeps both in the function's closure."""
    kept = inspect.getclosurevars(function).nonlocals
    return (kept["unit"], kept["name"]) if {"unit", "name", "compute"} <= kept.keys() else None


def _row(field: str, item: Number | Detail[Any]) -> tuple[str, str, str]:
    return (field, item.unit if isinstance(item, Number) else "(detail)", item.name)


def _prose(text: str) -> str:
    """A docstring as Markdown: code and references to other names become code."""
    return re.sub(r":\w+:`~?([^`]+)`|``([^`]+)``", lambda match: f"`{match[1] or match[2]}`", text)


if __name__ == "__main__":
    sys.stdout.write(page(tuple(sys.argv[1:]) or PACKAGES))
