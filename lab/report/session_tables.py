"""Further tables of a session: the gates of its trials, where its time went, and trials that were begun more than once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from lab.judge import gates
from lab.judge.claim import Verdict
from lab.measure.validity import judge_validity
from lab.number_format import number
from lab.record import store
from lab.record import trial as trials
from lab.record.store import Record
from lab.record.trial import Trial
from lab.report.tables import Cell, Table
from lab.report.verdict_text import word_cell

PARTS = ("before", "preparing", "settling", "driving", "draining", "closing", "ledger")
ATTEMPTS = ("record", "attempt", "how it ended", "parts it lacks", "validity")


def gate_table(found: Mapping[str, Sequence[Verdict]]) -> Table:
    """A row for each gate, and a column for each trial of ``found``, which has the verdicts on its gates by its name."""
    head = ["gate", *found, "at most", "unit", "source"]
    rows: list[list[str | Cell]] = [["validity", *(word_cell(gates.word(each)) for each in found.values()), "", "", ""]]
    for several in zip(*found.values(), strict=True):
        one = several[0]
        rows.append([one.objective, *(number(gate.measured) for gate in several), number(one.bound), one.unit, one.source])
    return Table(head, rows, frozenset(range(1, len(found) + 2)))


@dataclass(frozen=True)
class Run:
    """A trial or both sides of a duet; ``parts`` has the seconds of each of PARTS, ``before`` those since the run before."""

    name: str
    parts: dict[str, float]
    finished: float


def runs(session: Iterable[Trial]) -> list[Run]:
    """The runs of a ``session`` in order. Trials that overlap are the sides of one run; one that never ended is left out."""
    found: list[Run] = []
    for one in sorted((one for one in session if one.finished and "ended" in one.times), key=lambda one: one.begun):
        finished, ledger_s = one.finished or 0.0, one.ledger_s or 0.0
        if found and one.begun < found[-1].finished:
            last = found.pop()
            more = max(0.0, finished - last.finished)
            ledger_s = min(more, ledger_s)
            added = {"closing": more - ledger_s, "ledger": ledger_s}
            parts = {name: seconds + added.get(name, 0.0) for name, seconds in last.parts.items()}
            found.append(Run(f"{last.name} and {one.id}", parts, last.finished + more))
            continue
        ended = one.times["ended"]
        moments = [found[-1].finished if found else one.begun, one.begun]
        moments += [one.times.get(name, ended) for name in ("settling", "driving", "draining", "ended")]
        lengths = [after - before for before, after in pairwise(moments)]
        lengths += [max(0.0, finished - ended - ledger_s), ledger_s]
        found.append(Run(one.id, dict(zip(PARTS, lengths, strict=True)), finished))
    return found


def duration_table(session: Sequence[Run]) -> Table:
    """A row for each run of a ``session`` with the seconds of its parts, then their sums and shares."""
    rows = []
    for one in session:
        rows.append([one.name, *(_round(seconds, 1) for seconds in (*one.parts.values(), sum(one.parts.values())))])
    sums = [sum(one.parts[part] for one in session) for part in PARTS]
    if whole := sum(sums):
        rows.append(["all runs", *(_round(part) for part in (*sums, whole))])
        rows.append(["share", *(f"{part / whole:.0%}".replace("%", " %") for part in (*sums, whole))])
    return Table(("run", *PARTS, "in all"), rows, frozenset(range(1, len(PARTS) + 2)))


def _round(seconds: float, digits: int = 0) -> str:
    return number(round(seconds, digits))


def attempt_table(results: Path) -> Table:
    """A row for each attempt under ``results`` at each trial that was begun more than once, in order."""
    rows = []
    for identity in sorted({trials.read(folder).id for folder in store.stored(results).values()}):
        tried = store.attempts(results, identity)
        for attempt, folder in tried.items() if len(tried) > 1 else ():
            trial, found = trials.read(folder), judge_validity(Record(folder))
            validity = ": ".join(filter(None, [gates.word(found), gates.reason(found)]))
            rows.append([folder.name, str(attempt), trial.ended, ", ".join(trial.missing) or "none", validity])
    return Table(ATTEMPTS, rows, frozenset({ATTEMPTS.index("attempt")}))


def other_attempts(record: Record) -> Iterator[tuple[Path, str]]:
    """(folder, how it ended) of each other attempt at the trial of ``record``."""
    for folder in store.attempts(record.folder.parent, record.id).values():
        if folder.name != record.folder.name:
            yield folder, trials.read(folder).ended
