"""The index of measures: what it says of a measure, and that the committed page is what the code gives."""

from __future__ import annotations

import sys
from types import ModuleType

from lab import paths
from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.judge.quantity import Quantity
from lab.report import measures
from lab.report.tables import render

SCENARIOS = sorted((paths.PROJECT / "tests" / "scenarios").glob("*/measure/__init__.py"))
PACKAGES = (*measures.PACKAGES, *(f"tests.scenarios.{file.parent.parent.name}.measure" for file in SCENARIOS))


class Pace(Measure):
    """The pace is ``distance`` / ``duration``, as :class:`Quantity`."""

    speed = number("m/s", "mean speed | of all")
    names = detail(list, "who ran")


@measure
def pace(record: dict[str, float]) -> Pace:
    """Measure the pace; no data without a duration."""
    return Pace(speed=record["distance"] / record["duration"], names=[])


@quantity("s", "age of the oldest")
def oldest(record: dict[str, float]) -> float:
    """The time since the first one began."""
    raise NoData("none began")


def helper(record: dict[str, float]) -> Quantity:
    """No measure: it is not declared as one."""
    return oldest(record)


def test_each_measure_has_its_formula_units_and_names() -> None:
    """Both kinds are found in their order; a helper is not; a name is escaped, so that it can't break the table."""
    both = measures.entries(sys.modules[__name__])
    assert [entry.function for entry in both] == ["pace", "oldest"]
    first, second = both
    assert first.text == "The pace is `distance` / `duration`, as `Quantity`.\n\nMeasure the pace; no data without a duration."
    assert first.first == "The pace is `distance` / `duration`, as `Quantity`."
    assert first.rows == (("speed", "m/s", "mean speed | of all"), ("names", "(detail)", "who ran"))
    assert second.text == "The time since the first one began."
    assert second.rows == (("oldest", "s", "age of the oldest"),)
    shown = render("measures.md", measures=both)
    assert "| `speed` | m/s | mean speed \\| of all |\n| `names` | (detail) | who ran |\n" in shown
    assert "| [oldest](#oldest) | The time since the first one began. |\n" in shown


def test_every_declared_measure_is_on_the_page() -> None:
    """A class of a measure that no function computes would be on no page."""
    found = list(measures.modules(PACKAGES))
    computed = {measures._kind(function) for module in found for function in vars(module).values() if callable(function)}
    declared = {
        item
        for module in found
        for item in vars(module).values()
        if isinstance(item, type) and issubclass(item, Measure) and item.__module__ == module.__name__
    }
    assert declared
    assert declared <= computed


def test_the_page_begins_with_its_contents() -> None:
    """Every measure is one line of the first table, which links to its section."""
    page = measures.page(PACKAGES)
    names = [entry.function for module in measures.modules(PACKAGES) for entry in measures.entries(module)]
    assert names
    assert all(f"\n| [{name}](#{name}) | " in page for name in names)


def test_a_module_without_measures_has_no_section() -> None:
    """An empty module adds nothing."""
    assert measures.entries(ModuleType("empty")) == []
