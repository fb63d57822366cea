"""Which of two metrics decided, from a controller's log and the HPA's status."""

import json

import pytest

from lab.errors import NoData
from lab.measure.winner import CPU, LAG, steps_up

from . import built, whole
from .built import profile

METRICS = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "target": {"type": "AverageValue", "averageValue": "250"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}},
]
CURRENT = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "current": {"averageValue": "40"}}},
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 117}}},
]
WORDS = 'I0101 00:00:{at:09.6f}       1 horizontal.go:{line}] "{words}" {rest}\n'


def line(at, words, rest):
    """A line of the controller's log at ``at`` seconds."""
    return WORDS.format(at=at, line=907, words=words, rest=rest)


def log(metric="cpu resource utilization (percentage of request)"):
    """A sync that goes from 3 to 5 because of ``metric``."""
    proposal = f'desiredReplicas=5 metric="{metric}" tolerances="[down:10.00%, up:10.00%]" timestamp="x" scaleTarget="t"'
    done = 'HPA="t/keda" currentReplicas=3 desiredReplicas=5 reason="r"'
    return line(30.0, "Proposing desired replicas", proposal) + line(30.01, "Successfully rescaled", done)


def hpa(t, desired):
    """A watch event of the HPA."""
    item = whole.hpa(3, 9)
    item["spec"]["metrics"] = METRICS
    item["status"] = {"desiredReplicas": desired, "currentReplicas": 3, "currentMetrics": CURRENT}
    return {"t": t, "kind": "HorizontalPodAutoscaler", "name": "keda", "event": "MODIFIED", "object": json.dumps(item)}


def record(folder, text):
    """A trial whose spike begins at 20 s."""
    given, told = profile(10, 60, (0, "baseline"), (10, "spike"))
    (folder / "hpa.log").write_text(text)
    return built.record(folder, inputs=given, transitions=[hpa(15.0, 3), hpa(30.05, 5)], group_events=told)


@pytest.mark.parametrize(
    ("metric", "won"),
    [
        ("cpu resource utilization (percentage of request)", CPU),
        ("external metric s0-kafka-events(&LabelSelector{MatchLabels:map[string]string{a: b,},})", LAG),
    ],
)
def test_the_winner_is_what_the_controller_named(tmp_path, metric, won):
    """And each metric's own proposal is that of its value: 3 x 117 / 75 is 5, 3 x 40 / 250 is 1."""
    (step,) = steps_up(record(tmp_path, log(metric)))
    assert (step.before, step.after, step.won) == (3, 5, won)
    assert step.proposals == {LAG: 1, CPU: 5}
    assert step.values == {LAG: 40, CPU: 117}
    assert step.largest == 5


def test_a_step_before_the_spike_does_not_count(tmp_path):
    """Starting pods compute as well."""
    with pytest.raises(NoData, match="never went up"):
        steps_up(record(tmp_path, log().replace("00:00:30", "00:00:15")))
