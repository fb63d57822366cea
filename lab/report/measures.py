"""``python -m lab.report.measures [PACKAGE ...]``: the index of measures (docs/measures.md), made from their classes.

A measure is a subclass of :class:`lab.judge.measure.Measure`. Its docstring gives the formulas, and its numbers give units and
names. A function under :func:`lab.judge.measure.quantity` is one number, with its own docstring.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any, get_type_hints

from lab.judge.measure import Detail, Measure, Number
from lab.report.tables import markdown, markdown_table

PACKAGES = ("lab.measure",)
COMMAND = "python -m lab.report.measures > docs/measures.md"
HEAD = f"""# All measures

A program writes this page from the code: `{COMMAND}`. A test fails while the page differs from the code.

A measure is a pure function of a [record](record.md). It returns quantities: each has a value, or the reason why there is none.
A quantity without a value makes a claim "no data", which is never a pass. The names in the tables are those of reports and of
`verdicts.json`. A *detail* is no number: a test can read it, and no bound is compared with it.
"""


@dataclass(frozen=True)
class Entry:
    """One section of the page: what computes a measure, its ``text``, and its rows (field, unit, name)."""

    module: str
    function: str
    text: str
    rows: tuple[tuple[str, str, str], ...]


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
            made.append(Entry(module.__name__, name, inspect.getdoc(function) or "", (("", *single),)))
        elif (kind := _kind(function)) is not None:
            text = "\n\n".join(filter(None, (inspect.getdoc(kind), inspect.getdoc(function))))
            rows = tuple(_row(field, item) for field, item in kind.declared().items())
            made.append(Entry(module.__name__, name, text, rows))
    return made


def page(packages: Iterable[str] = PACKAGES) -> str:
    """The whole page as GitHub's Markdown; its links lead from docs/ to the modules."""
    found = [entry for module in modules(packages) for entry in entries(module)]
    lines = ((f"[{entry.function}](#{entry.function})", _prose(entry.text.partition("\n\n")[0])) for entry in found)
    contents = markdown_table(("measure", ""), ((name, " ".join(text.split()).replace("|", "\\|")) for name, text in lines))
    return "\n".join([HEAD, contents, *map(_section, found)])


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
    return (field, item.unit, item.name) if isinstance(item, Number) else (field, "*detail*", item.name)


def _section(entry: Entry) -> str:
    source = f"[{entry.module}](../{entry.module.replace('.', '/')}.py)"
    cells = [
        (f"`{field or entry.function}`", unit if unit == "*detail*" else markdown(unit), markdown(name))
        for field, unit, name in entry.rows
    ]
    table = markdown_table(("field", "unit", "name"), cells)
    return f"## {entry.function}\n{source}\n\n{_prose(entry.text)}\n\n{table}"


def _prose(text: str) -> str:
    """A docstring as Markdown: code and references to other names become code."""
    return re.sub(r":\w+:`~?([^`]+)`|``([^`]+)``", lambda match: f"`{match[1] or match[2]}`", text)


if __name__ == "__main__":
    sys.stdout.write(page(sys.argv[1:] or PACKAGES))
