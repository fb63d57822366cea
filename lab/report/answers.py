"""What an experiment asked and found: its question, an answer for each test, and every verdict in words. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lab.judge.claim import BREACHED, HELD, INVALID, KINDS, NO_DATA, Repeats
from lab.judge.pairs import Pairs
from lab.number_format import beside, number
from lab.report.session import BROKEN, FAILED, NOT_RUN, PASSED, SKIPPED
from lab.report.tables import MARKS, claim
from lab.report.tables import kind as kind_of

NOT_BEGUN = "it was not begun"
LONGEST = 260  # characters of a reason beside others
SIGNS = {"<=": "≤", ">=": "≥", "==": "="}
WORDS = (BREACHED, INVALID, NO_DATA, HELD)  # the worst first
PREFIX = re.compile(r"^[^.?:]{1,30}:\s+")  # of a module's docstring, as "Experiment 3: "
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """One thing that needs attention: ``name`` says where, ``text`` what, ``anchor`` is its place on the page."""

    name: str
    text: str
    anchor: str


@dataclass(frozen=True)
class Answer:
    """What one test found: the ``word`` for it, the ``lead`` that says it with a number, and the verdict ``led`` by."""

    test: Mapping[str, Any]
    word: str
    lead: str
    led: Row | None = None

    @property
    def rows(self) -> list[Row]:
        """The other verdicts, claims first and controls last, the worst of a kind first."""
        order = {"claim": 0, "invariant": 1, "control": 2}
        return sorted(
            (row for row in self.test["rows"] if row is not self.led),
            key=lambda row: (order[kind_of(row)], WORDS.index(verdict(row))),
        )

    @property
    def mark(self) -> str:
        """The sign of the word, which is told from others without colour."""
        return sign(self.word)


@dataclass(frozen=True)
class Experiment:
    """An experiment: the question of its module, the ``answers`` of its tests, and the ``word`` for the worst of them."""

    name: str
    number: str
    heading: str
    question: str
    note: list[str]
    answers: list[Answer]

    @property
    def word(self) -> str:
        """The worst of its answers' words; "not run" without one."""
        words = {answer.word for answer in self.answers}
        return next((word for word in (BROKEN, FAILED, *WORDS[:-1], NOT_RUN, HELD, SKIPPED) if word in words), NOT_RUN)

    @property
    def mark(self) -> str:
        """The sign of the word."""
        return sign(self.word)

    @property
    def anchor(self) -> str:
        """The experiment's place on the page."""
        return anchor(self.name)


def sign(word: str) -> str:
    """The sign of a verdict's word, or of a test's outcome."""
    return "-" if word in (NOT_RUN, SKIPPED) else MARKS.get(word, "!")


def natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key that sorts numbers in names by their value, before letters: 2_x, 10_x, a_x."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts], name


def anchor(name: str) -> str:
    """The name of a place on the page; every other character than a letter or a digit is written as its code."""
    return "x" + re.sub(r"[^A-Za-z0-9]", lambda found: f"-{ord(found.group()):x}", name)


def verdict(row: Row) -> str:
    """The word of a row. Raises ``ValueError`` for one that is not known."""
    word = str(row["verdict"])
    if word not in MARKS:
        raise ValueError(f"verdict: {word!r} is not one of {', '.join(MARKS)}")
    return word


def title(test: Mapping[str, Any]) -> str:
    """A test's name in words."""
    return str(test["title"] or test["id"].rpartition("::")[2])


def called(test: Mapping[str, Any]) -> str:
    """The experiment of a test in words, as "3 Rebalance dip"."""
    return str(test["heading"] or test["experiment"])


def in_words(row: Row) -> str:
    """A verdict in words: the number, the target, and the claim's sentence with its remarks."""
    return f"{measured(row)}, wanted {target(row)}; {claim(row)}"


def measured(row: Row) -> str:
    """The number of a verdict with its unit."""
    return number(None) if row["measured"] is None else _with_unit(beside(row["measured"], row["bound"]), row)


