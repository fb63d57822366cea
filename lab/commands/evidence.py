"""``elastic-lab evidence``: the archive of sessions, whose records are in the repository's history."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lab import paths
from lab.archive import table
from lab.archive.repository import Repository
from lab.errors import InputError, LabFault
from lab.flags import Flags

JUDGE_S = 3600  # the longest that judging a session again, test by test, may take


def add_flags(parser: Flags) -> None:
    """Add the flags of the command."""
    text = "a clone of the lab's repository [default: this one]"
    parser.add_argument("--repository", type=Path, default=paths.PROJECT, help=text)
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list", help="the sessions, with their dates, sizes and verdicts", environment=False)
    taken = actions.add_parser(
        "fetch", help="a session's records and verdicts, out of its commit and checked", environment=False
    )
    taken.add_argument("name", help="the session")
    taken.add_argument("--output", type=Path, help="an empty or new folder [default: one in the cache]")
    added = actions.add_parser(
        "add", help="commit a session's records, lock them, and remove them in the next commit", environment=False
    )
    added.add_argument("results", type=Path, help="the results of a session")
    added.add_argument("name", help="the name it gets: the date, and what was asked")
    counted = actions.add_parser(
        "faults", help="count what the faults of a session did, and lock that with its trials' heads", environment=False
    )
    counted.add_argument("results", type=Path, help="the results of a session with faults")
    counted.add_argument("name", help="the name it gets: the date, and what was asked")


def run(options: Namespace) -> int:
    """List, fetch or add sessions; returns 0. Raises :class:`InputError` and :class:`LabFault` like :class:`Repository`."""
    repository = Repository(options.repository.resolve())
    if options.action == "list":
        print("\n".join(lines(repository)))
    elif options.action == "fetch":
        print(repository.fetch(options.name, options.output))
    elif options.action == "add":
        _add(repository, options.results, options.name)
    else:
        _count(repository, options.results, options.name)
    return 0


def lines(repository: Repository) -> list[str]:
    """A line for each session: its name, date, size, commit, and how many verdicts of each kind it has."""
    rows = table.read(repository.folder)
    found = []
    for name, entry in repository.lock.sessions.items():
        counts = Counter(row.verdict for row in rows if row.session == name)
        counted = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
        found.append(f"{name:<34} {entry.date}  {entry.bytes / 1e6:5.1f} MB  {entry.commit[:8]}  {counted}")
    return found


def _add(repository: Repository, results: Path, name: str) -> None:
    """Judge the session again test by test, which keeps what its tests read, and put that into the archive."""
    file = results / "session.json"
    if not file.is_file():
        raise InputError(results, "session.json", "no file", "the results of a session that came to its end")
    rows = table.rows(name, json.loads(file.read_text()))
    with tempfile.TemporaryDirectory(prefix="elastic-lab-evidence-") as scratch:
        small = Path(scratch, name)
        _judge(repository.root, results.resolve(), small)
        repository.add(small, name, rows)
    print(f"{name} is in the archive: elastic-lab evidence fetch {name}")


def _judge(root: Path, results: Path, target: Path) -> None:
    """Put the verdicts of ``results`` and what gives them again into ``target``, by the tests of the checkout at ``root``."""
    words = [sys.executable, "-m", "tests.records", str(results), "--to", str(target)]
    if subprocess.run(words, cwd=root, timeout=JUDGE_S).returncode:
        raise LabFault(f"{results} does not give its verdicts again: see above")


def _count(repository: Repository, results: Path, name: str) -> None:
    """Tally the faults of the valid finished trials in ``results``, and lock that as ``name``, with the heads of these trials.

    A record that its session, which was killed, had not closed is none of a finished trial. Raises :class:`InputError` without
    such a trial, and for one that another session has counted.
    """
    from lab.judge import gates  # what reads records takes a second to import
    from lab.measure.fault_tally import tally, together
    from lab.measure.validity import judge_validity
    from lab.record import store

    ended = [one for one in map(store.Record, store.stored(results).values()) if one.finished and one.trial.files]
    heads, invalid = list[dict[str, Any]](), 0
    for record in (store.opened(one.folder) for one in ended if one.inputs.faults):
        if gates.reason(judge_validity(record)):
            invalid += 1
        else:
            heads.append({"record": record.name, "trial": record.trial.to_json(), "tally": tally([record])})
        record.release()
    if not heads:
        raise InputError(results, "RESULTS", str(results), "the results of a session with finished, valid trials under faults")
    for other in repository.lock.faults.keys() - {name}:
        counted = {_trial(head) for head in repository.heads(other)}
        if twice := next((head["record"] for head in heads if _trial(head) in counted), None):
            raise InputError(results, "record", twice, f"a trial that is not counted yet: {other} has it")
    day = datetime.fromtimestamp(min(head["trial"]["begun"] for head in heads), UTC).date().isoformat()
    found = {"date": day, **together(head["tally"] for head in heads)}
    repository.add_faults(name, heads, found)
    counts = [f"{count:,} {what}" for what, count in found.items() if isinstance(count, int)]
    print(f"{name}: {', '.join([*counts, *([f'{invalid} invalid, not counted'] if invalid else [])])}")


def _trial(head: dict[str, Any]) -> tuple[str, float]:
    """The identity and the beginning (epoch s) of the trial of a ``head``: no two trials have both alike."""
    return head["trial"]["id"], head["trial"]["begun"]
