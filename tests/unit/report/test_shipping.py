"""Ship or don't ship: the decision on a user's file by the verdicts of its acceptance, and what is shown of it."""

from dataclasses import replace

import pytest

from lab.report import shipping
from lab.report.session import Advice, Case, Session, Tried
from lab.report.shipping import DO_NOT_SHIP, NO_ANSWER, SHIP

from . import sessions
from .sessions import BREACHED, HELD, INVALID, INVARIANT, NO_DATA

LOST = replace(INVARIANT, objective="lost", verdict="breached")
BLIND = replace(BREACHED, kind="control")


def case(*rows, outcome="passed", remark=""):
    """A test with these verdicts."""
    return Case("a.py::test_it", "acceptance", outcome=outcome, remark=remark, rows=list(rows))


@pytest.mark.parametrize(
    ("tests", "word", "decided"),
    [
        ([case(HELD, INVARIANT)], SHIP, ["reaction", "reaction"]),
        ([case(HELD, BREACHED, outcome="failed")], DO_NOT_SHIP, ["drain"]),
        ([case(HELD, NO_DATA, BREACHED, outcome="failed")], DO_NOT_SHIP, ["drain"]),
        ([case(HELD, LOST, outcome="failed")], DO_NOT_SHIP, ["lost"]),
        ([case(HELD, replace(BREACHED, as_expected=True))], DO_NOT_SHIP, ["drain"]),
        ([case(HELD, outcome="failed", remark="assert 3 == 4")], DO_NOT_SHIP, []),
        ([case(HELD, NO_DATA, outcome="failed")], NO_ANSWER, ["idle"]),
        ([case(HELD, BLIND, outcome="failed")], NO_ANSWER, ["drain"]),
        ([case(INVALID, HELD, outcome="broken", remark="invalid: steal")], NO_ANSWER, []),
        ([case(BREACHED, outcome="broken", remark="a broker died")], NO_ANSWER, []),
        ([case(HELD), case(outcome="not run")], NO_ANSWER, []),
        ([case(outcome="skipped")], NO_ANSWER, []),
        ([case()], NO_ANSWER, []),
        ([], NO_ANSWER, []),
    ],
)
def test_one_breach_is_enough_and_what_is_missing_is_no_pass(tests, word, decided):
    """Nothing is concluded from a broken trial, nor from a figure that is not there; no answer says why."""
    found = shipping.decide("my.yaml", tests)
    assert (found.word, [row.objective for row in found.rows]) == (word, decided)
    assert found.rows or found.why
    assert str(found) == f"my.yaml: {word}"


def test_a_session_that_was_stopped_ships_nothing():
    """Its breaches stay breaches."""
    assert shipping.decide("my.yaml", [case(HELD)], "interrupted") == shipping.Decision("my.yaml", NO_ANSWER, [], "interrupted")
    assert shipping.decide("my.yaml", [case(BREACHED, outcome="failed")], "interrupted").word == DO_NOT_SHIP


def test_a_verdict_that_decides_has_its_number_and_its_bound():
    """And why it has none. A session of the lab's own experiments decides nothing."""
    found = shipping.decide("my.yaml", [case(NO_DATA, BREACHED, outcome="failed")])
    assert found.lines == ["✘ drain: 1.62 x, wanted < 1.5 x"]
    assert shipping.decide("my.yaml", [case(NO_DATA)]).lines == ["? idle: n/a, wanted < 90 s (no spike)"]
    assert shipping.of(Session(tests=[case(HELD)])) is None


def test_a_policy_is_no_cure_for_what_is_lost():
    """A change is looked for where a claim was breached, and nowhere else."""
    words = {"claim": case(LOST, BREACHED, outcome="failed"), "invariant": case(LOST, outcome="failed"), "held": case(HELD)}
    assert [name for name, one in words.items() if shipping.decide("my.yaml", [one]).is_of_the_policy] == ["claim"]


@sessions.everywhere
def test_the_word_is_shown_everywhere(page):
    """With the file's name and what decides; the pages show what to change, and how that did."""
    advice = Advice(
        "--- a/my.yaml\n+++ b/my.yaml\n-  a: 1 & 3\n+  a: 2", ["a 1 -> 2"], Tried(SHIP, ["✔ flips: 0"], "changed/report.html")
    )
    text = page([BREACHED], outcomes={BREACHED.experiment: "failed"}, brought="my.yaml", advice=advice)
    told = sessions.plain(text)
    assert told.index("my.yaml: don't ship") < told.index("1 claim was breached.") or page is sessions.terminal
    assert "drain: 1.62 x, wanted" in told
    if page is not sessions.terminal:
        for words in ("-  a: 1 & 3", "a 1 -> 2", "With that change: ship", "✔ flips: 0"):
            assert words in told
    assert "ship" not in page([BREACHED])
