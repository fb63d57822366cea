"""What a poison did to a group and to its pods, from records whose every number is known."""

import json

import pytest

from lab.record.trial import Offsets
from tests.scenarios.payments.measure.casualties import casualties
from tests.scenarios.payments.measure.poison import poison_stall
from tests.unit.measure import built, whole
from tests.unit.measure.conftest import deployment, report

POLICY = whole.scaled(250, minReplicaCount=3)
MOVES = [deployment(5, 3, 3), deployment(40, 6, 6), deployment(70, 3, 3), deployment(90, 2, 2)]


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
    """500 messages wait behind the poison, with three pods above the floor for half a minute; a commit past it is progress."""
    found = poison_stall(record(tmp_path, 400))
    assert (found.progress.value, found.waiting.value, found.others.value) == (0, 500, 10)
    assert (found.most.value, found.scale_ups.value, found.useless.value) == (6, 1, pytest.approx(1.5))
    moved_on = poison_stall(record(tmp_path, 895))
    assert (moved_on.progress.value, moved_on.waiting.value) == (495, 5)
    assert "no poison" in poison_stall(record(tmp_path, 400, poison="")).progress.why


def pod(t, name, restarts, state, app="consumer"):
    """A watch event of a pod whose container was restarted so often."""
    status = {"restartCount": restarts, "state": state}
    item = {"metadata": {"name": name, "labels": {"app": app}}, "status": {"containerStatuses": [status]}}
    return {"t": float(t), "kind": "Pod", "name": name, "event": "MODIFIED", "object": json.dumps(item)}


RUNNING, BACK_OFF = {"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}


def measured(folder, *rows):
    """The casualties of a trial whose profile began at 10 and which was over at 100."""
    events = [report(10, "producer", "profile", start=10.0)]
    return casualties(built.record(folder, times={"ended": 100.0}, transitions=rows, group_events=events))


def test_restarts_are_counted_once(tmp_path):
    """A count that is told again is none more; a pod that waits is in back-off; another app's pods are not counted."""
    rows = [pod(12, "a", 0, RUNNING), pod(20, "a", 1, RUNNING), pod(21, "a", 1, RUNNING), pod(25, "a", 1, BACK_OFF)]
    rows += [pod(30, "a", 2, RUNNING), pod(40, "b", 1, RUNNING), pod(50, "c", 5, RUNNING, app="lag-exporter")]
    found = measured(tmp_path, *rows, pod(101, "d", 1, RUNNING))  # the last is taken down after the trial
    assert (found.restarts.value, found.pods.value, found.backed_off.value, found.first_s.value) == (3, 2, 1, 10.0)
    found = measured(tmp_path, rows[0])  # none is a number, and there is no first one
    assert (found.restarts.value, found.backed_off.value, found.first_s.value) == (0, 0, None)
