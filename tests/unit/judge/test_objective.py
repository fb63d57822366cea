"""Verdicts: the number, the bound and the unit; no data is never a pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.judge.claim import BREACHED, HELD, NO_DATA
from lab.judge.objective import Objective


@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(allow_nan=False, allow_infinity=False))
def test_a_verdict_follows_its_operator(measured, bound):
    """Held exactly when measured < bound."""
    verdict = Objective("reaction", "<", bound, "s", "").judge(measured)
    assert verdict.verdict == (HELD if measured < bound else BREACHED)


def test_no_number_is_no_data():
    """A missing measure is told apart from both outcomes, with what was missing."""
    verdict = Objective("flips", "==", 0, "flips", "").judge(None, "no Deployment")
    assert verdict.verdict == NO_DATA
    assert str(verdict) == "flips: no data (no Deployment); wanted == 0 flips"


def test_not_a_number_is_no_pass():
    """NaN holds no objective."""
    assert Objective("dip", "<", 20, "%", "").judge(float("nan")).verdict == BREACHED


@pytest.mark.parametrize(
    ("value", "text"), [(93.4, "reaction: 93.4 s, wanted < 90 s: breached"), (4, "reaction: 4 s, wanted < 90 s: held")]
)
def test_the_message_carries_number_bound_and_unit(value, text):
    """A reader of the failure needs nothing else."""
    assert str(Objective("reaction", "<", 90, "s", "").judge(value)) == text
