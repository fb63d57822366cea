"""Which of two metrics decided, from a controller's log and the HPA's status."""

import json

import pytest

from tests.scenarios.payments.measure.winning_metric import CPU, LAG, winning_metric
from tests.unit.measure import built, whole
from tests.unit.measure.built import profile

METRICS = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "target": {"type": "AverageValue", "averageValue": "250"}}},
    {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 75}}},
]
CURRENT = [
    {"type": "External", "external": {"metric": {"name": "s0"}, "current": {"averageValue": "40"}}},
    {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 117}}},
]


def log(metric="cpu resource utilization (percentage of request)"):
    """A sync that goes from 3 to 5 because of ``metric``."""
    proposal = f'desiredReplicas=5 metric="{metric}" tolerances="[down:10.00%, up:10.00%]" timestamp="x" scaleTarget="t"'
    done = 'HPA="t/keda" currentReplicas=3 desiredReplicas=5 reason="r"'
    lines = ((30.0, "Proposing desired replicas", proposal), (30.01, "Successfully rescaled", done))
    return "".join(f'I0101 00:00:{at:09.6f}       1 horizontal.go:907] "{words}" {rest}\n' for at, words, rest in lines)


def hpa(t, desired, **spec):
    """A watch event of the HPA."""
    item = whole.hpa(3, 50)
    item["spec"] |= {"metrics": METRICS} | spec
    item["status"] = {"desiredReplicas": desired, "currentReplicas": 3, "currentMetrics": CURRENT}
    return {"t": t, "kind": "HorizontalPodAutoscaler", "name": "keda", "event": "MODIFIED", "object": json.dumps(item)}


def record(folder, text, **spec):
    """A trial whose spike begins at 20 s."""
    given, told = profile(10, 60, (0, "baseline"), (10, "spike"))
    (folder / "hpa.log").write_text(text)
    return built.record(folder, inputs=given, transitions=[hpa(15.0, 3, **spec), hpa(30.05, 5, **spec)], group_events=told)


EXTERNAL = "external metric s0-kafka-events(&LabelSelector{MatchLabels:map[string]string{a: b,},})"


@pytest.mark.parametrize(("named", "won"), [({}, CPU), ({"metric": EXTERNAL}, LAG)])
def test_the_winner_is_what_the_controller_named(tmp_path, named, won):
    """And each metric's own proposal is that of its value: 3 x 117 / 75 is 5, 3 x 40 / 250 is 1."""
    found = winning_metric(record(tmp_path, log(**named)))
    (step,) = found.steps
    assert (step.before, step.after, step.won) == (3, 5, won)
    assert (step.proposals, step.values) == ({LAG: 1, CPU: 5}, {LAG: 40, CPU: 117})
    assert (found.first_on_cpu.value, found.off_largest.value, found.most_by_lag.value) == (won == CPU, 0, 1)


def test_an_hpa_with_a_tolerance_of_its_own_proposes_by_that(tmp_path):
    """117 / 75 is within 1.6: by its own rules this HPA's CPU asks for nothing, and its step is not the largest proposal."""
    up = {"tolerance": "0.6", "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}]}
    made = record(tmp_path, log(), behavior={"scaleUp": up})
    assert winning_metric(made).steps[0].proposals == {LAG: 1, CPU: 3}
    assert (winning_metric(made).off_largest.value, winning_metric(made).first_on_cpu.value) == (1, 1)


@pytest.mark.parametrize(
    ("told", "instead", "why"),
    [
        ("desiredReplicas=5 reason", "desiredReplicas=6 reason", "proposal in the HPA's status"),
        ("00:00:30", "00:00:15", "never went up"),  # before the spike: starting pods compute as well
    ],
)
def test_a_step_whose_proposals_are_not_known_is_no_data(tmp_path, told, instead, why):
    """Rather than a step to the largest of nothing; nor does one before the spike count."""
    assert why in winning_metric(record(tmp_path, log().replace(told, instead))).off_largest.why
