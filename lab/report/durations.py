"""Where the time of a session went: how long each run's parts took, and what lay between two runs. Pure, but for its command.

python -m lab.report.durations results
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.number_format import number
from lab.record import store
from lab.record import trial as trials
from lab.record.trial import Trial
from lab.report.tables import Table

PARTS = ("before", "preparing", "settling", "driving", "draining", "closing", "ledger")
HEAD = ("run", *PARTS, "in all")
TOTAL, SHARE = "all runs", "share"


@dataclass(frozen=True)
class Run:
    """A trial or both sides of a duet, by ``name``; ``parts`` has the seconds of each of PARTS.

    ``before`` is what the session did since the run before: it judged, drew charts, and started what the first trial needs.
    """

    name: str
    parts: dict[str, float]
    finished: float

    @property
    def total_s(self) -> float:
        """How long the run took, with what lay before it."""
        return sum(self.parts.values())


def runs(session: Iterable[Trial]) -> list[Run]:
    """The runs of a ``session`` in order. Trials that overlap are the sides of one run; one that never ended is left out."""
    found: list[Run] = []
    for one in sorted((one for one in session if one.finished and "ended" in one.times), key=lambda one: one.begun):
        if found and one.begun < found[-1].finished:
            last = found.pop()
            more = max(0.0, (one.finished or 0.0) - last.finished)
            ledger_s = min(more, one.ledger_s or 0.0)
            added = {"closing": more - ledger_s, "ledger": ledger_s}
            parts = {name: seconds + added.get(name, 0.0) for name, seconds in last.parts.items()}
            found.append(Run(f"{last.name} and {one.id}", parts, last.finished + more))
        else:
            found.append(Run(one.id, _parts(one, found[-1].finished if found else one.begun), one.finished or 0.0))
    return found


def _parts(one: Trial, since: float) -> dict[str, float]:
    """The seconds of each part of a finished trial, which began when the run before had ended ``since`` then."""
    times, ended, ledger_s = one.times, one.times["ended"], one.ledger_s or 0.0
    settling = times.get("settling", ended)
    driving = times.get("driving", ended)
    draining = times.get("draining", ended)
    closed = max(0.0, (one.finished or ended) - ended - ledger_s)
    lengths = (
        one.begun - since,
        settling - one.begun,
        driving - settling,
        draining - driving,
        ended - draining,
        closed,
        ledger_s,
    )
    return dict(zip(PARTS, lengths, strict=True))


def duration_table(session: Sequence[Run]) -> Table:
    """A row for each run of a ``session`` with the seconds of its parts, then their sums and shares."""
    rows = [
        [one.name, *(number(round(one.parts[part], 1)) for part in PARTS), number(round(one.total_s, 1))] for one in session
    ]
    sums = [sum(one.parts[part] for one in session) for part in PARTS]
    if whole := sum(sums):
        rows.append([TOTAL, *(number(round(part)) for part in (*sums, whole))])
        rows.append([SHARE, *(f"{part / whole:.0%}".replace("%", " %") for part in (*sums, whole))])
    return Table(HEAD, rows, frozenset(range(1, len(HEAD))))


if __name__ == "__main__":
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "results")
    print(duration_table(runs(trials.read(record) for record in store.stored(folder).values())).markdown)
