"""The strict view of a ScaledObject: what is refused, and what a scale makes of the rest."""

import copy
from typing import Any

import pytest
import yaml

from lab import paths
from lab.inputs.policy import load
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import parse
from tests.unit.inputs.written import refused

FILE = paths.MANIFESTS / "scaledobjects" / "lag.yaml"


def changed(path, value):
    """The committed policy with one field set (or removed, for None)."""
    content = copy.deepcopy(yaml.safe_load(FILE.read_text()))
    place = content
    for part in path[:-1]:
        place = place[part]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return content


KAFKA = ("spec", "triggers", 0, "metadata")
ADVANCED = ("spec", "advanced", "horizontalPodAutoscalerConfig")
BEHAVIOR = "spec.advanced.horizontalPodAutoscalerConfig.behavior"


@pytest.mark.parametrize(
    ("path", "value", "line"),
    [
        ((*KAFKA, "lagThreshold"), "0", "lagThreshold: '0' | a whole number from 1, as a string"),
        ((*KAFKA, "lagThreshold"), 1000, "lagThreshold: 1000 | a string: quote it"),
        (("spec", "minReplicaCount"), 30, "spec.minReplicaCount: 30 | at most maxReplicaCount, 24"),
        (("spec", "minReplicas"), 3, "spec.minReplicas: 3 | minReplicaCount: KEDA ignores minReplicas"),
        (("spec", "pollingIntervall"), 3, "spec.pollingIntervall: 3 | one of the fields "),
        ((*KAFKA, "limitToPartitionsWithLag"), "true", 'limitToPartitionsWithLag is "true": KEDA refuses the pair'),
        (("spec", "triggers", 0, "type"), "rabbitmq", "spec.triggers[0].type: 'rabbitmq' | kafka"),
        ((*KAFKA, "bootstrapServersFromEnv"), None, "bootstrapServers: None |"),
        ((*KAFKA, "lagTreshold"), "5", "lagTreshold: '5' | one of the fields "),
        (("spec", "advanced"), "fast", "spec.advanced: 'fast' | a mapping"),
        (ADVANCED, ["behavior"], "spec.advanced.horizontalPodAutoscalerConfig: ['behavior'] |"),
        (("metadata", "annotations"), [1], "metadata.annotations: [1] | a mapping"),
        ((*ADVANCED, "behavior"), [], f"{BEHAVIOR}: [] | a mapping"),
        ((*ADVANCED, "behavior"), {"scaleup": {}}, f"{BEHAVIOR}.scaleup: {{}} | one of the fields scaleD"),
        ((*ADVANCED, "behavior", "scaleUp", "policies"), [], f"{BEHAVIOR}.scaleUp.policies: [] |"),
        ((*ADVANCED, "behavior", "scaleUp", "tolerance"), "10%", f"{BEHAVIOR}.scaleUp.tolerance: '10%' |"),
        (("kind",), "HorizontalPodAutoscaler", "kind: 'HorizontalPodAutoscaler' | ScaledObject"),
    ],
)
def test_a_bad_policy_is_one_clear_line(path, value, line):
    """File, field, value and what is allowed, on one line."""
    said = refused(parse, changed(path, value), "my.yaml")
    assert said.startswith("my.yaml: ")
    assert line in said


def test_a_scale_compresses_every_time_and_lag_and_no_count_of_pods():
    """Windows, periods and intervals are divided and stay whole seconds; replicas and percentages are left alone."""
    policy: Any = load(FILE)
    small = policy.compressed(Scale("test", 30, 2))
    behavior = small.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert small.content["spec"]["pollingInterval"] == 1
    assert small.content["spec"]["cooldownPeriod"] == 10
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert behavior["scaleUp"]["policies"][0] == {"type": "Percent", "value": 200, "periodSeconds": 1}
    assert (policy.lag_threshold, small.lag_threshold) == (45_000, 3_000)
    assert (small.min_replicas, small.max_replicas) == (policy.min_replicas, policy.max_replicas)


@pytest.mark.parametrize(
    "written", [{}, {"behavior": None}, {"behavior": {"scaleUp": None, "scaleDown": {"policies": None}}}, None]
)
def test_a_null_is_not_written(written):
    """As to the API server: the defaults apply, and are compressed."""
    content = changed(ADVANCED, written or {})
    if written is None:
        content["spec"]["advanced"]["horizontalPodAutoscalerConfig"] = None
    small = parse(content, "my.yaml").compressed(Scale("test", 30, 1))
    behavior = small.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleUp"]["policies"] == [
        {"type": "Pods", "value": 4, "periodSeconds": 1},
        {"type": "Percent", "value": 100, "periodSeconds": 1},
    ]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 1}]


def test_unstated_intervals_are_compressed_too():
    """KEDA's 30 s and 300 s."""
    content = changed(("spec", "pollingInterval"), None)
    del content["spec"]["cooldownPeriod"]
    spec = parse(content, "my.yaml").compressed(Scale("test", 15, 1)).content["spec"]
    assert (spec["pollingInterval"], spec["cooldownPeriod"]) == (2, 20)


def test_reading_does_not_change_the_committed_bytes():
    """Compressing works on a copy: the policy that was read is what the file says."""
    policy = load(FILE)
    policy.compressed(Scale("test", 30, 1))
    assert policy.content == yaml.safe_load(FILE.read_text())
