"""The main number of each test, and what it was in earlier sessions at the same scale. Pure.

Allure's history keeps a number by its key, one line a session. The key has the scale: at another one it is another number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lab.number_format import number
from lab.report.answers import Row, called, natural, title
from lab.report.tables import Table, kind

LOWER = ("<", "<=")
NUMBER = re.compile(r"[0-9]+")
SHOWN = 6  # sessions beside each other
SPEED, SPEED_UNIT = "000 speed of the machine", "events/s"  # Allure orders by it: it comes before the experiments


@dataclass(frozen=True)
class Main:
    """The main number of a ``test``: that of its first claim with a number."""

    test: Mapping[str, Any]
    row: Row
    scale: str

    @property
    def key(self) -> str:
        """What it is called in the history.

        Allure orders by it, letter by letter: so a number in it has as many digits as any other, and 10 comes after 3.
        """
        return NUMBER.sub(lambda found: found[0].zfill(3), f"{self.test['id']}: {self.row['objective']} ({self.scale})")

    def metric(self, place: int, start: int, stop: int) -> dict[str, Any]:
        """The number as Allure reads it; the test ran from ``start`` to ``stop``, in epoch milliseconds."""
        better = "lower" if self.row["operator"] in LOWER else "higher"
        unit = f" ({self.row['unit']})" if self.row["unit"] else ""  # Allure has no room for one of several words
        named = {"title": f"{title(self.test)}: {self.row['objective']}{unit}", "better": better}
        group = called(self.test)
        moments = {"start": start, "stop": stop}
        return {"id": f"main-{place}", "key": self.key, "value": self.row["measured"], "group": group, **named, **moments}


def main_numbers(content: Mapping[str, Any]) -> list[Main]:
    """The main number of each test of a session.json's ``content`` that has one, in the natural order of experiments."""
    scale = str(content["head"].get("scale", "")).partition(":")[0]
    found: list[Main] = []
    for test in sorted(content["tests"], key=lambda one: natural(one["experiment"])):
        claims = (row for row in test["rows"] if row["measured"] is not None and kind(row) == "claim")
        found += [Main(test, row, scale) for row in list(claims)[:1]]
    return found


def speed_metric(content: Mapping[str, Any], start: int, stop: int) -> list[dict[str, Any]]:
    """The machine's speed as Allure reads a number, of a session from ``start`` to ``stop``; none where it is not known."""
    if content.get("speed") is None:
        return []
    named = {"title": f"speed of the machine ({SPEED_UNIT})", "better": "higher", "group": "The machine"}
    return [{"id": "machine-speed", "key": SPEED, "value": content["speed"], "start": start, "stop": stop, **named}]


def trend(content: Mapping[str, Any], history: Sequence[str]) -> Table | None:
    """The main numbers of the session and of earlier ones, the newest last; None where no earlier session has any of them.

    ``history`` are the lines of history.jsonl, of which the last is the session's own.
    """
    mains = main_numbers(content)
    sessions = [json.loads(line) for line in history]
    known = [one for one in sessions[:-1] if any(main.key in one.get("metrics", {}) for main in mains)][1 - SHOWN :]
    if not known:
        return None
    head = ["experiment", "number", "unit", *(_when(one["timestamp"]) for one in known), "now"]
    speeds = [*(one.get("metrics", {}).get(SPEED) for one in known), content.get("speed")]
    rows = [["The machine", "speed of the machine", SPEED_UNIT, *map(number, speeds)]] if any(speeds) else []
    rows += [
        [
            called(main.test),
            f"{title(main.test)}: {main.row['objective']}",
            str(main.row["unit"]),
            *(number(one.get("metrics", {}).get(main.key)) for one in known),
            number(main.row["measured"]),
        ]
        for main in mains
    ]
    return Table(head, rows, frozenset(range(3, len(head))))


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
