"""The content of session.json: what a session judged, of which tests and trials, and how it ended."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, Literal

from lab import wholefile
from lab.judge.claim import BREACHED, HELD, INVALID, NO_DATA, Verdict
from lab.report.tables import Table

FILE = "session.json"
SCHEMA: Final = 2
ID = "test"  # the label by which the page finds a test's evidence in Allure's report
INTERRUPTED = "interrupted"  # by Ctrl-C, where no text says why
PASSED, FAILED, BROKEN, SKIPPED, NOT_RUN = "passed", "failed", "broken", "skipped", "not run"
OUTCOMES = (NOT_RUN, PASSED, SKIPPED, FAILED, BROKEN)  # a later end of a test counts where it is further to the right
WORDS = (BREACHED, INVALID, NO_DATA, HELD)  # of verdicts, the worst first
AS_EXPECTED, UNEXPECTED = "Breached as expected", "Held, not as expected"
HEADINGS = ("Breached", UNEXPECTED, "Invalid", "No data", AS_EXPECTED)  # of verdicts that are told apart, the worst first


@dataclass(frozen=True, kw_only=True)
class Row(Verdict):
    """A verdict of ``experiment`` on the records ``trials``, each trial run so often: a row of verdicts.json."""

    experiment: str
    trials: Sequence[str] = ()
    runs: int = 1

    @property
    def heading(self) -> str:
        """Which of HEADINGS it is told under; "" where it held and nothing else was expected."""
        if self.verdict == HELD:
            return UNEXPECTED if not self.passes else ""
        return AS_EXPECTED if self.verdict == BREACHED and self.passes else self.verdict.capitalize()


@dataclass
class Case:
    """A test that judges trials: what it asks, how it ended, and what it judged.

    ``id`` is pytest's; ``experiment`` the name of its module without ``test_``; ``heading`` and ``title`` name both in words;
    ``note`` is the module's docstring; ``known`` are behaviours of other projects that it shows, folders of docs/upstream.
    ``remark`` says why it failed or broke. ``figures`` are those that its ``tables`` show: by the name of each why it has no
    data, "" where it has a number. ``explained`` are further paragraphs. ``picture`` is the file of its chart, ``alt`` what is
    seen in it.
    """

    id: str
    experiment: str
    heading: str = ""
    title: str = ""
    note: str = ""
    known: list[str] = field(default_factory=list)
    outcome: str = NOT_RUN
    remark: str = ""
    rows: list[Row] = field(default_factory=list)
    trials: list[str] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    figures: dict[str, str] = field(default_factory=dict)
    explained: list[str] = field(default_factory=list)
    picture: str = ""
    alt: str = ""

    def end(self, outcome: str, remark: str = "") -> None:
        """Keep how the test ended; a later end, as of its teardown, counts where it is worse."""
        if OUTCOMES.index(outcome) > OUTCOMES.index(self.outcome):
            self.outcome, self.remark = outcome, remark

    @property
    def name(self) -> str:
        """The test in words, or its function."""
        return self.title or self.id.rpartition("::")[2]

    @property
    def called(self) -> str:
        """Its experiment in words, as "3 Rebalance dip"."""
        return self.heading or self.experiment

    @property
    def is_invalid(self) -> bool:
        """Whether a verdict is on an invalid trial: that says why the test is broken."""
        return any(row.verdict == INVALID for row in self.rows)

    @property
    def is_shown(self) -> bool:
        """Whether it is an answer: it judged, or it did not pass. The session's own summary judges nothing."""
        return bool(self.rows) or self.outcome != PASSED


@dataclass(frozen=True)
class Conclusion:
    """What an ``experiment`` concludes about a ``setting`` of the recommended policy, and why."""

    setting: str
    value: str
    because: str
    experiment: str


@dataclass(frozen=True)
class Validity:
    """Whether a ``trial``, by the name of its record, is valid: the ``word`` for it, and a ``remark`` that says why not."""

    trial: str
    word: str
    remark: str


@dataclass(frozen=True)
class Section:
    """A further table of a session, under ``title`` and below a ``note``."""

    title: str
    note: str
    table: Table


