"""What a poison did to a group, from a record whose every number is known."""

import pytest

from lab.measure.failures import poison_stall, retry_waits
from lab.record.trial import Offsets

from . import built, whole
from .conftest import deployment, report

POLICY = whole.scaled(250, minReplicaCount=3)
MOVES = [deployment(5, 3, 3), deployment(40, 6, 6), deployment(70, 3, 3)]


def record(folder, committed, poison="1:400"):
    """A trial from 10 to 100 s that wanted 6 replicas for 30 s of it."""
    inputs = {"policy": POLICY, "workload": {"poison": poison}}
    pods = [built.pod(0, "a", "ADDED")]
    events = [report(10, "producer", "profile", start=10.0)]
    receipts = [built.receipt("a", 20, 21, 1) | {"first": 0, "last": 0, "checksum": 0}]
    offsets = {0: Offsets(500, 490), 1: Offsets(900, committed)}
    tables = {"transitions": [*pods, *MOVES], "group_events": events, "receipts": receipts}
    return built.record(folder, inputs=inputs, offsets=offsets, **tables)


def test_a_stall_makes_no_progress_and_buys_pods(tmp_path):
    """500 messages wait behind the poison; three pods above the floor for half a minute."""
    found = poison_stall(record(tmp_path, 400))
    assert (found.partition, found.progress.value, found.waiting.value, found.others.value) == (1, 0, 500, 10)
    assert (found.most.value, found.scale_ups.value) == (6, 1)
    assert found.useless.value == pytest.approx(1.5)


def test_a_partition_that_moved_on_did(tmp_path):
    """What was committed past the poison."""
    found = poison_stall(record(tmp_path, 895))
    assert (found.progress.value, found.waiting.value) == (495, 5)


def test_without_a_poison_there_is_nothing_to_measure(tmp_path):
    """No data."""
    assert "no poison" in poison_stall(record(tmp_path, 400, poison="")).progress.why


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
