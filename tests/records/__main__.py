"""``python -m tests.records [RESULTS …]``: keep small records of these sessions, or judge the kept ones anew."""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.errors import FAULT, HELD, InputError, LabFault
from lab.flags import Flags
from lab.record import store
from lab.record.store import write_json
from tests.records import FOLDER, VERDICTS
from tests.records.choice import choose
from tests.records.compact import compact, size
from tests.records.nested import SESSIONS, Said, differences, judge

LARGE = 300_000


def main(arguments: list[str] | None = None) -> int:
    """Returns 0, 2 on bad input, 3 where small records give other verdicts than whole ones, or no session can be run."""
    parser = Flags("python -m tests.records", "keep small records of sessions, with the verdicts they give", environment=False)
    parser.add_argument("results", nargs="*", type=Path, help="sessions' results; none: judge the kept records anew")
    options = parser.parse_args(arguments)
    try:
        keep(options.results) if options.results else again()
    except (InputError, LabFault) as error:
        print(f"tests.records: {error}", file=sys.stderr)
        return FAULT if isinstance(error, LabFault) else 2
    return HELD


def keep(results: list[Path]) -> None:
    """Put small records of ``results`` and their verdicts in the place of those that are kept."""
    with tempfile.TemporaryDirectory(prefix="elastic-lab-records-") as scratch:
        whole, small = Path(scratch, "whole"), Path(scratch, "small")
        for folder in (whole, small):
            (folder / "records").mkdir(parents=True)
        for folder in results:
            if not (there := store.stored(folder)):
                raise InputError(folder, "RESULTS", str(folder), "a folder of records")
            for name, path in there.items():
                (whole / "records" / name).unlink(missing_ok=True)  # the last one that is named counts
                (whole / "records" / name).symlink_to(path.resolve())
        said = {session: judgeable(judge(session, whole)) for session in SESSIONS}
        sizes = _shrink(said, whole / "records", small / "records")
        chosen = choose({test: set(one.trials) for tests in said.values() for test, one in tests.items()}, sizes)
        kept = {session: {test: tests[test].rows for test in chosen.tests if test in tests} for session, tests in said.items()}
        for spare in (small / "records").iterdir():
            if spare.name not in chosen.records:
                shutil.rmtree(spare)
        wrong = [
            line for session, rows in kept.items() if rows for line in differences(rows, judge(session, small, list(rows)))
        ]
        if wrong:
            raise LabFault(f"the small records don't give the same verdicts: {'; '.join(wrong)}")
        write_json(small / VERDICTS, {"sessions": kept})
        shutil.rmtree(FOLDER, ignore_errors=True)
        shutil.copytree(small, FOLDER)
    for module, why in chosen.without.items():
        print(f"left out: {module}: {why}")
    for name in sorted(chosen.records):
        print(f"{sizes[name]:>9,} bytes{' (large)' if sizes[name] > LARGE else ''}  {name}")
    count = sum(len(rows) for tests in kept.values() for rows in tests.values())
    print(f"{size(FOLDER):>9,} bytes in all: {count} verdicts of {sum(map(len, kept.values()))} tests in {FOLDER}")


def again() -> None:
    """Judge the kept records anew, and keep these verdicts."""
    stored = json.loads((FOLDER / VERDICTS).read_text())
    for session, tests in stored["sessions"].items():
        if tests:
            now = judge(session, FOLDER, list(tests))
            for line in differences(tests, now):
                print(line)
            stored["sessions"][session] = {test: now[test].rows for test in tests if now[test].whole}
    write_json(FOLDER / VERDICTS, stored)


def judgeable(said: Mapping[str, Said]) -> dict[str, Said]:
    """The tests that came to their end and judged records."""
    return {test: one for test, one in said.items() if one.whole and one.rows and one.trials}


def _shrink(said: Mapping[str, Mapping[str, Said]], whole: Path, small: Path) -> dict[str, int]:
    """Make every record small, with the files that any of its tests reads; returns the bytes of each."""
    files: dict[str, set[str]] = {}
    for tests in said.values():
        for one in tests.values():
            for name, read in one.trials.items():
                files.setdefault(name, set()).update(read)
    return {name: compact(whole / name, small / name, read) for name, read in files.items()}


if __name__ == "__main__":
    sys.exit(main())
