"""A gate is at most its bound; what fails one is neither a pass nor a breach."""

from dataclasses import replace

import pytest

from lab.judge import bounds
from lab.judge.claim import BREACHED, HELD, INVALID, NO_DATA, judge
from lab.judge.gates import GATES, VALID, invalid, judge_gates, reason, remark, word
from lab.judge.quantity import Quantity


def quantities(**values):
    """A function that returns each gate's quantity: 0, or as given."""
    return lambda name: Quantity(name, "x", values.get(name, 0.0), "" if values.get(name, 0.0) is not None else "not recorded")


def test_every_gate_says_why_and_where_its_bound_is_from():
    """Each is a control, and held at its bound itself."""
    for gate in GATES:
        assert gate.why
        assert gate.bound.source
        at, over = gate.judge(Quantity("x", "x", gate.bound)), gate.judge(Quantity("x", "x", gate.bound + 0.01))
        kind = "control" if gate.decides else "claim"
        assert (at.verdict, over.verdict, at.kind, at.source) == (HELD, BREACHED, kind, gate.bound.source)


def test_a_bound_changes_by_decision_alone():
    """Those of the gates, which of them decide (docs/decisions/12), and those that tests share."""
    decide = {"lateness": 1, "steal": 0.05, "io_pressure": 0.2, "memory_pressure": 0.05, "foreign_load": 0.1, "rounding": 0.1}
    decide["schedule"] = 0
    shown = {"cpu_pressure": 0.9, "scrape_gap": 3, "clock": 1, "lag_sum": 0, "order": 0, "settle": 0.5}
    for wanted, decides in ((decide, True), (shown, False)):
        assert {gate.name: gate.bound for gate in GATES if gate.decides is decides} == wanted
    shared = (bounds.REACTION_S, bounds.DIP, bounds.RECOVERY_S, bounds.TIME_BEHIND_S, bounds.DRAIN_OVER_BEST)
    assert (*shared, bounds.MEMORY_AN_HOUR, bounds.CEILING_S) == (90, 0.2, 5, 2, 1.5, 1 / 24, 90)
    assert (bounds.compressed(bounds.REACTION_S, 4), bounds.compressed(bounds.DIP, 2).source) == (22.5, bounds.DIP.source)


@pytest.mark.parametrize("gate", GATES, ids=lambda gate: gate.name)
def test_one_gate_that_fails_decides_or_is_shown(gate):
    """Whatever the others say, the trial is invalid, with number and bound in the reason; else it stays valid."""
    failed = judge_gates(quantities(**{gate.name: 50.0}))
    assert [one.objective for one in failed if one.verdict == BREACHED] == [gate.name]
    said = f"{gate.name} 50 x, at most {gate.bound:g}"
    assert (word(failed), reason(failed)) == ((INVALID, said) if gate.decides else (VALID, ""))
    unknown = judge_gates(quantities(**{gate.name: 50.0, "steal" if gate.name != "steal" else "settle": None}))
    assert word(unknown) == (INVALID if gate.decides else NO_DATA)


def test_a_gate_without_a_number_is_no_pass():
    """The trial is not known to be valid, and not invalid either."""
    unknown = judge_gates(quantities(steal=None))
    assert (word(judge_gates(quantities())), word(unknown), reason(unknown)) == (VALID, NO_DATA, "")


def test_a_remark_says_what_failed_what_is_shown_and_what_is_lacking():
    """In this order; a trial of which nothing is to be said has none."""
    assert remark(judge_gates(quantities())) == ""
    told = remark(judge_gates(quantities(steal=0.06, lateness=1.5, settle=0.7, clock=None, rounding=None)))
    assert (
        told
        == "lateness 1.5 x, at most 1; steal 0.06 x, at most 0.05; shown: settle 0.7 x, at most 0.5; no data: clock, rounding"
    )


@pytest.mark.parametrize("value", [1.0, 3.0, None])
def test_a_claim_on_an_invalid_trial_is_neither(value):
    """Held, breached or without data: its number stays, its verdict is "invalid", and the reason is beside it."""
    before = judge(Quantity("flips", "flips", value, "" if value else "no samples") <= 2, "it is calm", kind="invariant")
    after = invalid(before, "steal 0.3")
    assert (after.verdict, after.measured, after.bound, after.kind) == (INVALID, value, 2, "invariant")
    assert "steal 0.3" in after.note
    assert (value is not None) or "no samples" in after.note
    assert "invalid" in str(after)


def test_verdicts_that_were_read_again_say_the_same():
    """As out of a session's file, where equal words are not one object. What is no control decides nothing."""
    judged = judge_gates(quantities(steal=50.0, settle=0.7, clock=None, rounding=None))
    again = [replace(one, verdict="".join([*one.verdict]), kind="".join([*one.kind])) for one in judged]
    assert (word(again), reason(again), remark(again)) == (word(judged), reason(judged), remark(judged))
    assert word([replace(one, kind="invariant") for one in judged]) == VALID
    for other in ("absent", VALID):  # what no gate is
        assert remark([replace(one, verdict=other) for one in judged]) == ""
