"""The main number of each test, and what it was in earlier sessions of the same trials, by Allure's history. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lab.number_format import number
from lab.report.session import Case, Row, Session
from lab.report.tables import Table
from lab.report.verdict_text import natural

LOWER = ("<", "<=")
NUMBER = re.compile(r"[0-9]+")
ATTEMPT = re.compile(r"\.[0-9]+$")  # of a record's name; the rest is the identity of its trial
SHOWN = 6  # sessions beside each other
SPEED, SPEED_UNIT = "000 speed of the machine", "events/s"  # Allure orders by it: it comes before the experiments


@dataclass(frozen=True)
class Main:
    """The main number of a ``test``: that of its first claim with a number."""

    test: Case
    row: Row
    scale: str

    @property
    def key(self) -> str:
        """Its name in the history, with its scale and what ran. Allure orders by its letters, so numbers have three digits."""
        named = NUMBER.sub(lambda found: found[0].zfill(3), f"{self.test.id}: {self.row.objective} ({self.scale})")
        return f"{named} {self._ran}"

    @property
    def _ran(self) -> str:
        """A hash of all inputs of its trials, by the names of their records; how often each was run is no part of it."""
        first = [ATTEMPT.sub("", name) for name in self.row.trials[:: self.row.runs]]
        return hashlib.sha256("\n".join(first).encode()).hexdigest()[:8]

    def metric(self, place: int, start: int, stop: int) -> dict[str, Any]:
        """The number as Allure reads it; the test ran from ``start`` to ``stop``, in epoch milliseconds."""
        better = "lower" if self.row.operator in LOWER else "higher"
        unit = f" ({self.row.unit})" if self.row.unit else ""  # Allure has no room for one of several words
        named = {"title": f"{self.test.name}: {self.row.objective}{unit}", "better": better}
        named |= {"id": f"main-{place}", "key": self.key, "group": self.test.called}
        return {**named, "value": self.row.measured, "start": start, "stop": stop}


def main_numbers(session: Session) -> list[Main]:
    """The main number of each test of a ``session`` that has one, in the natural order of experiments."""
    found: list[Main] = []
    for test in sorted(session.tests, key=lambda one: natural(one.experiment)):
        claims = (row for row in test.rows if row.measured is not None and row.kind == "claim")
        found += [Main(test, row, session.head.scale_name) for row in list(claims)[:1]]
    return found


def speed_metric(session: Session, start: int, stop: int) -> list[dict[str, Any]]:
    """The machine's speed as Allure reads a number, of a session from ``start`` to ``stop``; none where it is not known."""
    if session.speed is None:
        return []
    named = {"title": f"speed of the machine ({SPEED_UNIT})", "better": "higher", "group": "The machine"}
    return [{"id": "machine-speed", "key": SPEED, "value": session.speed, "start": start, "stop": stop, **named}]


def trend(session: Session, history: Sequence[str]) -> Table | None:
    """The main numbers of the session and of earlier ones, the newest last; None where no earlier session has any of them.

    ``history`` are the lines of history.jsonl, the last of which is the session's own.
    """
    mains = main_numbers(session)
    sessions = [json.loads(line) for line in history]
    known = [one for one in sessions[:-1] if any(main.key in one.get("metrics", {}) for main in mains)][1 - SHOWN :]
    if not known:
        return None
    head = ["experiment", "number", "unit", *(_when(one["timestamp"]) for one in known), "now"]
    speeds = [*(one.get("metrics", {}).get(SPEED) for one in known), session.speed]
    rows = [["The machine", "speed of the machine", SPEED_UNIT, *map(number, speeds)]] if any(speeds) else []
    for main in mains:
        numbers = [*(one.get("metrics", {}).get(main.key) for one in known), main.row.measured]
        name = f"{main.test.name}: {main.row.objective}"
        rows.append([main.test.called, name, main.row.unit, *map(number, numbers)])
    return Table(head, rows, frozenset(range(3, len(head))))


def is_session(line: str) -> bool:
    """Whether a line of history.jsonl is a session's: an object with its time (ms), its tests, and its numbers by name."""
    try:
        one = json.loads(line)
        _when(one["timestamp"])
        numbers = one.get("metrics", {}).values()
        return isinstance(one["testResults"], dict) and all(isinstance(value, int | float) for value in numbers)
    except (AttributeError, KeyError, OSError, OverflowError, TypeError, ValueError):
        return False


def _when(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M")
