"""Records of real trials, made small and committed with the verdicts they gave: every ``tox`` judges them again.

``python -m tests.records RESULTS…`` makes them anew from sessions' results. It judges what is stored there, test by test, notes
which files of which records each test reads, takes for each experiment and scenario the test whose records are smallest, makes
these small, and keeps them only if they give the same verdicts. ``python -m tests.records`` alone judges the committed records
anew and keeps these verdicts: after a measure was changed on purpose.

    judged/records/<trial-id>/   the small records
    judged/verdicts.json         how many runs each trial has; by session and test: its rows of verdicts.json

``--to FOLDER`` keeps the records of all tests of one session there instead, as ``elastic-lab evidence add`` puts them into the
archive. ``--archive`` judges the archive's sessions again, as every night.
"""

from lab import paths

FOLDER = paths.PROJECT / "tests" / "records" / "judged"
VERDICTS = "verdicts.json"
