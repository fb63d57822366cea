"""Verdicts in words, and what an experiment asked and found: its question, and an answer for each test. Pure."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.judge.claim import HELD, KINDS
from lab.number_format import beside, number
from lab.report.session import BROKEN, FAILED, NOT_RUN, SKIPPED, WORDS, Case, Row
from lab.report.tables import Cell, Table

MARKS = {"held": "✔", "breached": "✘", "no data": "?", "invalid": "!"}
NOT_BEGUN = "it was not begun"
NOT_STATED = "not stated"  # where a bound is from: an objective of a text, an SLO, a pilot
LONGEST = 260  # characters of a reason beside others
PREFIX = re.compile(r"^[^.?:]{1,30}:\s+")  # of a module's docstring, as "Experiment 3: "
VERDICTS = ("verdict", "kind", "claim", "quantity", "measured", "wanted", "runs", "source", "experiment", "records")


@dataclass(frozen=True)
class Answer:
    """What one test found: the ``word`` for it, the ``lead`` that says it with a number, and the verdict ``led`` by."""

    test: Case
    word: str
    lead: str
    led: Row | None = None

    @property
    def rows(self) -> list[Row]:
        """The other verdicts, claims first and controls last, the worst of a kind first."""
        order = {"claim": 0, "invariant": 1, "control": 2}
        others = (row for row in self.test.rows if row is not self.led)
        return sorted(others, key=lambda row: (order[row.kind], WORDS.index(row.verdict)))


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


def experiment_of(name: str, tests: Sequence[Case]) -> Experiment:
    """The experiment called ``name`` with the answers of its ``tests``, none of them where it did not run."""
    first = tests[0] if tests else Case("", name)
    digits, _, rest = name.partition("_") if name[:1].isdigit() else ("", "", name)
    asked, *note = paragraphs(first.note) or [""]
    heading = first.heading.removeprefix(digits).strip() or rest.replace("_", " ")
    question = PREFIX.sub("", asked)
    answers = [answer_of(test) for test in tests if test.is_shown]
    return Experiment(name, digits, heading, question[:1].upper() + question[1:], note, answers)


def answer_of(test: Case) -> Answer:
    """The worst that a test has to say, with the number of its first claim of that word."""
    words = {row.verdict for row in test.rows}
    word = next((one for one in WORDS if one in words), SKIPPED if test.outcome == SKIPPED else FAILED)
    lead = next((row for kind in ("claim", *KINDS) for row in test.rows if (row.verdict, row.kind) == (word, kind)), None)
    if test.outcome == NOT_RUN and not test.rows:
        return Answer(test, NOT_RUN, test.remark or NOT_BEGUN)
    if test.outcome == BROKEN and not test.is_invalid:
        return Answer(test, BROKEN, short(test.remark))
    if test.outcome == FAILED and word == HELD:
        return Answer(test, FAILED, short(test.remark))
    return Answer(test, word, in_words(lead) if lead else test.remark, lead)


def in_words(row: Row) -> str:
    """A verdict in words: the claim's sentence, the number, the target, the runs, and what a reader must know beside it."""
    said = f"{row.why}: {row.objective}: {measured(row)}, wanted {target(row)}; {runs(row)}"
    return said + "".join(f" ({remark})" for remark in remarks(row))


def measured(row: Row, text: Callable[[float], str] = number) -> str:
    """The number of a verdict with its unit."""
    return number(None) if row.measured is None else f"{beside(row.measured, row.bound, text)} {row.unit}".rstrip()


def target(row: Row) -> str:
    """The bound of a verdict with its operator and its unit."""
    return row.target


def runs(row: Row) -> str:
    """How sure a number is: the interval of a median or of a paired difference with its n, or the count of its runs."""
    one = row.repeats
    if row.pairs:
        return str(row.pairs)
    if one is None:
        return f"one number of {row.runs} runs" if row.runs > 1 and row.measured is not None else f"n = {row.runs}"
    counted = f"n = {one.n}, held in {one.held}"
    if one.held < one.n and one.worst is not None:
        counted += f", worst {number(one.worst)}"
    if one.low is None or one.high is None or one.confidence is None:
        return counted
    return f"{number(one.low)} to {number(one.high)} ({one.confidence:.0%}), {counted}".replace("%", " %")


def remarks(row: Row) -> list[str]:
    """What a reader must know beside a verdict: why it has no number, what it leaves out, and what it is worth at real time."""
    return [text for text in (row.note, row.real_time) if text]


def mark(word: str) -> str:
    """The sign of a verdict's word, or of a test's outcome; it is told from others without colour."""
    return "-" if word in (NOT_RUN, SKIPPED) else MARKS.get(word, "!")


def word_cell(word: str) -> Cell:
    """A verdict's word, or a trial's, as a mark and a word."""
    return Cell(f"{MARKS[word]} {word}" if word in MARKS else word, style=f"verdict {word.replace(' ', '-')}")


def verdict_table(rows: Sequence[Row], address: Callable[[str], str] | None = None) -> Table:
    """Verdicts as a table; the names of their records are links where ``address`` has that of a record."""
    return Table(VERDICTS, [_cells(row, address) for row in rows], frozenset({VERDICTS.index("measured")}))


def _cells(row: Row, address: Callable[[str], str] | None) -> list[str | Cell]:
    named = Cell(links=tuple((trial, address(trial)) for trial in row.trials)) if address else ", ".join(row.trials)
    said = row.why + "".join(f" ({remark})" for remark in remarks(row))
    texts = [row.kind, said, row.objective, measured(row), target(row), runs(row), row.source or NOT_STATED, row.experiment]
    return [word_cell(row.verdict), *texts, named]


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a docstring."""
    return [part for part in re.split(r"\n\s*\n", text.strip()) if part]


def anchor(name: str) -> str:
    """The name of a place on the page; every other character than a letter or a digit is written as its code."""
    return "x" + re.sub(r"[^A-Za-z0-9]", lambda found: f"-{ord(found.group()):x}", name)


def natural(name: str) -> tuple[list[tuple[int, int, str]], str]:
    """A key that sorts numbers in names by their value, before letters: 2_x, 10_x, a_x."""
    parts = re.findall(r"[0-9]+|[^0-9]+", name)
    return [(0, int(part), "") if part.isdigit() and part.isascii() else (1, 0, part) for part in parts], name


def short(text: str) -> str:
    """The first words of a long ``text``, as an error that names every record."""
    return textwrap.shorten(text, LONGEST, placeholder=" …")
