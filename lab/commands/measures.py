"""``elastic-lab measures [NAME]``: every measure with its first sentence, or one with its formulas, units and module."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from argparse import Namespace
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, get_type_hints

import lab.measure
from lab.commands.text import table
from lab.errors import InputError
from lab.flags import Flags
from lab.judge.measure import Measure, Number


@dataclass(frozen=True)
class Entry:
    """One measure: its function, what its docstrings say, and its rows (field, unit, name)."""

    module: str
    name: str
    text: str
    rows: tuple[tuple[str, str, str], ...]


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    parser.add_argument("name", nargs="?", help="a measure, to show whole")


def run(options: Namespace) -> int:
    """Print. Returns the exit code. Raises :class:`InputError` for a name that no measure has."""
    name = options.name
    known = {entry.name: entry for entry in entries()}
    if name is None:
        print(table([("measure", "what it is"), *((one.name, one.text.partition("\n\n")[0]) for one in known.values())]))
        return 0
    if name not in known:
        raise InputError("command line", "NAME", name, ", ".join(known))
    entry = known[name]
    print(f"{entry.module}.{name}\n\n{entry.text}\n\n{table([('field', 'unit', 'name'), *entry.rows])}")
    return 0


def entries(package: Any = lab.measure) -> list[Entry]:
    """The measures that the modules of ``package`` compute, by name."""
    found: list[Entry] = []
    for item in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        module = importlib.import_module(item.name)
        for name, function in vars(module).items():
            if inspect.isfunction(function) and function.__module__ == module.__name__ and not name.startswith("_"):
                found += _entry(name, function)
    return sorted(found, key=lambda entry: entry.name)


def _entry(name: str, function: Callable[..., Any]) -> Iterator[Entry]:
    """The measure under ``function``, if it is one: it makes a :class:`Measure`, or it is under ``quantity``."""
    kept = inspect.getclosurevars(function).nonlocals  # where the decorator keeps unit and name
    kind = get_type_hints(function).get("return") if hasattr(function, "__wrapped__") else None
    documented: list[object] = [function]
    if {"unit", "name", "compute"} <= kept.keys():
        rows = [(name, kept["unit"], kept["name"])]
    elif inspect.isclass(kind) and issubclass(kind, Measure):
        documented = [kind, function]
        rows = [(field, one.unit if isinstance(one, Number) else "", one.name) for field, one in kind.declared().items()]
    else:
        return
    text = "\n\n".join(filter(None, map(inspect.getdoc, documented)))
    yield Entry(function.__module__, name, text, tuple(rows))
