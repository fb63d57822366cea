"""The HPA model by itself: the documented facts, and what it refuses."""

import math
from contextlib import nullcontext

import pytest

from lab.inputs import hpa_spec
from lab.model import hpa
from tests.unit.inputs.written import refused

T = 100  # lagThreshold
LAG = {"type": "External", "external": {"metric": {"name": "lag"}, "target": {"type": "AverageValue", "averageValue": str(T)}}}


def parsed(metrics=(LAG,), least=1, most=100, **spec):
    """An HPA as the model takes it."""
    spec = {"minReplicas": least, "maxReplicas": most, "metrics": list(metrics)} | spec
    content = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    return hpa.parse(content, "hpa.yaml")


def walk(spec, replicas, lags, every=15.0):
    """The replicas after each sync of a walk; a lag of None is a metric that can't be had."""
    state, series = hpa.State(), []
    for index, lag in enumerate(lags):
        observed = [None if lag is None else hpa.external(lag)]
        decision, state = hpa.decide(spec, state, replicas, observed, index * every)
        replicas = decision.desired
        series.append(replicas)
    return series


def pods_down(pods, window_s, period_s=15):
    """A behavior down."""
    policy = {"type": "Pods", "value": pods, "periodSeconds": period_s}
    return {"scaleDown": {"stabilizationWindowSeconds": window_s, "policies": [policy]}}


def aimed(**target):
    """LAG with another target."""
    return LAG | {"external": LAG["external"] | {"target": target}}


WITH, WITHOUT, ZERO = parsed(behavior={}), parsed(), parsed(least=0, behavior=pods_down(1, 30))
# What the documentation and the source say: an HPA, the replicas at first, the lag at each sync, the replicas after each.
FACTS = {
    "up: max of 4 pods and 100 % per 15 s": (WITH, 2, [24 * T] * 4, [6, 12, 24, 24]),
    "up without a behavior: max(2 x replicas, 4)": (WITHOUT, 2, [24 * T] * 5, [4, 8, 16, 24, 24]),
    "min 0: a window without lag puts to sleep": (ZERO, 2, [0] * 4, [2, 2, 1, 0]),
    "min 0: one message wakes": (ZERO, 1, [0, 0, 0, 0, 1, 1], [1, 1, 0, 0, 1, 1]),
    "min 0: more lag wakes by the policies": (ZERO, 1, [0, 0, 0, 24 * T, 24 * T], [1, 1, 0, 4, 8]),
    "min 0: no metric does not wake": (ZERO, 1, [0, 0, 0, None], [1, 1, 0, 0]),
    "it wakes only what it has put to sleep": (parsed(least=0, behavior={}), 0, [24 * T] * 3, [0, 0, 0]),
    "0 replicas switch it off": (WITH, 0, [24 * T] * 3, [0, 0, 0]),
    # KEDA caps the metric at P x T; 24 / 22 = 1.09 is within the tolerance of 0.1.
    "at the cap 21 of 24 scale": (WITH, 21, [24 * T], [24]),
    "at the cap 22 of 24 stand still": (WITH, 22, [24 * T] * 3, [22, 22, 22]),
    "a tolerance of 0 ends that": (parsed(behavior={"scaleUp": {"tolerance": "0"}}), 22, [24 * T], [24]),
    "P + 1, which the tolerance keeps": (WITH, 20, [24.5 * T, 24.5 * T, 24 * T], [25, 25, 25]),
    "the window down takes the largest, for 300 s": (WITH, 10, [10 * T] * 2 + [T] * 20, [10] * 21 + [1]),
    "without a behavior its edge counts": (WITHOUT, 10, [10 * T] * 2 + [T] * 21, [10] * 22 + [1]),
    "without a behavior it also scales up": (WITHOUT, 2, [24 * T, T, T, T], [4, 8, 16, 24]),
    "with one it does not": (WITH, 2, [24 * T, T, T, T], [6, 6, 6, 6]),
    "below min the metrics are not looked at": (parsed(least=2, most=8), 1, [None], [2]),
    "nor above max": (parsed(least=2, most=8), 9, [None], [8]),
}


@pytest.mark.parametrize("fact", FACTS)
def test_a_walk_is_as_documented(fact):
    """Syncs every 15 s."""
    spec, replicas, lags, series = FACTS[fact]
    assert walk(spec, replicas, lags) == series


def test_the_log_can_be_read():
    """With every number that went into the decision."""
    rules = {"scaleUp": {"stabilizationWindowSeconds": 0}}
    decision, _ = hpa.decide(parsed(behavior=rules), hpa.State(), 2, [hpa.external(2400)], 0)
    assert decision.reasons == (
        "External lag: 2400 / (100 x 2) = 12, not within 0.9 to 1.1: ceil(2400 / 100) = 24",
        "scaleUp Max of Pods 4 per 15 s from 2 -> 6, Percent 100 per 15 s from 2 -> 4: 6",
        "ScaleUpLimit: 24 -> 6",
        "2 -> 6",
    )


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"least": -1}, "minReplicas: -1 |"),
        ({"least": 0, "metrics": []}, "minReplicas: 0 | from 1 without an External metric"),
        ({"metrics": [{"type": "Object"}]}, "metrics[0].type: 'Object' |"),
        ({"metrics": [LAG | {"resource": {}}]}, "metrics[0].resource: {} |"),
        (
            {"metrics": [{"type": "External", "external": {"target": {"type": "Value", "value": "5"}}}]},
            "metrics[0].external.metric: missing |",
        ),
        ({"behavior": {"scaleUp": {"selectPolicy": "Most"}}}, "behavior.scaleUp.selectPolicy: 'Most' | Max, Min or Disabled"),
        ({"behavior": pods_down(1, 3601)}, "behavior.scaleDown.stabilizationWindowSeconds: 3601 |"),
        ({"behavior": pods_down(0, 0)}, "behavior.scaleDown.policies[0].value: 0 |"),
        # The controller would read another field than the type says, or ask for nothing.
        ({"metrics": [aimed(type="Value", value="5", averageValue="5")]}, "metrics[0].external.target"),
        ({"metrics": [aimed(type="AverageValue", averageValue="-5")]}, "metrics[0].external.target"),
    ],
)
def test_a_bad_hpa_is_one_clear_line(changes, line):
    """File, field, value and what is allowed; :mod:`tests.unit.inputs.test_policy` has what the lab's own HPAs may say."""
    assert refused(parsed, **changes).startswith(f"hpa.yaml: spec.{line}")


@pytest.mark.parametrize(
    ("text", "milli"),
    [
        *(("100", 100_000), ("1500m", 1500), ("1k", 10**6), ("2Ki", 2_048_000)),
        *(("1e3", 10**6), (0.5, 500), ("1u", 1), ("5.", 5000)),
        *((text, None) for text in ("", "ten", "1 k", "0x10", "1K", None, True, math.inf)),
    ],
)
def test_quantities(text, milli):
    """In milli-units, rounded up; None for what the API server can't parse either ("1K" is Ki or k)."""
    with pytest.raises(ValueError, match="not a quantity") if milli is None else nullcontext():
        assert hpa_spec.milli(hpa_spec.parse_quantity(text)) == milli
