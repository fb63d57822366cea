"""Change points: the main numbers of sessions as one series, and where Apache Otava sees that they changed.

``elastic-lab report`` adds a line to series.jsonl and shows changes.json, which ``python -m lab.report.changes`` writes. That
runs in an environment of Otava alone, because Otava pins numpy: it imports nothing else but the standard library.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from lab import wholefile
from lab.judge.claim import INVALID
from lab.number_format import number
from lab.report.session import Section, Session
from lab.report.tables import Table
from lab.report.trend import main_numbers

SERIES, FILE = "series.jsonl", "changes.json"
SCHEMA: Final = 1
P_VALUE, MAGNITUDE = 0.0001, 0.05  # benchmarks/change_points.py counts what they miss
WINDOW = 50  # sessions that Otava looks at together
FEWEST = 10  # sessions that have a number before it is judged
CONFIRMED = 3  # sessions from the change on: one outlier at the end looks like a change
TITLE = "Changes over the sessions"
HEAD = ("since", "first commit", "last commit before", "number", "unit", "before", "after", "change", "sessions since")


@dataclass(frozen=True)
class Change:
    """A change of the ``number`` of that key, seen first on the day ``date`` at ``commit``; ``before`` and ``after`` are means.

    ``commit_before`` is that of the session before it, ``sessions`` counts those since, ``p_value`` is Otava's.
    """

    number: str
    date: str
    commit: str
    commit_before: str
    before: float
    after: float
    sessions: int
    p_value: float


@dataclass(frozen=True)
class Changes:
    """The confirmed changes among ``sessions`` sessions, the newest first; ``judged`` counts the numbers that were judged."""

    schema: Literal[1] = SCHEMA
    sessions: int = 0
    judged: int = 0
    changes: list[Change] = field(default_factory=list)


def keep(results: Path, session: Session, mark: str) -> None:
    """Add the main numbers of a ``session`` to series.jsonl in ``results``; the same ``mark`` replaces the last line.

    A number of an invalid trial is left out, and one that is not finite. A session without any leaves no line.
    """
    file = results / SERIES
    lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
    if lines and json.loads(lines[-1])["results"] == mark:
        lines.pop()
    rows = {main.key: main.row for main in main_numbers(session) if main.row.verdict != INVALID}
    numbers = {key: row.measured for key, row in rows.items() if row.measured is not None and math.isfinite(row.measured)}
    if numbers:
        head = {"date": session.head.date, "commit": session.head.commit, "results": mark}
        lines.append(json.dumps({**head, "speed": session.speed, "numbers": numbers}))
        wholefile.write(file, "\n".join(lines) + "\n")


def points(values: Sequence[float], p_value: float = P_VALUE, magnitude: float = MAGNITUDE) -> list[tuple[int, Any]]:
    """(place of the first value after it, Otava's statistics) of each change point of ``values``, in order."""
    from otava.analysis import compute_change_points

    found, _ = compute_change_points(list(values), window_len=WINDOW, max_pvalue=p_value, min_magnitude=magnitude)
    return [(int(point.index), point.stats) for point in found]


def judge(sessions: Sequence[Mapping[str, Any]]) -> Changes:
    """The confirmed changes of each number of ``sessions``, the lines of series.jsonl; a session may lack a number."""
    names = dict.fromkeys(name for session in sessions for name in session["numbers"])
    having = {name: [session for session in sessions if name in session["numbers"]] for name in names}
    judged = {name: several for name, several in having.items() if len(several) >= FEWEST}
    found: list[Change] = []
    for name, several in judged.items():
        for place, stats in points([session["numbers"][name] for session in several]):
            first, last, since = several[place], several[place - 1], len(several) - place
            means = float(stats.mean_1), float(stats.mean_2)
            if since >= CONFIRMED:
                change = Change(name, first["date"], first["commit"], last["commit"], *means, since, float(stats.pvalue))
                found.append(change)
    found.sort(key=lambda change: change.date, reverse=True)
    return Changes(sessions=len(sessions), judged=len(judged), changes=found)


def section(results: Path, session: Session) -> list[Section]:
    """The changes in ``results`` as a section of the page of ``session``, whose words name the numbers; none without the file.

    Raises :class:`InputError` for a changes.json of other content.
    """
    from lab import validation  # whoever judges has no pydantic

    file = results / FILE
    if not file.is_file():
        return []
    found = validation.read_file(Changes, file, SCHEMA, "judge the series again")
    words = {main.key: (f"{main.test.name}: {main.row.objective}", main.row.unit) for main in main_numbers(session)}
    rows = []
    for one in found.changes:
        change = f"{one.after / one.before - 1:+.0%}".replace("%", " %") if one.before else "n/a"
        means = [number(one.before), number(one.after), change, str(one.sessions)]
        rows.append([one.date, one.commit, one.commit_before, *words.get(one.number, (one.number, "")), *means])
    told = f"{found.judged} numbers of {found.sessions} sessions were judged by Apache Otava; one needs {FEWEST} sessions."
    shown = f"A change is shown when it is {MAGNITUDE:.0%} or more, p < {P_VALUE:g}, and {CONFIRMED} sessions have it."
    counted = f"{len(rows)} changed." if rows else "None changed." if found.judged else "So there is no data yet."
    return [Section(TITLE, f"{told} {shown.replace('%', ' %')} {counted}", Table(HEAD, rows, frozenset(range(5, 9))))]


def main(series: Path) -> None:
    """Judge ``series``, write changes.json beside it, and print each change."""
    if not series.is_file():
        print(f"no data: there is no {series}")
        return
    found = judge([json.loads(line) for line in series.read_text(encoding="utf-8").splitlines()])
    wholefile.write(series.with_name(FILE), json.dumps(asdict(found), indent=1) + "\n")
    print(f"{found.judged} numbers of {found.sessions} sessions judged: {len(found.changes)} changes")
    for one in found.changes:
        print(f"{one.date} {one.commit}: {one.number}: {number(one.before)} -> {number(one.after)}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
