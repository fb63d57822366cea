"""Restarts and back-offs, from the status of pods."""

import json

from tests.scenarios.payments.measure.casualties import casualties
from tests.unit.measure import built
from tests.unit.measure.conftest import report


def pod(t, name, restarts, state, code=None, app="consumer"):
    """A watch event of a pod whose container was restarted so often, the last time because of ``code``."""
    status = {"restartCount": restarts, "state": state}
    if code is not None:
        status["lastState"] = {"terminated": {"exitCode": code}}
    item = {"metadata": {"name": name, "labels": {"app": app}}, "status": {"containerStatuses": [status]}}
    return {"t": float(t), "kind": "Pod", "name": name, "event": "MODIFIED", "object": json.dumps(item)}


RUNNING, BACK_OFF = {"running": {}}, {"waiting": {"reason": "CrashLoopBackOff"}}


def measured(folder, *rows):
    """The casualties of a trial whose profile began at 10 and which was over at 100."""
    events = [report(10, "producer", "profile", start=10.0)]
    return casualties(built.record(folder, times={"ended": 100.0}, transitions=rows, group_events=events))


def test_restarts_are_counted_once_and_by_how_they_ended(tmp_path):
    """A count that is told again is none more; a pod that waits is in back-off; another app's pods are not counted."""
    found = measured(
        tmp_path,
        pod(12, "a", 0, RUNNING),
        pod(20, "a", 1, RUNNING, 70),
        pod(21, "a", 1, RUNNING, 70),
        pod(25, "a", 1, BACK_OFF, 70),
        pod(30, "a", 2, RUNNING, 70),
        pod(40, "b", 1, RUNNING, 137),
        pod(50, "c", 5, RUNNING, 1, app="lag-exporter"),
        pod(101, "d", 1, RUNNING, 143),  # taken down after the trial
    )
    assert (found.restarts.value, found.pods.value, found.backed_off.value, found.first_s.value) == (3, 2, 1, 10.0)
    assert found.codes == {70: 2, 137: 1}


def test_nobody_fell(tmp_path):
    """None is a number; there is no first one."""
    found = measured(tmp_path, pod(12, "a", 0, RUNNING))
    assert (found.restarts.value, found.backed_off.value, found.first_s.value, found.codes) == (0, 0, None, {})
