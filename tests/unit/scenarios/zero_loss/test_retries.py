"""The waits between attempts, and the stalls of partitions, from records whose every number is known."""

import pytest

from tests.scenarios.zero_loss.measure.retries import partition_rate, retries, retry_waits, stalls
from tests.unit.measure import built
from tests.unit.measure.built import assigned, given_up, receipt, record
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
    assert (found.waits.value, found.shortest.value) == (4, 1.0)
    assert found.middle.value == pytest.approx((1 + 1.25) / 2)


def test_without_a_second_attempt_there_is_no_wait(tmp_path):
    """No data."""
    inputs = {"workload": {"fail_rate": 0.01}}
    assert "tried again" in retry_waits(built.record(tmp_path, inputs=inputs, group_events=[failed(1, "a", 1)])).waits.why


def head_failed(t, pod, partition, attempts=1):
    """A report of an attempt that failed."""
    return report(t, pod, "failed", partition=partition, offset=1, attempts=attempts)


def over(t, pod, partition, event="recovered"):
    """A report that a head is through."""
    return report(t, pod, event, partition=partition, offset=1, attempts=2)


def test_a_stall_is_from_the_first_failure_to_the_end_where_it_began(tmp_path):
    """One recovered after two failures, one dead; one taken away and one of a container that died have no end here."""
    events = [head_failed(10, "a", 0), head_failed(11, "a", 0, 2), over(13, "a", 0)]
    events += [head_failed(20, "a", 1), over(27, "a", 1, "dead_lettered")]
    events += [head_failed(30, "a", 2), given_up(31, "a", 2), over(32, "a", 2)]
    events += [head_failed(40, "b", 3), report(41, "b", "started"), over(42, "b", 3)]
    found = stalls(record(tmp_path, group_events=events))
    assert [(stall.pod, stall.partition, stall.start, stall.end) for stall in found] == [("a", 0, 10, 13), ("a", 1, 20, 27)]


def retried(folder, during):
    """Forty stalls of 1 s on partition 0 of a pod that does 100/s on partition 1, and ``during``/s while one lasts."""
    events, receipts = [assigned(0, "a", 0, 1)], []
    for number in range(40):
        at = 10 + 3 * number
        events += [head_failed(at, "a", 0), over(at + 1, "a", 0)]
        receipts += [receipt("a", at - 1, at, 100, 1), receipt("a", at, at + 1, during, 1), receipt("a", at - 1, at, 50, 0)]
    return record(folder, group_events=events, receipts=receipts)


@pytest.mark.parametrize("during", [100, 40, 120])
def test_others_are_compared_with_just_before(tmp_path, during):
    """What the pod's other partition does during a stall, over the second before it."""
    found = retries(retried(tmp_path, during))
    assert found.others.value == pytest.approx(during / 100)
    assert (found.stalls.value, found.compared.value, found.median_s.value, found.recovered.value) == (40, 40, 1, 40)


def test_a_pod_with_one_partition_says_nothing_of_others(tmp_path):
    """Nor does one whose partitions changed meanwhile: no data."""
    events = [assigned(0, "a", 0)]
    for number in range(40):
        events += [head_failed(10 + 3 * number, "a", 0), over(11 + 3 * number, "a", 0)]
    receipts = [receipt("b", 0, 200, 1000, 1)]
    found = retries(record(tmp_path, group_events=events, receipts=receipts))
    assert "0 stalls of pods that held other partitions" in found.others.why


def test_a_partition_gives_no_more_than_its_retries_leave():
    """10 ms and no failure: 100/s; 1 % that wait 1, 3 or 7 s and 0.1 % that wait 7 take it down to 19/s."""
    assert partition_rate(0.01, 0, 0, [1, 2, 4]) == pytest.approx(100)
    assert partition_rate(0.01, 0.01, 0.001, [1, 2, 4]) == pytest.approx(1 / (0.01 + 0.11 / 3 + 0.007))


def test_nothing_retried_is_no_data(tmp_path):
    """Not a ratio of 1."""
    found = retries(record(tmp_path, group_events=[assigned(0, "a", 0)]))
    assert "no message was retried" in found.others.why
