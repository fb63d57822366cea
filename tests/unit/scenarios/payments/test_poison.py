"""What a poison did to a group, from a record whose every number is known."""

import pytest

from lab.record.trial import Offsets
from tests.scenarios.payments.measure.poison import poison_stall
from tests.unit.measure import built, whole
from tests.unit.measure.conftest import deployment, report

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
