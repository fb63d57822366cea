"""The plugin of a nested session: judges each test by itself, and notes its verdicts and what it reads of records.

Charts are not drawn, and no test sees the records of those before it: what a test says depends on its own records alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from lab import evidence
from lab.judge.quantity import Quantity
from lab.measure import overview
from lab.measure.validity import judge_validity
from lab.plugin import SESSION
from lab.record.store import Record
from lab.record.tables import Tables
from lab.trial.trials import Trials

OPTION = "--note"
ONE_RECORD = "--one-record"
LEDGER = "ledger/events"


class Notes:
    """What each test said and read: {test: {"rows": [...], "trials": {id: [file, ...]}, "whole": bool}}."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._tests: dict[str, dict[str, Any]] = {}
        self._trials: dict[str, set[str]] = {}
        self._done: dict[str, Any] = {}
        self._opening = False  # a record, which may read all of it: that is not the test's reading

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Take the place of what a session does beside judging, and listen where records are read."""
        self._rows = session.config.stash[SESSION].rows
        patch = pytest.MonkeyPatch()
        patch.setattr(evidence, "attach", lambda *_: None)
        patch.setattr(evidence, "side_by_side", lambda records: {"trials": dict.fromkeys(records, Quantity("trials", "", 1.0))})
        patch.setattr(evidence, "judge_validity", self._unheard(judge_validity))
        patch.setattr(overview, "write_measures", lambda record: record)  # what is judged here stays as it is
        files, records = Tables._event_files, Trials._records

        def running(trials: Any, *given: Any) -> Any:
            self._done, self._opening = trials.done, True
            try:
                found = records(trials, *given)
            finally:
                self._opening = False
            for record in found:
                self._trials.setdefault(record.folder.name, set())
            return found

        def listed(record: Any, columns: Any) -> Any:
            if not self._opening:
                # A folder, which pyarrow reads without Python's open(), by its columns.
                self._trials[record.folder.name].update([LEDGER, *(f"{LEDGER}/{column}" for column in columns)])
            return files(record, columns)

        if session.config.getoption(ONE_RECORD):
            read = Trials._read
            patch.setattr(Trials, "_read", lambda trials, block, **plan: read(trials, 1, **plan))
        patch.setattr(Trials, "_records", running)
        patch.setattr(Tables, "_event_files", listed)
        read_table = pd.read_parquet

        def reading(path: Any, *given: Any, **named: Any) -> Any:
            self._opened("open", (str(path),))  # pandas opens it by pyarrow, without Python's open()
            return read_table(path, *given, **named)

        patch.setattr(pd, "read_parquet", reading)
        sys.addaudithook(self._opened)

    def _unheard(self, judge: Any) -> Any:
        """``judge`` made to read without note: the gates of a trial are no reading of the test's.

        They read a record of their own, so that the test itself opens what it reads after them.
        """

        def judging(record: Any) -> Any:
            self._opening = True
            try:
                return judge(Record(record.folder))
            finally:
                self._opening = False

        return judging

    def _opened(self, event: str, given: tuple[Any, ...]) -> None:
        """Note a file of a record that is opened."""
        if event == "open" and not self._opening and self._trials and isinstance(given[0], str):
            for name, files in self._trials.items():
                _, found, file = given[0].partition(f"/records/{name}/")
                if found:
                    files.add(file)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Begin each test without the records of those before it."""
        self._trials = {}
        self._done.clear()
        said = len(self._rows)
        self._whole = True
        result = yield
        trials = {name: sorted(files) for name, files in sorted(self._trials.items())}
        self._tests[item.nodeid] = {"rows": [asdict(row) for row in self._rows[said:]], "trials": trials, "whole": self._whole}
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note a test that broke: its verdicts are not all there."""
        if report.skipped or (report.failed and "Breach" not in str(report.longrepr)):
            self._whole = False

    def pytest_sessionfinish(self) -> None:
        """Leave the notes."""
        self._file.write_text(json.dumps(self._tests))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where the notes go, and which records are judged."""
    parser.addoption(OPTION, type=Path, required=True, help="where the notes on each test go")
    parser.addoption(ONE_RECORD, action="store_true", help="the first record of a trial stands for all of its runs")


def pytest_configure(config: pytest.Config) -> None:
    """Begin the notes."""
    config.pluginmanager.register(Notes(config.getoption(OPTION)), "notes")