def runs_of(row: Row) -> str:
    """How sure a number is: the interval of a median or of a paired difference with its n, or that it has none.

    Where there is no number, the runs that there are.
    """
    pairs, repeats, runs = row.get("pairs"), row.get("repeats"), row.get("runs", 1)
    if pairs:
        return str(Pairs(**pairs))
    if not repeats:
        return f"one number of {runs} runs" if runs > 1 and row["measured"] is not None else f"n = {runs}"
    one = Repeats(**repeats)
    counted = f"n = {one.n}, held in {one.held}"
    if one.held < one.n and one.worst is not None:
        counted += f", worst {number(one.worst)}"
    if one.low is None or one.high is None or one.confidence is None:
        return counted
    return f"{number(one.low)} to {number(one.high)} ({one.confidence:.0%}), {counted}".replace("%", " %")


def remarks(row: Row) -> list[str]:
    """What a reader must know beside a verdict: what it leaves out, and what it is worth at real time."""
    return [str(text) for text in (row["note"], row.get("real_time")) if text]


def target(row: Row) -> str:
    """The bound of a verdict with its operator and its unit."""
    return _with_unit(f"{SIGNS.get(row['operator'], row['operator'])} {number(row['bound'])}", row)


def short(text: str) -> str:
    """The first words of a long ``text``, as an error that names every record."""
    return textwrap.shorten(text, LONGEST, placeholder=" …")


def _with_unit(text: str, row: Row) -> str:
    return f"{text} {row['unit']}".rstrip()


def is_invalid(test: Mapping[str, Any]) -> bool:
    """Whether a verdict of the test is on an invalid trial: that says why it is broken."""
    return any(verdict(row) == INVALID for row in test["rows"])


def is_shown(test: Mapping[str, Any]) -> bool:
    """Whether a test is shown as an answer: it judged, or it did not pass. The session's own summary judges nothing."""
    return bool(test["rows"]) or test["outcome"] != PASSED


def experiment_of(name: str, tests: Sequence[Mapping[str, Any]]) -> Experiment:
    """The experiment called ``name`` with the answers of its ``tests``, none of them where it did not run."""
    first = tests[0] if tests else {"heading": "", "note": ""}
    number, _, rest = name.partition("_") if name[:1].isdigit() else ("", "", name)
    paragraphs = [part for part in re.split(r"\n\s*\n", str(first["note"]).strip()) if part]
    heading = str(first["heading"]).removeprefix(number).strip() or rest.replace("_", " ")
    question = PREFIX.sub("", paragraphs[0]) if paragraphs else ""
    answers = [answer_of(test) for test in tests if is_shown(test)]
    return Experiment(name, number, heading, question[:1].upper() + question[1:], paragraphs[1:], answers)


def answer_of(test: Mapping[str, Any]) -> Answer:
    """The worst that a test has to say, with the number of its first claim of that word."""
    rows = test["rows"]
    words = {verdict(row) for row in rows}
    word = next((one for one in WORDS if one in words), SKIPPED if test["outcome"] == SKIPPED else FAILED)
    lead = next((row for kind in ("claim", *KINDS) for row in rows if verdict(row) == word and kind_of(row) == kind), None)
    said = ""
    if lead is not None:
        said = f"{lead['why']}: {lead['objective']}: {measured(lead)}, wanted {target(lead)}; {runs_of(lead)}"
        said += "".join(f" ({remark})" for remark in remarks(lead))
    if test["outcome"] == NOT_RUN and not rows:
        return Answer(test, NOT_RUN, test["remark"] or NOT_BEGUN)
    if test["outcome"] == BROKEN and not is_invalid(test):
        return Answer(test, BROKEN, short(test["remark"]))
    if test["outcome"] == FAILED and word == HELD:
        return Answer(test, FAILED, short(test["remark"]))
    return Answer(test, word, said or test["remark"], lead)
