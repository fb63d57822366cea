"""The validity of trials as tables: every gate with its number and its bound, and why a trial is invalid. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lab.judge import gates
from lab.judge.claim import NO_DATA, Verdict
from lab.number_format import number
from lab.report.tables import Cell, Table

Gates = Sequence[Verdict]  # of one trial


def gate_table(found: Mapping[str, Gates]) -> Table:
    """A row for each gate, and a column for each trial of ``found``, which has the verdicts on its gates by its name."""
    head = ["gate", *found, "at most", "unit", "source"]
    rows: list[list[str | Cell]] = [["validity", *(_cell(gates.word(each)) for each in found.values()), "", "", ""]]
    for several in zip(*found.values(), strict=True):
        first = several[0]
        rows.append(
            [first.objective, *(number(one.measured) for one in several), number(first.bound), first.unit, first.source]
        )
    return Table(head, rows, frozenset(range(1, len(found) + 2)))


def remark(each: Gates) -> str:
    """Why a trial is not valid, and the failed gates that do not decide; "" for none."""
    lacking = [gate.objective for gate in each if gate.verdict == NO_DATA]
    seen = gates.shown(each)
    remarks = [gates.reason(each), seen and f"shown: {seen}", f"no data: {', '.join(lacking)}" if lacking else ""]
    return "; ".join(filter(None, remarks))


def _cell(word: str) -> Cell:
    return Cell(word, style=f"verdict {word.replace(' ', '-')}")
