"""The hand-rolled controller's policy and decision: its hysteresis; in all else it decides as the HPA does."""

import copy
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from lab import paths, yamlfile
from lab.inputs import controller, policy
from lab.inputs import scale as scales
from lab.model import hpa, keda
from lab.model.hpa import State, decide_on_lag
from tests.unit.inputs.written import refused

FOLDER = paths.MANIFESTS / "controllers"
EVEN = yamlfile.read(FOLDER / "controller-4500.yaml")
LAGS = st.lists(st.integers(0, 150_000), min_size=1, max_size=40)


def parsed(**changes):
    """The committed policy with fields of its spec changed."""
    content = copy.deepcopy(EVEN)
    content["spec"] |= changes
    return controller.parse(content, "policy.yaml")


def walk(chosen, replicas, lags, every=15.0):
    """(replicas before, lag, replicas after) of each sync of a walk."""
    state, steps = State(), []
    for index, lag in enumerate(lags):
        decision, state = decide_on_lag(chosen, state, replicas, lag, index * every)
        steps.append((replicas, lag, decision.desired))
        replicas = decision.desired
    return steps


@given(st.floats(1, 3), st.floats(0, 1), st.integers(4, 24), LAGS)
def test_the_hysteresis_is_honoured(up_at, down_at, replicas, lags):
    """Up only above upAt, down only below downAt; between them nothing changes."""
    chosen = parsed(upAt=up_at, downAt=down_at)
    for before, lag, after in walk(chosen, replicas, lags):
        ratio = lag / (4500 * before)
        assume(abs(ratio - up_at) > 1e-6)  # a tolerance is a quantity: 1e-9 is its last digit
        assume(abs(ratio - down_at) > 1e-6)
        assert after <= before or ratio > up_at
        assert after >= before or ratio < down_at


@given(st.integers(0, 40), LAGS, st.sampled_from([0.5, 15.0, 40.0]))
def test_with_the_hpas_hysteresis_it_decides_as_kedas_hpa(replicas, lags, every):
    """Policy controller-4500 is lag-4500 by another hand: the same replicas at every sync, on the HPA that KEDA makes."""
    made = keda.hpa(policy.load(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml"), {"TOPIC": "events"})
    spec, state, current, expected = hpa.parse(made, "lag-4500"), State(), replicas, []
    for index, lag in enumerate(lags):
        decision, state = hpa.decide(spec, state, current, [hpa.external(lag)], index * every)
        current = decision.desired
        expected.append(current)
    assert [after for *_, after in walk(parsed(), replicas, lags, every)] == expected


def test_a_scale_compresses_its_times_and_no_ratio():
    """At quick scale a sync of 15 s is one of 0.5 s, and 300 s of window are 10 s, also where no behavior is written."""
    small: Any = policy.load(FOLDER / "controller-4500-held.yaml").compressed(scales.load("quick"))
    spec = small.content["spec"]
    assert (spec["syncSeconds"], spec["upAt"], spec["downAt"], spec["lagThreshold"]) == (0.5, 1.1, 0.06, 150)
    assert spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert small.spec.behavior.up.policies[1].period_s == 1
    plain = parsed(behavior=None)
    assert [after for *_, after in walk(plain, 4, [300_000] * 3)] == [8, 16, 24]
    assert plain.compressed(scales.load("quick")).content["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert plain.compressed(scales.Scale("dense", time=1, rate=4)).lag_threshold == 18_000


def test_committed_policies_differ_from_kedas_in_what_they_say_they_do():
    """Floor, ceiling, threshold and behavior are those of lag-4500; only the held one has another hysteresis."""
    keda_spec = yamlfile.read(paths.MANIFESTS / "scaledobjects" / "lag-4500.yaml")["spec"]
    held = yamlfile.read(FOLDER / "controller-4500-held.yaml")["spec"]
    assert EVEN["spec"] == held | {"downAt": 0.9}
    assert EVEN["spec"]["behavior"] == keda_spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert EVEN["spec"]["minReplicas"] == keda_spec["minReplicaCount"]
    assert EVEN["spec"]["maxReplicas"] == keda_spec["maxReplicaCount"]
    assert str(EVEN["spec"]["lagThreshold"]) == keda_spec["triggers"][0]["metadata"]["lagThreshold"]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"lagThreshold": 0}, "lagThreshold: 0 | a whole number from 1 to 1000000000"),
        ({"minReplicas": 25}, "minReplicas: 25 | at most maxReplicas, 24"),
        ({"minReplicas": 0}, "minReplicas: 0 | a whole number from 1 to 100000 pods"),
        ({"syncSeconds": 0}, "syncSeconds: 0 | a number from 0.1 to 3600"),
        ({"upAt": 0.9}, "upAt: 0.9 | a number from 1 to 1000"),
        ({"downAt": 1.2}, "downAt: 1.2 | a number from 0 to 1"),
        ({"scaleTargetRef": {}}, "scaleTargetRef.name: missing | the name of the Deployment that is scaled"),
        ({"scaleTargetRef": {"name": "x", "kind": "Job"}}, "scaleTargetRef.kind: 'Job' |"),
        ({"tolerance": 0.1}, "tolerance: 0.1 | one of the fields behavior, downAt, "),
        ({"behavior": []}, "behavior: [] | a mapping"),
        ({"behavior": {"scaleDown": {"tolerance": "0.5"}}}, "behavior.scaleDown.tolerance: '0.5' | none: downAt says it"),
    ],
)
def test_a_bad_field_is_one_clear_line(change, line):
    """File, field, value and what is allowed."""
    assert refused(parsed, **change).startswith(f"policy.yaml: spec.{line}")


def test_another_kind_or_a_stray_field_is_refused():
    """It is not a Kubernetes object, and says so by having no apiVersion."""
    assert "kind: 'ScaledObject' | LagController" in refused(controller.parse, EVEN | {"kind": "ScaledObject"}, "x")
    line = "apiVersion: 'v1' | one of the fields kind, metadata, spec"
    assert line in refused(controller.parse, EVEN | {"apiVersion": "v1"}, "x")
