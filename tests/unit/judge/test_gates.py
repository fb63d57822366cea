"""A gate is at most its bound; what fails one is neither a pass nor a breach."""

import pytest

from lab.judge.claim import BREACHED, HELD, INVALID, NO_DATA, judge
from lab.judge.gates import GATES, VALID, invalid, judge_gates, reason, word
from lab.judge.quantity import Quantity


def quantities(**values):
    """A function that returns each gate's quantity: 0, or as given."""
    return lambda name: Quantity(name, "x", values.get(name, 0.0), "" if values.get(name, 0.0) is not None else "not recorded")


def test_every_gate_says_why_and_where_its_bound_is_from():
    """Each is a control, and held at its bound itself."""
    for gate in GATES:
        assert gate.why
        assert gate.bound.source
        at, over = gate.judge(Quantity("x", "x", gate.bound)), gate.judge(Quantity("x", "x", gate.bound * 1.01))
        kind = "control" if gate.decides else "claim"
        assert (at.verdict, over.verdict, at.kind, at.source) == (HELD, BREACHED, kind, gate.bound.source)


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


@pytest.mark.parametrize("value", [1.0, 3.0, None])
def test_a_claim_on_an_invalid_trial_is_neither(value):
    """Held, breached or without data: its number stays, its verdict is "invalid", and the reason is beside it."""
    before = judge(Quantity("flips", "flips", value, "" if value else "no samples") <= 2, "it is calm", kind="invariant")
    after = invalid(before, "steal 0.3")
    assert (after.verdict, after.measured, after.bound, after.kind) == (INVALID, value, 2, "invariant")
    assert "steal 0.3" in after.note
    assert (value is not None) or "no samples" in after.note
    assert "invalid" in str(after)
