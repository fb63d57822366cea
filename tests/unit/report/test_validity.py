"""Validity in reports: every gate with its number, and no trial that is not valid goes unsaid."""

import pytest

from lab import evidence
from lab.errors import InvalidTrial
from lab.evidence import Evidence
from lab.judge.gates import GATES, judge_gates
from lab.judge.quantity import Quantity
from lab.report.session import Session
from lab.report.summary import Summary
from lab.report.validity import gate_table
from tests.unit.measure.built import record


def judged(**values):
    """The verdicts on all gates: 0, or as given."""
    return judge_gates(lambda name: Quantity(name, "x", values.get(name, 0.0)))


FOUND = {"good": judged(), "bad": judged(steal=0.3), "old": judged(io_pressure=None)}


def test_every_gate_has_a_row_with_its_bound_and_its_source():
    """Beside the numbers of each trial; the first row says which trials are valid."""
    table = gate_table(FOUND)
    assert list(table.head) == ["gate", "good", "bad", "old", "at most", "unit", "source"]
    assert [cell.text for cell in table.cells[0]][:4] == ["validity", "valid", "invalid", "no data"]
    assert [row[0].text for row in table.cells[1:]] == [gate.name for gate in GATES]
    steal = next(row for row in table.cells if row[0].text == "steal")
    assert [cell.text for cell in steal][1:5] == ["0", "0.3", "0", "0.05"]
    assert gate_table({}).html


def test_the_session_says_of_each_trial_whether_it_is_valid_and_why_not(tmp_path):
    """In the summary and on the terminal; a valid trial takes no line there."""
    found = Summary(Session(validity=FOUND).content(tmp_path))
    assert [[cell.text for cell in row] for row in found.validity_table.cells] == [
        ["bad", "invalid", "steal 0.3 x, at most 0.05"],
        ["old", "no data", "no data: io_pressure"],
        ["good", "valid", ""],
    ]
    assert dict(found.terminal)["validity of the trials"] == [
        "3 trials: 1 valid, 1 invalid, 1 no data",
        " invalid  bad: steal 0.3 x, at most 0.05",
        " no data  old: no data: io_pressure",
    ]
    assert "validity of the trials" not in dict(Summary(Session().content(tmp_path)).terminal)


def test_the_session_shows_what_its_gates_ask_for(tmp_path):
    """Each with its bound, its reason and its source, and whether it makes a trial invalid."""
    rows = [[cell.text for cell in row] for row in Summary(Session(validity=FOUND).content(tmp_path)).gates.cells]
    assert [row[0] for row in rows] == [gate.name for gate in GATES]
    assert next(row for row in rows if row[0] == "steal")[1:3] == ["0.05 x", "yes"]
    assert next(row for row in rows if row[0] == "settle")[2] == "no, it is shown"


@pytest.mark.parametrize("value", [1, 5])
def test_a_claim_on_an_invalid_trial_is_no_pass_and_no_breach(value, tmp_path, monkeypatch):
    """Held or not, the test is broken and not failed; the number is kept with the reason beside it."""
    monkeypatch.setattr(evidence, "attach", lambda *_: None)
    monkeypatch.setattr(evidence, "side_by_side", lambda _: {"x": {"trial": 1.0}})
    monkeypatch.setattr(evidence, "judge_validity", lambda _: judged(steal=0.3))
    session = Session()
    with (
        pytest.raises(InvalidTrial, match=r"trial: steal 0\.3 x, at most 0\.05"),
        Evidence("2 reaction", session).of(record(tmp_path), delivery=None) as claim,
    ):
        claim(Quantity("flips", "flips", value) <= 2, "it is calm")
    (row,) = session.rows
    assert (row["verdict"], row["measured"]) == ("invalid", value)
    assert "steal 0.3" in row["note"]
    assert Summary(session.content(tmp_path)).lines[0].startswith(" invalid  claim      flips: ")
    assert list(session.validity) == [tmp_path.name]
