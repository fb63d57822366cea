"""A session while it runs: what its tests have judged so far, by which it is reported at its end."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lab.errors import BAD_INPUT, FAULT, InputError
from lab.host.machine import median_speed, name_machines
from lab.judge.claim import Verdict
from lab.report.session import INTERRUPTED, NOT_RUN, Case, Conclusion, Head, Row, Section, Session, SignOff, Validity
from lab.report.tables import Table

if TYPE_CHECKING:  # a session without experiments, of a project that has the plugin installed, reads no tables
    from lab.judge.expectation import Expectations
    from lab.judge.measure import Runs
    from lab.record.store import Record
    from lab.record.trial import Trial

CUT_OFF = "it was running when the session ended"
LABEL = "allure_label"  # Allure's mark, by which a test is named in words
KNOWN = "known"  # the label of a test that shows what is known of another project: a folder of docs/upstream, or a name
PICTURES = "pictures"


def case_of(item: Any, experiment: str) -> Case:
    """The case of pytest's ``item``: its title is its story or its docstring's first line, its note its module's docstring."""
    labels = {mark.kwargs.get("label_type"): str(mark.args[0]) for mark in item.iter_markers(LABEL) if mark.args}
    title = labels.get("story") or inspect.cleandoc(getattr(item.obj, "__doc__", None) or "").partition("\n")[0]
    callspec = getattr(item, "callspec", None)
    case = f" ({callspec.id})" if callspec is not None else ""
    note = inspect.cleandoc(getattr(item.module, "__doc__", None) or "")
    known = [str(mark.args[0]) for mark in item.iter_markers(LABEL) if mark.kwargs.get("label_type") == KNOWN and mark.args]
    return Case(item.nodeid, experiment, labels.get("feature", ""), f"{title}{case}" if title else "", note, known)


@dataclass
class RunningSession:
    """``rows`` are those of verdicts.json, ``tests`` those that judge trials, by pytest's id in their order.

    ``validity`` has the verdicts on each record's gates, ``policy`` is the recommended one's file. ``timelines`` are Vega-Lite
    specs by the name of the record or, side by side, the test's id; ``pictures`` the SVG of each test's chart, by its file.
    ``asked`` are the ids of the trials that tests asked for, ``done`` of those with a record. What is
    expected of its claims are ``expectations``. ``altering`` are its options that alter trials, as words of a command line.
    ``signed`` has the runs that a panel signs for, by the test's id; ``no_board`` says why the live board's picture is not
    taken. Others are :class:`Session`'s.
    """

    rows: list[Row] = field(default_factory=list)
    tests: dict[str, Case] = field(default_factory=dict)
    conclusions: list[Conclusion] = field(default_factory=list)
    records: list[Record] = field(default_factory=list)
    validity: dict[str, Sequence[Verdict]] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    expected: Sequence[str] = ()
    policy: Path | None = None
    runs: int = 1
    sections: list[Section] = field(default_factory=list)
    timelines: dict[str, dict[str, Any]] = field(default_factory=dict)
    pictures: dict[str, str] = field(default_factory=dict)
    current: Case | None = None
    stopped: str = ""
    asked: Collection[str] = ()
    done: Collection[str] = ()
    expectations: Expectations | None = None
    brought: str = ""
    altering: Sequence[str] = ()
    signed: dict[str, Runs[Record]] = field(default_factory=dict)
    sign_offs: list[SignOff] = field(default_factory=list)
    no_board: str = ""

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

    def judged(self, verdicts: Sequence[Verdict], experiment: str, trials: Sequence[str], runs: int = 1) -> list[Row]:
        """Keep the ``verdicts`` of an experiment on ``trials``, each run so often; returns them as rows."""
        rows = [Row(**vars(one), experiment=experiment, trials=list(trials), runs=runs) for one in verdicts]
        self.rows.extend(rows)
        test = self.running(experiment)
        test.rows.extend(rows)
        test.trials.extend(name for name in trials if name not in test.trials)
        return rows

    def keep_picture(self, test: Case, svg: str, alt: str) -> None:
        """Keep the chart of a ``test``, the first one that it has."""
        if svg and not test.picture:
            name = re.sub(r"[^a-z0-9]+", "-", test.id.removeprefix("tests/").lower()).strip("-")
            test.picture, test.alt = f"{PICTURES}/{name}.svg", alt
            self.pictures[test.picture] = svg

    def broke(self, test: str, error: BaseException, line: str) -> None:
        """Keep that ``test`` broke by ``error``, which ``line`` describes."""
        (self.refused if isinstance(error, InputError) else self.faults).append(f"{test}: {line}")

    def add_section(self, title: str, table: Table, note: str = "") -> None:
        """Add a ``table`` to the session's page, under ``title``, below a ``note``."""
        self.sections.append(Section(title, note, table))

    @property
    def verdicts(self) -> list[dict[str, Any]]:
        """The content of verdicts.json."""
        return [asdict(row) for row in self.rows]

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

    def session(self, results: Path) -> Session:
        """What session.json holds; the folders of records are relative to ``results``."""
        from lab.judge import gates
        from lab.record import store

        trials = [record.trial for record in self.readable()]
        judged: Sequence[Verdict] = next(iter(self.validity.values()), ())
        return Session(
            head=self._head(trials, len(store.identities(results) - set(self.asked))),
            speed=median_speed(trial.machine for trial in trials),
            versions={name: version for trial in trials for name, version in trial.versions.items()},
            tests=list(self.tests.values()),
            conclusions=self.conclusions,
            validity=[Validity(name, gates.word(each), gates.remark(each)) for name, each in self.validity.items()],
            gates=list(judged),
            folders={record.name: os.path.relpath(record.folder, results) for record in self.records},
            timelines=list(self.timelines),
            stopped=self.stopped,
            asked=len(self.asked),
            done=len(self.done),
            faults=self.faults,
            refused=self.refused,
            expected=list(self.expected),
            policy=self.policy.read_text() if self.policy else None,
            sections=self.sections,
            brought=self.brought,
            sign_offs=self.sign_offs,
        )

    def readable(self) -> list[Record]:
        """The records that are still there, in the order in which they were judged."""
        return [record for record in self.records if (record.folder / "trial.json").is_file()]

    def _head(self, trials: Sequence[Trial], others: int) -> Head:
        if not trials:
            return Head(self.runs)
        return Head(
            self.runs,
            date=datetime.fromtimestamp(min(trial.begun for trial in trials), UTC).date().isoformat(),
            commit=_each(trial.versions.get("commit", "unknown") for trial in trials),
            scale=_each(trial.scale for trial in trials),
            fidelity=_each(_fidelity(trial) for trial in trials),
            runtime=_each(trial.inputs.runtime for trial in trials),
            machine=name_machines(trial.machine for trial in trials),
            trials=len({record.name for record in self.records}),
            others=others,
            seeds=_each(sorted({trial.inputs.seed for trial in trials})),
            order_seed=_each(trial.turn.seed if trial.turn else "unknown" for trial in trials),
        )


def _fidelity(trial: Trial) -> str:
    """What the scale of a trial changed and what it left, in words (docs/scale.md)."""
    scale = trial.inputs.scale
    if scale.time == 1 and scale.rate == 1:
        return "all times and rates are real"
    kept = "replicas, percentages, and how long pods take to be created, to join, to rebalance and to process are real"
    return f"times are 1/{scale.time:g}, rates {scale.rate:g} and lag thresholds {scale.lag:.3g} of what is written; {kept}"


def _each(values: Iterable[object]) -> str:
    """Each different value once, in order."""
    return "; ".join(dict.fromkeys(str(value) for value in values))
