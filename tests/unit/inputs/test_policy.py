"""Policies of every kind are read strictly, and a scale compresses what is time in them."""

import copy

import pytest
import yaml

from lab import paths
from lab.errors import InputError
from lab.inputs import fidelity, policy
from lab.inputs import scale as scales
from lab.inputs.policy import PlainHpa
from lab.inputs.policy import parse_hpa as parse_hpa
from lab.inputs.scaledobject import parse
from lab.inputs.steps import ReplicaSteps, Step
from lab.inputs.steps import parse as parse_steps
from tests.unit.inputs.written import refused

CPU = paths.MANIFESTS / "hpa" / "cpu.yaml"
ON_LAG = paths.MANIFESTS / "hpa" / "zero-4500-hpa.yaml"
UP_AND_DOWN = paths.MANIFESTS / "steps" / "up-and-down.yaml"
COMMITTED = sorted(
    file for kind in ("scaledobjects", "hpa", "controllers", "steps") for file in (paths.MANIFESTS / kind).glob("*.yaml")
)


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_every_committed_policy_is_read_and_compressed(file):
    """All of them, at every scale; a compressed policy is still one that is accepted."""
    given = policy.load(file)
    for name in ("quick", "standard", "real"):
        compressed = given.compressed(scales.load(name))
        assert compressed.min_replicas <= compressed.start <= compressed.max_replicas


def test_an_hpa_on_lag_is_read_and_compressed():
    """A thirtieth of the lag at quick; it begins with a pod, as an HPA wakes only what it has put to sleep itself."""
    given = policy.load(ON_LAG)
    assert isinstance(given, PlainHpa)
    assert (given.min_replicas, given.start, given.utilization, given.lag_threshold) == (0, 1, None, 4500)
    quick = given.compressed(scales.load("quick"))
    assert (quick.lag_threshold, quick.content["spec"]["behavior"]["scaleDown"]["stabilizationWindowSeconds"]) == (150, 2)
    (lag,) = fidelity.lags(given, scales.load("quick"))
    assert (lag.written, lag.applied, lag.rounded, lag.faithful(scales.load("quick"))) == (4500, 150, True, True)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metric", "name"), "s0-kafka-other"),
        (("metric", "selector", "matchLabels"), {"scaledobject.keda.sh/name": "consumer"}),
        (("target",), {"type": "Value", "value": "4500"}),
        (("target", "averageValue"), "4500m"),
    ],
)
def test_another_external_metric_is_one_clear_line(path, value):
    """The lab serves one: the lag of the group, in whole messages."""
    with pytest.raises(InputError, match=r"spec.metrics.*; allowed: one metric: .* External s0-kafka-events"):
        parse_hpa(changed(ON_LAG, ("spec", "metrics", 0, "external", *path), value), "lag.yaml")


def test_policies_have_names_of_their_own():
    """A name means one file, whichever folder it is in."""
    assert len({file.stem for file in COMMITTED}) == len(COMMITTED)


