"""``elastic-lab reactions``: the reaction to each burst that a group met at its floor, and their distribution."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

from lab.commands import situation
from lab.commands.text import as_json, number, table
from lab.errors import InputError, NoData
from lab.flags import Flags
from lab.measure.reactions import Answer, answers
from lab.record.store import Record

HEAD = ("burst", "pods wanted before", "since the last sync (s)", "first step up after (s)", "new pod at work after (s)", "pod")
NEEDED = "a burst or spike that begins with the group at minReplicaCount and is answered with a step up"


def run(command: str, help_text: str, arguments: Sequence[str]) -> int:
    """Print the reactions of each record, then all of them together. Returns the exit code.

    Raises :class:`InputError` where no record has one, and where the records are of several scales.
    """
    parser = Flags(f"elastic-lab {command}", help_text, environment=False)
    parser.add_argument("records", type=Path, nargs="+", metavar="RECORD", help="a record, or a folder of them (results)")
    parser.add_argument("--json", action="store_true", help="print JSON in place of tables")
    options = parser.parse_args(arguments)
    records = [record for folder in options.records for record in situation.records_in(folder)]
    if len(names := sorted({record.scale.name for record in records})) > 1:
        raise InputError(options.records[0], "scale", names, "one: times of several scales have no distribution together")
    found, missing = {}, {}
    for record in records:
        try:
            found[record] = answers(record)
        except NoData as nothing:
            found[record], missing[record] = [], str(nothing)
    if not any(found.values()):
        raise InputError(options.records[0], "records", "no such burst in any", NEEDED)
    print(as_json(_facts(found, missing)) if options.json else _text(found, missing))
    return 0


def _row(one: Answer) -> dict[str, Any]:
    return {
        "burst": one.number,
        "before": one.before,
        "since_sync_s": None if one.since_sync_s is None else round(one.since_sync_s, 3),
        "decided_s": round(one.decided_s, 3),
        "at_work_s": round(one.at_work_s, 3),
        "pod": one.pod,
    }


def _summary(found: dict[Record, list[Answer]]) -> dict[str, Any]:
    """n, least, median, the 95th percentile as the next higher reaction, and most of all reactions, s."""
    times = sorted(one.at_work_s for each in found.values() for one in each)
    high = times[min(len(times) - 1, -(-95 * len(times) // 100) - 1)]
    figures = {"least_s": times[0], "median_s": median(times), "p95_s": high, "most_s": times[-1]}
    return {"reactions": len(times)} | {name: round(value, 3) for name, value in figures.items()}


def _facts(found: dict[Record, list[Answer]], missing: dict[Record, str]) -> dict[str, Any]:
    each = {record.id: [_row(one) for one in rows] for record, rows in found.items()}
    return {"records": each, "no data": {record.id: why for record, why in missing.items()}, "all": _summary(found)}


def _text(found: dict[Record, list[Answer]], missing: dict[Record, str]) -> str:
    blocks = []
    for record, rows in found.items():
        if not rows:
            blocks.append(f"{record.id}: no data: {missing.get(record, f'there is no {NEEDED[2:]}')}")
            continue
        lines: list[Sequence[str]] = [HEAD]
        for row in map(_row, rows):
            *figures, pod = row.values()
            lines.append((*map(number, figures), pod))
        blocks.append(f"{record.id}\n{table(lines, numbers=range(5))}")
    all_of = _summary(found)
    blocks.append(
        f"{all_of['reactions']} reactions: least {all_of['least_s']:.1f} s, median {all_of['median_s']:.1f} s, "
        f"95th percentile {all_of['p95_s']:.1f} s, most {all_of['most_s']:.1f} s"
    )
    return "\n\n".join(blocks)
