"""The state of a session of experiments: its tests, verdicts, faults and exit code, and what of it is kept in session.json.

What is said of a session is made of this content by :mod:`lab.report.summary`, and of nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import BAD_INPUT, FAULT, InputError
from lab.host.machine import median_speed, name_machines
from lab.judge.claim import Verdict

if TYPE_CHECKING:  # a session without experiments, of a project that has the plugin installed, reads no tables
    from lab.record.store import Record
    from lab.record.trial import Trial
    from lab.report.tables import Table

FILE = "session.json"
SCHEMA = 1  # of session.json
NOT_SELECTED = "of tests that were not selected"
INTERRUPTED = "interrupted"  # by Ctrl-C, where no text says why
CUT_OFF = "it was running when the session ended"
PASSED, FAILED, BROKEN, SKIPPED, NOT_RUN = "passed", "failed", "broken", "skipped", "not run"


@dataclass
class Case:
    """A test that judges trials: what it asks, how it ended, and what it judged.

    ``id`` is pytest's; ``experiment`` the name of its module without ``test_``; ``heading`` and ``title`` are the names of the
    experiment and of the test in sentences; ``note`` is the module's docstring. ``known`` names behaviours of other projects
    that it shows: a folder of docs/upstream, or what the project calls it. ``remark`` says why a test failed or broke.
    ``rows`` are its rows of verdicts.json, ``explained`` paragraphs that it adds to the note. ``picture`` is its chart as SVG,
    and ``alt`` says what is seen in it.
    """

    id: str
    experiment: str
    heading: str = ""
    title: str = ""
    note: str = ""
    known: list[str] = field(default_factory=list)
    outcome: str = NOT_RUN
    remark: str = ""
    rows: list[dict[str, Any]] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    tables: list[dict[str, Any]] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    picture: str = ""
    alt: str = ""

    def end(self, outcome: str, remark: str = "") -> None:
        """Keep how the test ended; a later end, as of its teardown, counts where it is worse."""
        order = (NOT_RUN, PASSED, SKIPPED, FAILED, BROKEN)
        if order.index(outcome) > order.index(self.outcome):
            self.outcome, self.remark = outcome, remark


@dataclass
class Session:
    """``rows`` are those of verdicts.json, ``tests`` the tests that judge trials, by pytest's id in their order.

    ``validity`` has the verdicts on the gates of each trial, by the name of its record. ``faults`` and ``refused`` name the
    tests that broke: by a fault of the lab, or by bad input that only a test could see, as a record that is not there.
    ``expected`` experiments without a verdict are missing. ``policy`` is the file of the recommended policy. ``settings`` are
    facts of the session that no record holds, as the number of runs. ``sections`` are further tables, by title. ``timelines``
    are the Vega-Lite specs of the timelines, by the name of the record, and of trials side by side, by the test's id.
    ``stopped`` says why the session ended before its last test. ``asked`` and ``done`` are the ids of the trials that its
    tests asked for, and of those that have a record.
    """

    rows: list[dict[str, Any]] = field(default_factory=list)
    tests: dict[str, Case] = field(default_factory=dict)
    conclusions: list[dict[str, Any]] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    validity: dict[str, Sequence[Verdict]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    expected: Sequence[str] = ()
    policy: Path | None = None
    settings: dict[str, str] = field(default_factory=dict)
    sections: dict[str, tuple[str, Table]] = field(default_factory=dict)
    timelines: dict[str, dict[str, Any]] = field(default_factory=dict)
    current: Case | None = None
    stopped: str = ""
    asked: Collection[str] = ()
    done: Collection[str] = ()

    def plan(self, tests: Iterable[Case]) -> None:
        """Keep the ``tests`` that the session was asked for, in their order: one that never runs is missed by its name."""
        self.tests |= {test.id: test for test in tests}

    def stop(self, why: str) -> None:
        """Keep ``why`` the session ends before its last test, and which one it was in."""
        self.stopped = self.stopped or why
        if self.current is not None and self.current.outcome == NOT_RUN:
            self.current.remark = CUT_OFF

    def begin(self, test: Case) -> Case:
        """Make ``test`` the running one: what is judged is its own until the next one begins."""
        self.current = self.tests.setdefault(test.id, test)
        return self.current

    def running(self, experiment: str) -> Case:
        """The running test, or one that stands for all of ``experiment`` where none has begun."""
        if self.current is None or self.current.experiment != experiment:
            self.begin(Case(experiment, experiment))
        assert self.current is not None
        return self.current

    def judged(
        self, verdicts: Sequence[Verdict], experiment: str, trials: Sequence[str], runs: int = 1
    ) -> list[dict[str, Any]]:
        """Keep the ``verdicts`` of an experiment on ``trials``, each run so often; returns their rows of verdicts.json."""
        rows = [{"experiment": experiment, **asdict(verdict), "trials": list(trials), "runs": runs} for verdict in verdicts]
        self.rows.extend(rows)
        test = self.running(experiment)
        test.rows.extend(rows)
        test.trials.extend(name for name in trials if name not in test.trials)
        return rows

    def broke(self, test: str, error: BaseException, line: str) -> None:
        """Keep that ``test`` broke by ``error``, which ``line`` describes."""
        (self.refused if isinstance(error, InputError) else self.faults).append(f"{test}: {line}")

    def add_section(self, title: str, table: Table, note: str = "") -> None:
        """Add a ``table`` to every summary of the session, under ``title``, below a ``note``."""
        self.sections[title] = (note, table)

    def repeated(self, runs: int) -> None:
        """Keep how many runs each trial has."""
        self.settings["runs"] = f"{runs} of each trial"

    @property
    def began(self) -> bool:
        """Whether any test that judges trials came to an end, or was interrupted: there is something to say."""
        ended = any(test.outcome != NOT_RUN for test in self.tests.values())
        return ended or (self.stopped == INTERRUPTED and self.current is not None)

    @property
    def exit_code(self) -> int | None:
        """The exit code of a session in which a test broke, None when none did."""
        if self.faults:
            return FAULT
        return BAD_INPUT if self.refused else None

    def environment(self) -> str:
        """The content of Allure's environment.properties; "" without a record."""
        if not self.records:
            return ""
        last = self.records[-1].trial
        return "".join(f"{key}={value}\n" for key, value in {**last.versions, "cpu": last.machine.cpu}.items())

    def content(self, results: Path) -> dict[str, Any]:
        """What session.json holds; the folders of records are relative to ``results``."""
        from lab.judge import gates
        from lab.record import store
        from lab.report import validity

        judged: Sequence[Verdict] = next(iter(self.validity.values()), ())
        folders = {record.name: os.path.relpath(record.folder, results) for record in self.records}
        return {
            "schema": SCHEMA,
            "head": self._head(len(store.identities(results) - set(self.asked))),
            "speed": median_speed(record.trial.machine for record in self.readable()),
            "versions": {name: version for record in self.readable() for name, version in record.trial.versions.items()},
            "tests": [asdict(test) for test in self.tests.values()],
            "conclusions": self.conclusions,
            "validity": [
                {"trial": name, "word": gates.word(each), "remark": validity.remark(each)}
                for name, each in self.validity.items()
            ],
            "gates": [asdict(gate) for gate in judged],
            "folders": folders,
            "timelines": list(self.timelines),
            "stopped": self.stopped,
            "asked": {"trials": len(self.asked), "done": len(self.done)},
            "faults": self.faults,
            "refused": self.refused,
            "expected": list(self.expected),
            "policy": self.policy.read_text() if self.policy else None,
            "sections": [
                {"title": title, "note": note, "table": table.stored} for title, (note, table) in self.sections.items()
            ],
        }

    def readable(self) -> list[Record]:
        """The records that are still there, in the order in which they were judged."""
        return [record for record in self.records if (record.folder / "trial.json").is_file()]

    def _head(self, others: int) -> dict[str, Any]:
        """Facts of the session in one line each; of its records each value once.

        ``others`` is the number of stored trials that the session did not ask for.
        """
        trials = [record.trial for record in self.readable()]
        if not trials:
            return dict(self.settings)
        begun = min(trial.begun for trial in trials)
        return {
            "date": datetime.fromtimestamp(begun, UTC).date().isoformat(),
            "commit": _each(trial.versions.get("commit", "unknown") for trial in trials),
            "scale": _each(trial.scale for trial in trials),
            "fidelity": _each(_fidelity(trial) for trial in trials),
            "runtime": _each(trial.inputs.runtime for trial in trials),
            "machine": name_machines(trial.machine for trial in trials),
            "trials": str(len({record.name for record in self.records})),
            **({"not judged": f"{others} more trial{'s' * (others > 1)} in this folder, {NOT_SELECTED}"} if others else {}),
            "seeds of the traffic": _each(sorted({trial.inputs.seed for trial in trials})),
            "seed of the order": _each(trial.turn.seed if trial.turn else "unknown" for trial in trials),
            **self.settings,
        }


def _fidelity(trial: Trial) -> str:
    """What the scale of a trial changed and what it left, in words (docs/scale.md)."""
    scale = trial.inputs.scale
    if scale.time == 1 and scale.rate == 1:
        return "all times and rates are real"
    kept = "replicas, percentages, and how long pods take to start, join, rebalance and process are real"
    return f"times are 1/{scale.time:g}, rates {scale.rate:g} and lag thresholds {scale.lag:.3g} of what is written; {kept}"


def _each(values: Iterable[object]) -> str:
    """Each different value once, in order."""
    return "; ".join(dict.fromkeys(str(value) for value in values))


def as_text(content: Mapping[str, Any]) -> str:
    """The text of a session.json with this ``content``."""
    return json.dumps(content, indent=1, default=str) + "\n"


def read(results: Path) -> dict[str, Any] | None:
    """The content of the session in ``results``; None where it left none.

    Raises :class:`InputError` for a session.json of another schema.
    """
    file = results / FILE
    if not file.is_file():
        return None
    content: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if content.get("schema") != SCHEMA:
        raise InputError(file, "schema", content.get("schema"), f"{SCHEMA}: judge the records again with --from-records")
    return content
