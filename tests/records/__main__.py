"""``python -m tests.records``: keep small records of sessions, or judge kept ones and those of the archive again."""

from __future__ import annotations

import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from lab.archive.repository import Repository
from lab.errors import FAULT, HELD, InputError, LabFault
from lab.flags import Flags
from lab.record import store
from lab.record.store import write_json
from lab.report import session as sessions
from tests.records import FOLDER, VERDICTS
from tests.records.archive import KNOWN, judge_archive, judged_otherwise
from tests.records.choice import MOST_BYTES, Choice, choose
from tests.records.compact import compact, size
from tests.records.sessions import SESSIONS, Said, differences, judge, kind

LARGE = 300_000
MOST_EVIDENCE = 60_000_000  # three trials of an hour at the full rate
# What no claim reads, and a reader of a record asks for: the load by which it is valid, the HPA's syncs, the live board.
BESIDE = {"load.parquet", "hpa.log", store.BOARD}


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, 1 where the archive gives other verdicts, 2 on bad input, 3 where small records do or no session runs."""
    parser = Flags("python -m tests.records", "keep small records of sessions, with the verdicts they give", environment=False)
    parser.add_argument("results", nargs="*", type=Path, help="sessions' results; none: judge the kept records anew")
    parser.flag("to", Path, None, "keep all records of one session there, for the archive", optional=True)
    text = "judge these sessions of the archive again, without names all of them, and name each test that differs"
    parser.add_argument("--archive", nargs="*", metavar="NAME", help=text)
    text = f"with --archive: what the tests say now is known from now on ({KNOWN.name})"
    parser.add_argument("--accept", action="store_true", help=text)
    options = parser.parse_args(arguments)
    try:
        if options.archive is not None:
            return judge_archive(Repository(), options.archive, accept=options.accept)
        if options.to:
            keep_session(options.results, options.to)
        elif options.results:
            keep(options.results, FOLDER, list(SESSIONS), MOST_BYTES)
        else:
            again()
    except (InputError, LabFault) as error:
        print(f"tests.records: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else 2
    return HELD


def keep_session(results: Sequence[Path], folder: Path) -> None:
    """Put small records of all tests of the one session in ``results``, and their verdicts, into ``folder``."""
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
    keep(results, folder, [session], MOST_EVIDENCE, whole=tests, repeat=content.head.runs)
    leave_out(content, folder)


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
    results: Sequence[Path], target: Path, sessions: Sequence[str], most: int, *, whole: Sequence[str] = (), repeat: int = 1
) -> None:
    """Put small records of ``results`` and their verdicts in the place of those in ``target``: at most so many bytes.

    Of the tests of these ``sessions`` the cheapest of each experiment and scenario are kept, or all of ``whole``. Each trial
    has ``repeat`` records. Raises :class:`LabFault` where the small records give other verdicts, or all of them are larger than
    that.
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
        judged = {session: judge(session, large, whole, repeat) for session in sessions}
        # The tests that came to their end and judged records.
        said = {
            session: {test: one for test, one in tests.items() if one.whole and one.rows and one.trials}
            for session, tests in judged.items()
        }
        read = files_read(said)
        for files in read.values() if whole else ():
            files.update(BESIDE)
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
        if wrong := judged_otherwise(kept, small, repeat):
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
    stored = json.loads((FOLDER / VERDICTS).read_text())
    for session, tests in stored["sessions"].items():
        if tests:
            now = judge(session, FOLDER, list(tests), stored["repeat"])
            for line in differences(tests, now):
                print(line)
            stored["sessions"][session] = {test: now[test].rows for test in tests if now[test].whole}
    write_json(FOLDER / VERDICTS, stored)


def files_read(said: Mapping[str, Mapping[str, Said]]) -> dict[str, set[str]]:
    """The files of each record that any test of the sessions reads."""
    files: dict[str, set[str]] = {}
    for one in itertools.chain.from_iterable(tests.values() for tests in said.values()):
        for name, read in one.trials.items():
            files.setdefault(name, set()).update(read)
    return files


if __name__ == "__main__":
    sys.exit(main())
