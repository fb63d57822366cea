"""Members that pause after a step, by hand and in committed records."""

import pytest

from tests.experiments.measure.stall import stalls
from tests.unit.measure import built
from tests.unit.measure.built import receipt

STEP = {"t": 100.0, "kind": "up", "before": 2, "after": 3, "settled": 101.0, "until": 104.0}


def batches(pod, *spans):
    """A receipt for each span."""
    return [receipt(pod, start, end, 10) for start, end in spans]


def test_a_member_that_sleeps_for_a_second_is_one(tmp_path):
    """One of two sleeps for 0.9 s, the other begins its batches 50 ms apart, and a third joins late: that is no pause.

    A fourth left long before.
    """
    rows = [*batches("a", (99, 99.95), (99.95, 100.7), (101.6, 104)), *batches("b", (99, 99.9), (99.95, 100.1), (100.15, 104))]
    found = stalls(
        built.record(tmp_path, steps=[STEP], receipts=[*rows, *batches("c", (102, 102.5), (103, 104)), *batches("d", (90, 95))])
    )
    assert (found.member_steps.value, found.stalled.value) == (2, 1)
    assert found.longest_s.value == pytest.approx(0.9)


def test_without_a_step_or_a_receipt_there_is_no_data(tmp_path):
    """No member is no proof that none slept."""
    assert "no step" in stalls(built.record(tmp_path, receipts=[])).stalled.why
    assert "no receipts" in stalls(built.record(tmp_path / "idle", steps=[STEP], receipts=[])).stalled.why
