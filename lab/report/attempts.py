"""The attempts at a trial that was begun more than once: all of them stay in the session, and all are shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lab.judge import gates
from lab.measure.validity import judge_validity
from lab.record import store
from lab.record import trial as trials
from lab.record.store import Record
from lab.report.tables import Table

HEAD = ("record", "attempt", "how it ended", "parts it lacks", "validity")


def table(results: Path) -> Table:
    """A row for each attempt under ``results`` at each trial that was begun more than once, in order."""
    rows = []
    for identity in sorted({trials.read(folder).id for folder in store.stored(results).values()}):
        tried = store.attempts(results, identity)
        for number, folder in tried.items() if len(tried) > 1 else ():
            trial = trials.read(folder)
            rows.append([folder.name, str(number), trial.ended, ", ".join(trial.missing) or "none", _validity(folder)])
    return Table(HEAD, rows, frozenset({HEAD.index("attempt")}))


def _validity(folder: Path) -> str:
    """Whether the attempt in ``folder`` is valid, and the gates that it failed."""
    found = judge_validity(Record(folder))
    return ": ".join(filter(None, [gates.word(found), gates.reason(found)]))


def others(record: Record) -> Iterator[tuple[Path, str]]:
    """(folder, how it ended) of each other attempt at the trial of ``record``."""
    for folder in store.attempts(record.folder.parent, record.id).values():
        if folder.name != record.folder.name:
            yield folder, trials.read(folder).ended
