"""``python -m tests.records [RESULTS …]``: keep small records of these sessions, or judge the kept ones anew."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict, replace
from pathlib import Path

from lab.errors import FAULT, HELD, InputError, LabFault
from lab.flags import Flags
from lab.record import store
from lab.record.store import write_json
from lab.report import session as sessions
from tests.records import FOLDER, VERDICTS, folders
from tests.records.choice import MOST_BYTES, Choice, choose
from tests.records.compact import compact, size
from tests.records.nested import SESSIONS, Said, differences, judge, kind
from tests.records.plugin import LEDGER

LARGE = 300_000
MOST_EVIDENCE = 25_000_000
ROWS = frozenset({LEDGER, "receipts.parquet"})  # of the ledger: 10 of the 11 MB of an hour at real time


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, 2 on bad input, 3 where small records give other verdicts than whole ones, or no session can be run."""
    parser = Flags("python -m tests.records", "keep small records of sessions, with the verdicts they give", environment=False)
    parser.add_argument("results", nargs="*", type=Path, help="sessions' results; none: judge the kept records anew")
    parser.flag("evidence", Path, None, "keep all records of one session there", optional=True)
    text = "keep evidence without the ledger's events and receipts, where no verdict needs them"
    parser.add_argument("--without-rows", action="store_true", help=text)
    options = parser.parse_args(arguments)
    try:
        if options.evidence:
            publish(options.results, options.evidence, ROWS if options.without_rows else frozenset())
        elif options.results:
            keep(options.results, FOLDER, list(SESSIONS), MOST_BYTES)
        else:
            again()
    except (InputError, LabFault) as error:
        print(f"tests.records: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else 2
    return HELD


def publish(results: Sequence[Path], folder: Path, without: Set[str] = frozenset()) -> None:
    """Put small records of all tests of the one session in ``results`` into ``folder``, and its session.json beside them.

    The files ``without`` are left out of the records.
    """
    if len(results) != 1:
        raise InputError("command line", "RESULTS", len(results), "one session: its records are one folder")
    content = sessions.read(results[0])
    if content is None:
        raise InputError(results[0], sessions.FILE, "no file", "results of a session that came to its end, or was judged again")
    tests = [test.id for test in content.tests if test.rows]  # a test without a verdict has no record
    scale = content.head.scale
    if (session := kind(tests, scale, content.head.runtime)) is None:
        paths = ", ".join(f"{path} ({' '.join(options)})" for options, path in SESSIONS.values())
        raise InputError(results[0], "tests", f"{tests[0]} at {scale}", f"tests of one of {paths}")
    keep(results, folder, [session], MOST_EVIDENCE, whole=tests, repeat=content.head.runs, without=without)
    leave_out(content, folder)
    replace(content, folders={name: f"records/{name}" for name in content.folders}).write(folder)


def leave_out(content: sessions.Session, folder: Path) -> None:
    """Leave a test out of the verdicts in ``folder`` that says something else by itself than in its session.

    Such a test judges all of the session's records. ``tox`` judges each test with its own records alone.
    """
    stored = json.loads((folder / VERDICTS).read_text())
    said = {test.id: Said([asdict(row) for row in test.rows], {}, whole=True) for test in content.tests}
    for tests in stored["sessions"].values():
        for test in [test for test, rows in tests.items() if differences({test: rows}, said)]:
            print(f"not judged again, as it judges all of its session's records: {test}")
            del tests[test]
    write_json(folder / VERDICTS, stored)


def keep(
    results: Sequence[Path],
    target: Path,
    sessions: Sequence[str],
    most: int,
    *,
    whole: Sequence[str] = (),
    repeat: int = 1,
    without: Set[str] = frozenset(),
) -> None:
    """Put small records of ``results`` and their verdicts in the place of those in ``target``: at most so many bytes.

    Of the tests of these ``sessions`` the cheapest of each module are kept, or all of ``whole``. Each trial has ``repeat``
    records, which lack the files ``without``. Raises :class:`LabFault` where the small records give other verdicts, or all of
    them are larger than that.
    """
    with tempfile.TemporaryDirectory(prefix="elastic-lab-records-") as scratch:
        large, small = Path(scratch, "whole"), Path(scratch, "small")
        for folder in (large, small):
            (folder / "records").mkdir(parents=True)
        for folder in results:
            if not (there := store.stored(folder)):
                raise InputError(folder, "RESULTS", str(folder), "a folder of records")
            for name, path in there.items():
                (large / "records" / name).unlink(missing_ok=True)  # the last one that is named counts
                (large / "records" / name).symlink_to(path.resolve())
        said = {session: judgeable(judge(session, large, whole, repeat)) for session in sessions}
        read = files_read(said, without)
        sizes = {name: compact(large / "records" / name, small / "records" / name, files) for name, files in read.items()}
        needs = {test: set(one.trials) for tests in said.values() for test, one in tests.items()}
        chosen = Choice(sorted(needs), set().union(*needs.values()), {}) if whole else choose(needs, sizes, most)
        if (total := sum(sizes[name] for name in chosen.records)) > most:
            raise LabFault(f"the small records are {total:,} bytes; allowed: {most:,}")
        kept = {session: {test: tests[test].rows for test in chosen.tests if test in tests} for session, tests in said.items()}
        for spare in (small / "records").iterdir():
            if spare.name not in chosen.records:
                shutil.rmtree(spare)
        if whole and not any(kept.values()):
            raise LabFault(f"none of {len(whole)} tests comes to its end from its records alone")
        wrong = [
            line
            for session, rows in kept.items()
            if rows
            for line in differences(rows, judge(session, small, list(rows), repeat))
        ]
        if wrong:
            raise LabFault(f"the small records don't give the same verdicts: {'; '.join(wrong)}")
        write_json(small / VERDICTS, {"repeat": repeat, "sessions": kept})
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(small, target)
    for module, why in chosen.without.items():
        print(f"left out: {module}: {why}")
    for name in sorted(chosen.records):
        print(f"{sizes[name]:>9,} bytes{' (large)' if sizes[name] > LARGE else ''}  {name}")
    count = sum(len(rows) for tests in kept.values() for rows in tests.values())
    print(f"{size(target):>9,} bytes in all: {count} verdicts of {sum(map(len, kept.values()))} tests in {target}")


def again() -> None:
    """Judge the kept records anew, and keep these verdicts."""
    for folder in folders().values():
        stored = json.loads((folder / VERDICTS).read_text())
        for session, tests in stored["sessions"].items():
            if tests:
                now = judge(session, folder, list(tests), stored["repeat"])
                for line in differences(tests, now):
                    print(line)
                stored["sessions"][session] = {test: now[test].rows for test in tests if now[test].whole}
        write_json(folder / VERDICTS, stored)


def judgeable(said: Mapping[str, Said]) -> dict[str, Said]:
    """The tests that came to their end and judged records."""
    return {test: one for test, one in said.items() if one.whole and one.rows and one.trials}


def files_read(said: Mapping[str, Mapping[str, Said]], without: Set[str] = frozenset()) -> dict[str, set[str]]:
    """The files of each record that any test of the sessions reads, but those ``without``."""
    files: dict[str, set[str]] = {}
    for one in itertools.chain.from_iterable(tests.values() for tests in said.values()):
        for name, read in one.trials.items():
            files.setdefault(name, set()).update(set(read) - without)
    return files


if __name__ == "__main__":
    sys.exit(main())
