"""Further tables of a session: the gates of its trials, and where its time went."""

from dataclasses import replace

import pytest

from lab.judge.gates import GATES
from lab.report.session_tables import PARTS, duration_table, gate_table, runs
from tests.unit.measure import whole
from tests.unit.report.sessions import gates

INPUTS = whole.inputs()


def trial(name, begun, *, finished, ledger_s=4.0, **times):
    """A finished trial; ``times`` are s after it began."""
    moments = {phase: begun + after for phase, after in times.items()}
    return whole.trial(INPUTS, id=name, begun=begun, times=moments, finished=begun + finished, ledger_s=ledger_s)


def length(run):
    """How long a run took, with what lay before it."""
    return sum(run.parts.values())


FIRST = trial("first", 100, settling=1, driving=3, draining=33, ended=38, finished=44)
NEXT = trial("next", 150, settling=1, driving=2, ended=22, finished=27)
OTHER = trial("other", 151, settling=1, driving=2, ended=22, finished=31, ledger_s=3.0)  # a side of a duet with the one before


def test_the_parts_of_a_run_are_its_length():
    """And what lay before it belongs to it, so that all runs are the session."""
    one, two = runs([NEXT, FIRST])
    assert [one.name, two.name] == ["first", "next"]
    assert one.parts == pytest.approx(dict(zip(PARTS, (0, 1, 2, 30, 5, 2, 4), strict=True)))
    assert two.parts == pytest.approx(dict(zip(PARTS, (6, 1, 1, 20, 0, 1, 4), strict=True)))
    assert length(one) + length(two) == pytest.approx(77)


def test_the_sides_of_a_duet_are_one_run():
    """Only what the second took longer is added."""
    _, duet = runs([FIRST, NEXT, OTHER])
    assert duet.name == "next and other"
    assert length(duet) == pytest.approx(182 - 144)
    assert (duet.parts["closing"], duet.parts["ledger"]) == (pytest.approx(3), pytest.approx(7))


def test_the_table_has_sums_and_shares():
    """The last two rows. A trial that never ended is left out: nobody knows how long it took."""
    rows = duration_table(runs([FIRST, NEXT, replace(OTHER, finished=None)])).rows
    assert [row[0] for row in rows] == ["first", "next", "all runs", "share"]
    assert rows[2][1:] == ["6", "2", "3", "50", "5", "3", "8", "77"]
    assert (rows[3][4], rows[3][-1]) == ("65 %", "100 %")
    assert duration_table([]).rows == []


def test_every_gate_has_a_row_with_its_bound_and_its_source():
    """Beside the numbers of each trial; the first row says which trials are valid."""
    table = gate_table({"good": gates(), "bad": gates(steal=0.3), "old": gates(io_pressure=None)})
    assert list(table.head) == ["gate", "good", "bad", "old", "at most", "unit", "source"]
    assert [cell.text for cell in table.cells[0]][:4] == ["validity", "valid", "! invalid", "? no data"]
    assert [row[0].text for row in table.cells[1:]] == [gate.name for gate in GATES]
    steal = next(row for row in table.cells if row[0].text == "steal")
    assert [cell.text for cell in steal][1:5] == ["0", "0.3", "0", "0.05"]
    assert gate_table({}).html
