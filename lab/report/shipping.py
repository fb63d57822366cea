"""Whether a user's ScaledObject can be shipped, by the verdicts of its acceptance. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.inputs.scale import REAL
from lab.judge.claim import BREACHED, HELD
from lab.judge.gates import VALID
from lab.report.session import BROKEN, FAILED, PASSED, WORDS, Case, Row, Session
from lab.report.verdict_text import mark, measured, remarks, short, target

SHIP, DO_NOT_SHIP, NO_ANSWER = "ship", "don't ship", "no answer"
STYLES = {SHIP: HELD, DO_NOT_SHIP: BREACHED, NO_ANSWER: "no-data"}  # classes of the page
NOTHING = "nothing was judged"


@dataclass(frozen=True)
class Decision:
    """The ``word`` on a ``file``, the verdicts that decide it, the worst first, and ``why`` where none of them says it.

    ``at_real_time`` has a line for each objective that held at a compressed scale, and that a simulation breaches at real time.
    """

    file: str
    word: str
    rows: Sequence[Row] = ()
    why: str = ""
    at_real_time: Sequence[str] = ()

    def __str__(self) -> str:
        return f"{self.file}: {self.word}"

    @property
    def style(self) -> str:
        """The class of the page that the word is shown in."""
        return STYLES[self.word]

    @property
    def is_of_the_policy(self) -> bool:
        """Whether it is on a breached claim, which a change of the policy may hold. An invariant is no matter of the policy."""
        return bool(self.at_real_time) or (self.word == DO_NOT_SHIP and any(row.kind == "claim" for row in self.rows))

    @property
    def lines(self) -> list[str]:
        """Why, and each verdict that decides, with its number and its bound."""
        real = [f"{mark(BREACHED)} simulated at real time: {one}" for one in self.at_real_time]
        return [*([self.why] if self.why else []), *real, *(f"{mark(row.verdict)} {line(row)}" for row in self.rows)]


def line(row: Row) -> str:
    """A verdict with its number and its bound, and what a reader must know beside it."""
    return f"{row.objective}: {measured(row)}, wanted {target(row)}" + "".join(f" ({one})" for one in remarks(row))


def of(session: Session) -> Decision | None:
    """The decision on the file that ``session`` was brought; None for a session of the lab's own experiments."""
    if not session.brought:
        return None
    decision = decide(session.brought, session.tests, session.stopped)
    if decision.word != SHIP:
        return decision
    scale = session.head.scale_name
    if session.at_real_time:
        why = f"all held at {scale}; a simulation at real time breaches an objective: --scale real decides"
        return replace(decision, word=NO_ANSWER, why=why, at_real_time=session.at_real_time)
    limits = [f"{one.trial} is {one.word}: {one.remark}" for one in session.validity if one.word != VALID]
    if session.at_real_time is None and scale not in ("", REAL):
        reason = f" ({session.unsimulated})" if session.unsimulated else ""
        limits.append(f"all held at {scale}; its behaviour at real time was not simulated{reason}: --scale real shows it")
    return replace(decision, why="; ".join(limits))


def decide(file: str, tests: Sequence[Case], stopped: str = "") -> Decision:
    """The decision on ``file`` by what its ``tests`` found; ``stopped`` says why their session ended early.

    Nothing is concluded from a broken test, and so of an invalid trial. One breach is enough not to ship. To ship, every
    objective must have held: a figure without data leaves no answer, and so does a control that did not see its effect.
    """
    rows = sorted((row for test in tests for row in test.rows), key=lambda row: WORDS.index(row.verdict))
    broken = [test for test in tests if test.outcome == BROKEN]
    failed = [test for test in tests if test.outcome == FAILED and all(row.passes for row in test.rows)]
    breached = [row for row in rows if row.verdict == BREACHED and row.kind != "control"]
    not_held = [row for row in rows if row.verdict != HELD]
    if broken:
        return Decision(file, NO_ANSWER, (), short(broken[0].remark))
    if breached or failed:
        return Decision(file, DO_NOT_SHIP, breached, short(failed[0].remark) if failed else "")
    if not_held or stopped or not rows or any(test.outcome not in (PASSED, FAILED) for test in tests):
        return Decision(file, NO_ANSWER, not_held, "" if not_held else stopped or NOTHING)
    return Decision(file, SHIP, rows)
