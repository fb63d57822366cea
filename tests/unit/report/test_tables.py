"""Tables: everything escaped, one row for each verdict, numbers for people; the gates of trials, and where time went."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from lab import number_format
from lab.judge.gates import GATES
from lab.report.session_tables import PARTS, duration_table, gate_table, runs
from lab.report.tables import code, comparison_table
from lab.report.verdict_text import verdict_table
from tests.unit.measure import whole
from tests.unit.report.sessions import BREACHED, INVALID, NO_DATA, gates


def test_a_verdict_is_a_row_with_links_to_its_records() -> None:
    """A word and not only a colour, the claim with its remarks, the number, the target, the runs and the bound's source."""
    row = replace(BREACHED, note="but one", real_time="quick only", trials=["a1", "b 2"], source="text 1")
    line = verdict_table([row], "records/{}/".format).markdown.splitlines()[2]
    assert line == (
        "| ✘ breached | claim | two hot \\| ones (but one) (quick only) | drain | 1.62 x | &lt; 1.5 x | n = 1 | text 1 "
        "| 2 reaction | [a1](records/a1/), [b 2](records/b 2/) |"
    )
    page = verdict_table([INVALID, NO_DATA]).html
    for name, said in (("verdict invalid", "! invalid"), ("verdict no-data", "? no data"), ("number", "71.2 s")):
        assert f'<td class="{name}">{said}</td>' in page
    assert "<td>fast enough (no spike)</td>" in page
    assert "<td>not stated</td>" in page


def test_measures_of_two_trials_have_their_ratio() -> None:
    """What is missing is n/a, and has no ratio; nor have infinity and a negative base."""
    for values in ((math.inf, 1.0), (1.0, math.inf), (math.nan, 1.0), (-2.0, 1.0)):
        assert comparison_table({"x": dict(zip("ab", values, strict=True))}).cells[0][-1].text == "n/a"
    found = comparison_table(
        {"peak lag": {"a": 200.0, "b": 50.0}, "flips": {"a": 0.0, "b": 3.0}, "drain (s)": {"a": 2.0, "b": None}}
    )
    assert found.markdown.splitlines()[0] == "| measure | a | b | second / first |"
    assert [[cell.text for cell in row] for row in found.cells] == [
        ["peak lag", "200", "50", "0.25"],
        ["flips", "0", "3", "n/a"],
        ["drain (s)", "2", "n/a", "n/a"],
    ]
    asked = comparison_table({"peak": {"a": 1.0}, "flips": {"b": None}})  # what was not asked of a trial is blank
    assert [[cell.text for cell in row] for row in asked.cells] == [["peak", "1", "", ""], ["flips", "", "n/a", ""]]
    assert comparison_table({"peak": {"a": 1.0, "b": 2.0, "c": None}}).head == ["measure", "a", "b", "c"]
    with pytest.raises(ValueError, match="no measure"):
        comparison_table({})


def test_a_docstrings_backticks_are_code_and_its_text_is_text() -> None:
    """As a reader of the page expects them."""
    assert code("with ``--repeat`` <b>") == "with <code>--repeat</code> &lt;b&gt;"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "n/a"),
        (math.nan, "n/a"),
        (math.inf, "∞"),
        (71.234, "71.2"),
        (412.06, "412.1"),
        (0.0, "0"),
        (0.00001234, "1.23e-05"),
        (20_000_000.0, "20,000,000"),
        (1234.5, "1,234"),
    ],
)
def test_numbers_are_for_people(value: float | None, text: str) -> None:
    """Grouped thousands, no needless digits, small numbers kept."""
    assert number_format.number(value) == text


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (1.097, 1.1, "1.097"),
        (0.09996, 0.1, "0.09996"),
        (1234.6, 1235.0, "1,234.6"),
        (None, 1.0, "n/a"),
    ],
)
def test_a_number_is_not_shown_as_the_bound_that_it_is_not(value: float | None, bound: float, text: str) -> None:
    """A breach by less than a digit would read as if it had been held, and the other way round."""
    assert number_format.beside(value, bound) == text


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
