"""A pod's way out, from a record whose every time is known."""

import json

import pytest

from tests.scenarios.payments.measure.shutdown import STEPS, departures, longest_shutdown, shutdowns
from tests.unit.measure import built
from tests.unit.measure.conftest import report


def pod(t, event="MODIFIED", leaving=True, code=None):
    """A watch event of the pod "old"."""
    metadata = {"name": "old", "labels": {"app": "consumer"}}
    if leaving:
        metadata |= {"deletionTimestamp": "1970-01-01T00:01:00Z", "deletionGracePeriodSeconds": 60}
    status = {} if code is None else {"containerStatuses": [{"state": {"terminated": {"exitCode": code}}}]}
    item = json.dumps({"metadata": metadata, "status": status})
    return {"t": t, "kind": "Pod", "name": "old", "event": event, "object": item}


SEEN = [pod(1, "ADDED", leaving=False), pod(20.0), pod(20.9, code=0), pod(21.0, "DELETED", code=0)]
SAID = [
    report(5.0, "old", "subscribed"),
    report(20.5, "old", "draining", abandoned=False, signalled=20.1),
    report(20.6, "old", "committed"),
    report(20.8, "old", "left", committed=True),
]
DONE = [built.receipt("old", 20.0, 20.4, 5) | {"first": 0, "last": 4, "checksum": 0}]


def trial(folder, seen=SEEN, said=SAID, done=DONE, **more):
    """A record of what the watch saw, what the pod said and what it has done."""
    return built.record(folder, transitions=seen, group_events=said, receipts=done, **more)


def test_each_step_has_its_time_after_the_deletion(tmp_path):
    """All six, in order, and the exit: the one pod that was taken from its work left within 0.7 s.

    A commit after leaving is out of order. What goes after the trial is no scale-down: the lab takes its own pods down then.
    """
    record = trial(tmp_path)
    (found,) = shutdowns(record)
    assert list(found.steps) == list(STEPS)
    assert [*found.steps.values()] == pytest.approx([0.1, 0.4, 0.5, 0.6, 0.8, 0.9])
    assert (found.exit_code, found.grace_s, found.gone_s) == (0, 60, pytest.approx(1.0))
    assert departures(record).values == {"pods": 1, "out_of_order": 0, "failed": 0}
    assert longest_shutdown(record).value == pytest.approx(0.7)
    late = [SAID[0], SAID[1], report(20.95, "old", "committed"), SAID[3]]
    assert departures(trial(tmp_path / "late", said=late)).out_of_order.value == 1
    assert "no consumer pod was deleted" in departures(trial(tmp_path / "over", times={"ended": 10})).pods.why


@pytest.mark.parametrize(
    ("gone", "code", "said", "joined", "counts", "why"),
    [
        (80.0, 137, SAID[:1], True, (1, 1, 1), "left the group"),
        (20.1, 143, [], False, (0, 0, 0), "no pod that had joined"),
    ],
)
def test_a_pod_that_was_killed_says_nothing(tmp_path, gone, code, said, joined, counts, why):
    """No step, no order, its exit code as it was. One that was taken while it started may be ended by the signal itself."""
    record = trial(tmp_path, [*SEEN[:2], pod(gone, code=code), pod(gone + 0.1, "DELETED", code=code)], said, DONE * joined)
    (found,) = shutdowns(record)
    assert (found.joined, found.in_order, found.exit_code) == (joined, False, code)
    assert tuple(departures(record).values.values()) == counts
    assert why in longest_shutdown(record).why
