"""The archive's sessions judged again: a test says what its session said, or what is known that it says by today's measures.

A measure that is defined anew gives other numbers of the same record. For each test of which that is so the file KNOWN has a
checksum of what it says now, so that a night is red where it says anything else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lab.archive.repository import Repository
from lab.errors import BREACHED, HELD
from lab.measure.fault_tally import together
from lab.record.store import write_json
from tests.records import VERDICTS
from tests.records.sessions import Said, differences, judge

KNOWN = Path(__file__).with_name("known.json")
BROKEN = "no verdict"  # of a test that does not come to its end, or is no more
SAID = ("why", "operator", "bound", "unit", "verdict", "measured")

Verdicts = Mapping[str, Sequence[Mapping[str, Any]]]  # the rows of each test


def judge_archive(repository: Repository, names: Sequence[str], *, accept: bool = False, file: Path = KNOWN) -> int:
    """Judge the sessions ``names`` again, or all; returns 1 where a test differs from its session and from ``file``.

    Of all sessions the faults are counted again, too. With ``accept`` what they say now is written into ``file``.
    """
    known: dict[str, dict[str, str]] = json.loads(file.read_text())
    wrong = 0
    asked, names = names, list(names) or list(repository.lock.sessions)
    for place, name in enumerate(names, 1):
        folder = repository.fetch(name)
        stored = json.loads((folder / VERDICTS).read_text())
        lines = by_test(stored["sessions"], folder, stored["repeat"])
        found = {test: checksum for test, (checksum, _) in lines.items()}
        before = known.get(name, {})
        other = sorted(test for test in before.keys() | found.keys() if before.get(test) != found.get(test))
        text = [line for test in other for line in lines.get(test, ("", [f"{test}: as its session said, not as known"]))[1]]
        known[name] = found
        wrong += len(other)
        rest = f", {len(before)} tests by today's measures" if before else ""
        print(
            f"{place} of {len(names)} {name}: {f'{len(other)} differ' if other else 'as known'}{rest}",
            *text,
            sep="\n  ",
            flush=True,
        )
    for name in [] if asked else repository.lock.faults:
        differing = miscounted(repository, name)
        wrong += len(differing)
        print(f"faults of {name}: {'; '.join(differing) or 'as counted'}", flush=True)
    if accept:
        write_json(file, {name: tests for name, tests in sorted(known.items()) if tests})
    return BREACHED if wrong and not accept else HELD


def miscounted(repository: Repository, name: str) -> list[str]:
    """How the tally of session ``name`` differs from the sum of its trials' heads; nothing for one without any."""
    if not (heads := repository.heads(name)):
        return []
    entry, found = repository.lock.faults[name], together(head["tally"] for head in heads)
    struck = sum(bool(one["injection"]) and not one["skipped"] for head in heads for one in head["trial"]["faults"])
    lines = [f"{key} is {value}, locked as {entry[key]}" for key, value in found.items() if entry[key] != value]
    return lines + ([f"{struck} struck by the heads"] if struck != found["injections"] else [])


def by_test(sessions: Mapping[str, Verdicts], folder: Path, repeat: int) -> dict[str, tuple[str, list[str]]]:
    """Of each test that says something else of the records in ``folder`` now: a checksum of it, and a line for each verdict."""
    found = {}
    for session, rows in sessions.items():
        now = judge(session, folder, list(rows), repeat) if rows else {}
        for test, own in rows.items():
            if lines := differences({test: own}, now):
                found[test] = checksum(now.get(test)), lines
    return found


def judged_otherwise(sessions: Mapping[str, Verdicts], folder: Path, repeat: int) -> list[str]:
    """A line for each verdict of ``sessions`` that differs from what the records in ``folder`` give now."""
    return [line for _, lines in by_test(sessions, folder, repeat).values() for line in lines]


def checksum(said: Said | None) -> str:
    """The beginning of the SHA-256 of what a test says, its numbers to six digits."""
    if said is None or not said.whole:
        return BROKEN
    rows = [[f"{row[name]:.6g}" if isinstance(row[name], float) else row[name] for name in SAID] for row in said.rows]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]
