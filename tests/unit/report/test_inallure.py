"""What Allure shows of a test: the answer and its chart first, then the whole table, then what was asked."""

from __future__ import annotations

import pytest

from lab.report import inallure
from lab.report.session import BROKEN, FAILED, PASSED, Case
from tests.unit.report.sessions import BREACHED, HELD, NO_DATA

NOTE = "Experiment 2: is it fast?\n\nHypothesis. It is, with ``--repeat 6``.\n\nAsserted. It is fast."


def case(**named: object) -> Case:
    """A test with a note."""
    return Case("tests/test_2.py::test_it", "2_reaction", "2 Reaction", "It is fast", NOTE, **named)


def test_the_answer_and_the_chart_come_before_the_table_and_the_note() -> None:
    """One reads what was found, then what was asked and how."""
    text = inallure.description(case(outcome=FAILED, rows=[HELD, BREACHED], picture="<svg/>", alt="a peak", explained=["Why."]))
    places = ["two hot | ones: drain: 1.62 x, wanted &lt; 1.5 x", "<img", "<table>", "is it fast?", "Hypothesis.", "Why."]
    assert [text.index(one) for one in places] == sorted(text.index(one) for one in places)
    assert text.count("<tr>") == 3
    assert "<code>--repeat 6</code>" in text
    assert "``" not in text
    assert 'alt="a peak"' in text


@pytest.mark.parametrize(
    ("test", "word"),
    [
        (case(outcome=PASSED, rows=[HELD]), "held"),
        (case(outcome=FAILED, rows=[HELD, BREACHED]), "breached"),
        (case(outcome=PASSED, rows=[HELD, NO_DATA]), "no data"),
        (case(outcome=BROKEN, remark="LabFault: a broker died"), "broken"),
        (case(outcome=FAILED, remark="AssertionError", rows=[HELD]), "failed"),
        (case(outcome=PASSED), "passed"),
    ],
)
def test_a_test_is_labelled_with_the_pages_word_for_it(monkeypatch: pytest.MonkeyPatch, test: Case, word: str) -> None:
    """By which Allure's categories find it."""
    labels = []
    monkeypatch.setattr("allure.dynamic.label", lambda name, value: labels.append((name, value)))
    inallure.end(test)
    assert labels == [("verdict", word)]


def test_a_test_that_broke_says_by_what() -> None:
    """Also before anything was judged."""
    assert "LabFault: a broker died" in inallure.description(case(outcome=BROKEN, remark="LabFault: a broker died"))
