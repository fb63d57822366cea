"""All measures of a record at once: what measures.json holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from lab.judge.measure import Measure
from lab.measure.cost import cost
from lab.measure.delivery import delivery
from lab.measure.drain import drain
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.punctuality import punctuality
from lab.measure.reaction import reaction
from lab.record.store import Record, write_json

MEASURES: dict[str, Callable[[Record], Measure]] = {
    "reaction": reaction,
    "drain": drain,
    "stability": stability,
    "cost": cost,
    "integrity": integrity,
    "delivery": delivery,
    "punctuality": punctuality,
}


def summarize(record: Record) -> dict[str, Any]:
    """Each measure as plain data, or ``{"no data": reason}``."""
    return {name: measure(record).to_dict() for name, measure in MEASURES.items()}


def keep(record: Record) -> Record:
    """Write the measures of ``record`` into its measures.json; returns the record."""
    write_json(record.folder / "measures.json", summarize(record))
    return record
