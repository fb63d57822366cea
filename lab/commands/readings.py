"""``elastic-lab readings``: what the HPA read of lag in each burst of a trial, and whether that renews the window."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.commands import situation
from lab.commands.text import as_json, number, table
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.measure.reading import bursts
from lab.record.store import Record

HEAD = (
    "burst",
    "lag, least",
    "lag, most",
    "syncs",
    "read, least",
    "read, most",
    "surplus below",
    "time below",
    "lag renews the window",
)
NEEDED = "all pods of maxReplicaCount Ready when it begins, and 3 syncs of a trigger on lag in it"


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Print the bursts of each record. Returns the exit code. Raises :class:`InputError` where no record has one."""
    parser = Flags(f"elastic-lab {command}", help_text, environment=False)
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD", help="a record, or a folder of them (results)")
    parser.flag("chart", situation.picture, None, "draw the bursts into this file", situation.DRAWABLE, optional=True)
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    options = parser.parse_args(arguments)
    found = {record: _rows(record) for folder in options.records for record in situation.records_in(folder)}
    if not any(found.values()):
        raise InputError(options.records[0], "records", "no such burst in any", f"one with {NEEDED}")
    print(as_json({record.id: rows for record, rows in found.items()}) if options.json else _text(found))
    if options.chart:
        from lab.report.readings import readings_chart

        situation.save(lambda: readings_chart([record for record, rows in found.items() if rows]), options.chart)
    return 0


def _rows(record: Record) -> list[dict[str, Any]]:
    """A row for each burst that can be shown; lag in messages. None where the record lacks the HPA's log, or lag."""
    try:
        there = bursts(record)
    except NoData:
        return []
    return [
        {
            "burst": burst.number,
            "lag_least": float(burst.lag["lag"].min()),
            "lag_most": float(burst.lag["lag"].max()),
            "syncs": len(burst.read),
            "read_least": min(one.lag for one in burst.read),
            "read_most": max(one.lag for one in burst.read),
            "surplus_below": min(one.surplus for one in burst.read),
            "below_share": round(burst.below, 3),
            "renews": burst.renews,
        }
        for burst in there
    ]


def _text(found: dict[Record, list[dict[str, Any]]]) -> str:
    blocks = []
    for record, rows in found.items():
        if not rows:
            blocks.append(f"{record.id}: no data: there is no burst with {NEEDED}")
            continue
        lines: list[Sequence[str]] = [HEAD]
        for row in rows:
            cells = [number(value) for name, value in row.items() if name != "renews"]
            lines.append((*cells, "yes" if row["renews"] else "no"))
        renewed = sum(row["renews"] for row in rows)
        head = f"{record.id}: lag renews the scale-down window in {renewed} of {len(rows)} bursts"
        blocks.append(f"{head}\n{table(lines, numbers=range(8))}")
    return "\n\n".join(blocks)