@dataclass(frozen=True)
class SignOff:
    """What a panel signs of one test: text 1, section 12, as ``lines``, and the ``trials`` that they are of.

    ``chart`` is the file of lag, replicas and throughput, ``alt`` what is seen in it, ``board`` the picture of the live board.
    Both are relative to the results, and "" where there is none; ``no_board`` then says why. ``figures`` are those of the
    lines, as :class:`Case` has them; ``open_lines`` counts those that did not hold or have no number. ``policy`` is YAML, as it
    was applied.
    """

    title: str
    note: str
    lines: Table
    trials: Table
    chart: str = ""
    alt: str = ""
    board: str = ""
    no_board: str = ""
    figures: dict[str, str] = field(default_factory=dict)
    open_lines: str = ""
    policy: str = ""


@dataclass(frozen=True)
class Tried:
    """A second trial: the ``word`` on it, a line for each verdict that decides, and its ``page``, relative to the first's."""

    word: str
    lines: list[str]
    page: str


@dataclass(frozen=True)
class Advice:
    """What to change in a user's file: a unified ``diff``, "" for no change; ``notes`` that say why; and a trial of it."""

    diff: str = ""
    notes: list[str] = field(default_factory=list)
    tried: Tried | None = None


@dataclass(frozen=True)
class Head:
    """Facts of a session; of its records each value once, "; " between two. ``others`` counts stored trials not asked for."""

    runs: int = 1
    date: str = ""
    commit: str = ""
    scale: str = ""
    fidelity: str = ""
    runtime: str = ""
    machine: str = ""
    trials: int = 0
    others: int = 0
    seeds: str = ""
    order_seed: str = ""

    @property
    def scale_name(self) -> str:
        """The name of the scale, without what it stands for."""
        return self.scale.partition(":")[0]


@dataclass(frozen=True)
class Session:
    """A session. ``speed`` is the machine's in events/s, ``gates`` are those of one of its trials.

    ``folders`` has each record's folder, relative to the results, by its name; ``timelines`` are the names that timelines.html
    knows. ``stopped`` says why it ended before its last test. ``asked`` and ``done`` count the trials that its tests asked for,
    and those of them that have a record. ``faults`` and ``refused`` name the tests that broke: by a fault of the lab, or by bad
    input that only a test could see. ``expected`` experiments without a verdict are missing. ``policy`` is the recommended one
    as YAML. ``brought`` is the name of a user's file whose acceptance the session is; ``at_real_time`` says which objectives a
    simulation of it breaches there, None without one, which ``unsimulated`` may explain; ``advice`` is what to change in it.
    ``sign_offs`` are at the head of the page.
    """

    schema: Literal[2] = SCHEMA
    head: Head = field(default_factory=Head)
    speed: float | None = None
    versions: dict[str, str] = field(default_factory=dict)
    tests: list[Case] = field(default_factory=list)
    conclusions: list[Conclusion] = field(default_factory=list)
    validity: list[Validity] = field(default_factory=list)
    gates: list[Verdict] = field(default_factory=list)
    folders: dict[str, str] = field(default_factory=dict)
    timelines: list[str] = field(default_factory=list)
    stopped: str = ""
    asked: int = 0
    done: int = 0
    faults: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    expected: list[str] = field(default_factory=list)
    policy: str | None = None
    sections: list[Section] = field(default_factory=list)
    brought: str = ""
    at_real_time: list[str] | None = None
    unsimulated: str = ""
    advice: Advice | None = None
    sign_offs: list[SignOff] = field(default_factory=list)

    def write(self, results: Path) -> None:
        """Write session.json into ``results``, whole or not at all."""
        wholefile.write(results / FILE, json.dumps(asdict(self), indent=1, default=sorted) + "\n")


def read(results: Path) -> Session | None:
    """The session in ``results``, None where it left none. Raises :class:`InputError` for a session.json of other content."""
    from lab import validation  # whoever writes needs no model

    file = results / FILE
    return (
        validation.read_file(Session, file, SCHEMA, "judge the records again with --from-records") if file.is_file() else None
    )
