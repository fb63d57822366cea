"""The waits between the attempts at a message, from a record whose every number is known."""

import pytest

from tests.scenarios.zero_loss.measure.retries import retry_waits
from tests.unit.measure import built
from tests.unit.measure.conftest import report


def failed(t, pod, attempts, offset=7, event="failed"):
    """A consumer's report of an attempt that failed, or of one that succeeded after ``attempts`` - 1."""
    return report(t, pod, event, partition=1, offset=offset, attempts=attempts)


def test_waits_between_attempts_are_compared_with_their_delays(tmp_path):
    """Of the message that another pod or container begins anew no wait is known."""
    events = [
        *(failed(10, "a", 1), failed(11, "a", 2), failed(13.5, "a", 3), failed(17.5, "a", 4, event="recovered")),
        *(failed(20, "b", 1), report(20.1, "b", "revoked", partitions=[1], owned=0), failed(21.5, "c", 1)),
        *(report(22, "c", "started", created=22.0), failed(40, "c", 1), failed(42, "c", 2, event="recovered")),
    ]
    inputs = {"workload": {"fail_rate": 0.01, "retry_ms": "1000,2000,4000"}, "scale": {"name": "real", "time": 1, "rate": 1}}
    found = retry_waits(built.record(tmp_path, inputs=inputs, group_events=events))
    assert (found.waits.value, found.shortest.value, found.longest_s.value, found.delays_s) == (4, 1.0, 4.0, (1.0, 2.0, 4.0))
    assert found.middle.value == pytest.approx((1 + 1.25) / 2)


def test_without_a_second_attempt_there_is_no_wait(tmp_path):
    """No data."""
    inputs = {"workload": {"fail_rate": 0.01}}
    assert "tried again" in retry_waits(built.record(tmp_path, inputs=inputs, group_events=[failed(1, "a", 1)])).waits.why
