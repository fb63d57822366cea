"""All measures of a record at once: what measures.json holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from lab.errors import NoData
from lab.judge.measure import Measure
from lab.measure.cost import cost
from lab.measure.drain import drain
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction
from lab.record.store import Record, write_json

MEASURES: dict[str, Callable[[Record], Any]] = {
    "reaction": reaction,
    "drain": drain,
    "stability": stability,
    "cost": cost,
    "integrity": integrity,
}


def summarize(record: Record) -> dict[str, Any]:
    """Each measure as plain data, or ``{"no data": reason}``."""
    found: dict[str, Any] = {}
    for name, measure in MEASURES.items():
        try:
            measured = measure(record)
            found[name] = measured.to_dict() if isinstance(measured, Measure) else asdict(measured)
        except NoData as missing:
            found[name] = {"no data": str(missing)}
    return found


def keep(record: Record) -> Record:
    """Write the measures of ``record`` into its measures.json; returns the record."""
    write_json(record.folder / "measures.json", summarize(record))
    return record