def test_a_plain_hpa_is_known_by_its_target_and_compressed():
    """Bounds, target and name; 300 s of window are 10 s at quick scale, defaults written out."""
    given = policy.load(CPU)
    assert isinstance(given, PlainHpa)
    assert (given.min_replicas, given.max_replicas, given.utilization, given.hpa) == (4, 24, 70, "consumer")
    behavior = given.compressed(scales.load("quick")).content["spec"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleUp"]["policies"][1] == {"type": "Pods", "value": 8, "periodSeconds": 1}


def test_decreed_steps_are_the_same_at_every_scale():
    """A rebalance takes the time it takes."""
    given = policy.load(UP_AND_DOWN)
    assert isinstance(given, ReplicaSteps)
    assert given.steps[:2] == (Step(8, 0), Step(6, 0))
    assert (given.min_replicas, given.max_replicas, given.start, given.hpa) == (6, 8, 6, None)
    assert given.compressed(scales.load("quick")) is given


def test_a_plain_hpa_without_metrics_is_the_api_servers_own():
    """80 % of the CPU, and both directions of a behavior that is not written."""
    given = parse_hpa(changed(CPU, ("spec",), {"maxReplicas": 4}), "cpu.yaml")
    assert (given.min_replicas, given.utilization) == (1, 80)
    behavior = given.compressed(scales.load("quick")).content["spec"]["behavior"]
    assert behavior["scaleDown"] == {
        "stabilizationWindowSeconds": 10,
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
    }


def changed(file, path, value):
    """The file's content with the value at ``path`` replaced."""
    content = copy.deepcopy(yaml.safe_load(file.read_text()))
    at = content
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return content


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("apiVersion",), "autoscaling/v1", "apiVersion: 'autoscaling/v1' | autoscaling/v2"),
        (("spec", "minReplicas"), 30, "spec.minReplicas: 30 | at most maxReplicas, 24"),
        (("spec", "maxReplicas"), 2.5, "spec.maxReplicas: 2.5 | a whole number"),
        (("kind",), "ScaledObject", "kind: 'ScaledObject' | HorizontalPodAutoscaler"),
        (("spec", "metrics"), {}, "spec.metrics: {} | a list of mappings"),
        (("spec", "metrics", 0, "resource", "target"), {"type": "AverageValue", "averageValue": "1"}, "cpu by Utilization"),
        (("spec", "behavior", "scaleUp", "policies"), [], "spec.behavior.scaleUp.policies: [] |"),
        (("spec", "behavior", "scaleUp", "tolerance"), -1, "spec.behavior.scaleUp.tolerance: -1 |"),
        (("spec", "metrics", 0, "resource", "name"), "gpu", "spec.metrics[0].resource.name"),
        (("spec", "metrics", 0, "resource", "name"), "memory", "cpu by Utilization"),
        (("spec", "metrics", 0, "resource", "target", "type"), "Value", "spec.metrics[0].resource.target"),
        (("spec", "metrics", 0, "resource", "target", "averageUtilization"), 0, "averageUtilization: 0 |"),
        (("spec", "behavior", "scaleUp", "policies", 0, "type"), "Half", "spec.behavior.scaleUp.policies[0].type: 'Half'"),
        (("spec", "behaviour"), {}, "spec.behaviour: {} | one of the fields"),
    ],
)
def test_a_bad_hpa_is_one_clear_line(path, value, line):
    """File, field, value and what is allowed."""
    said = refused(parse_hpa, changed(CPU, path, value), "cpu.yaml")
    assert line in said
    assert said.startswith("cpu.yaml: ")


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        (("spec", "replicas"), 0, "spec.replicas: 0 | a number from 1 to 200"),
        (("spec", "holdSeconds"), 0.1, "spec.holdSeconds: 0.1 | a number from 0.5 to 600"),
        (("spec", "steps"), "up", "spec.steps: 'up' |"),
        (("spec", "steps", 1), {}, "spec.steps[1]: {} | one of"),
        (("spec", "steps", 1), {"replica": 3}, "spec.steps[1].replica: 3 |"),
        (("spec", "steps", 1, "replicas"), 1000, "spec.steps[1].replicas: 1000 |"),
    ],
)
def test_bad_steps_are_one_clear_line(path, value, line):
    """File, field, value and what is allowed."""
    assert line in refused(parse_steps, changed(UP_AND_DOWN, path, value), "steps.yaml")


def test_another_kind_is_refused(tmp_path):
    """A Deployment decides nothing."""
    file = tmp_path / "x.yaml"
    file.write_text("kind: Deployment\n")
    with pytest.raises(InputError, match="kind: 'Deployment' is not allowed; allowed: one of ScaledObject"):
        policy.load(file)


def test_cached_metrics_are_a_flag_of_the_trigger():
    """A word instead of true or false is refused; an unknown field of the trigger too."""
    lag = paths.MANIFESTS / "scaledobjects" / "lag.yaml"
    with pytest.raises(InputError, match=r"spec.triggers\[0\].useCachedMetrics: 'yes' is not allowed; allowed: true or false"):
        parse(changed(lag, ("spec", "triggers", 0, "useCachedMetrics"), "yes"), "lag.yaml")
    with pytest.raises(InputError, match=r"spec.triggers\[0\].cached: True is not allowed"):
        parse(changed(lag, ("spec", "triggers", 0, "cached"), True), "lag.yaml")
