"""Records of real trials, made small and committed with the verdicts they gave: every ``tox`` judges them again.

``python -m tests.records RESULTS…`` makes them anew from sessions' results. It judges what is stored there, test by test, notes
which files of which records each test reads, takes for each experiment the test whose records are smallest, makes these small,
and keeps them only if they give the same verdicts. ``python -m tests.records`` alone judges the committed records anew and
keeps these verdicts: after a measure was changed on purpose.

    judged/records/<trial-id>/   the small records
    judged/verdicts.json         how many runs each trial has; by session and test: its rows of verdicts.json

``--evidence docs/evidence/NAME`` keeps the records of all tests of one session instead, with the same two, and its
session.json beside them.
"""

from pathlib import Path

from lab import paths

FOLDER = paths.PROJECT / "tests" / "records" / "judged"
VERDICTS = "verdicts.json"
EVIDENCE = paths.PROJECT / "docs" / "evidence"


def folders() -> dict[str, Path]:
    """The folders of committed records, by name."""
    return {FOLDER.name: FOLDER} | {file.parent.name: file.parent for file in sorted(EVIDENCE.glob(f"*/{VERDICTS}"))}
