"""Policies of every kind are read strictly, a scale compresses what is time in them, and an HPA on lag is a ScaledObject's."""

import re
from typing import Any

import pytest
import yaml

from lab import paths
from lab.errors import InputError
from lab.foresee import queries
from lab.foresee.simulate import simulate
from lab.inputs import fidelity, hpa_on_lag, policy, scaledobject_file
from lab.inputs import scale as scales
from lab.inputs.policy import PlainHpa, parse_hpa
from lab.inputs.scale import Scale
from lab.inputs.scaledobject import parse
from lab.inputs.steps import ReplicaSteps, Step
from lab.inputs.steps import parse as parse_steps
from lab.model import hpa, keda
from tests.unit.foresee.groups import lag_150
from tests.unit.foresee.test_triggers import used
from tests.unit.inputs.written import changed, refused

LAG = paths.MANIFESTS / "scaledobjects" / "lag.yaml"
CPU = paths.MANIFESTS / "hpa" / "cpu.yaml"
ON_LAG = paths.MANIFESTS / "hpa" / "zero-4500-hpa.yaml"
UP_AND_DOWN = paths.MANIFESTS / "steps" / "up-and-down.yaml"
PARSE = {LAG: parse, CPU: parse_hpa, UP_AND_DOWN: parse_steps}
KAFKA = ("spec", "triggers", 0, "metadata")
METRIC = ("spec", "metrics", 0, "resource")
ADVANCED = ("spec", "advanced", "horizontalPodAutoscalerConfig")
BEHAVIOR = "spec.advanced.horizontalPodAutoscalerConfig.behavior"
COMMITTED = sorted(
    file for kind in ("scaledobjects", "hpa", "controllers", "steps") for file in (paths.MANIFESTS / kind).glob("*.yaml")
)


@pytest.mark.parametrize("file", COMMITTED, ids=lambda file: file.stem)
def test_every_committed_policy_is_read_and_compressed(file):
    """At every scale; a compressed policy is still one that is accepted. A name means one file, whichever folder it is in."""
    assert [one.stem for one in COMMITTED].count(file.stem) == 1
    given = policy.load(file)
    for name in ("quick", "standard", "real"):
        compressed = given.compressed(scales.load(name))
        assert compressed.min_replicas <= compressed.start <= compressed.max_replicas


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
    said = refused(parse_hpa, changed(ON_LAG, (("spec", "metrics", 0, "external", *path), value)), "lag.yaml")
    assert said.startswith("lag.yaml: spec.metrics: ")
    assert "| one metric: Resource cpu by Utilization, or External s0-kafka-events" in said


def test_a_plain_hpa_is_known_by_its_target_and_compressed():
    """Bounds, target and name; 300 s of window are 10 s at quick scale, defaults written out."""
    given = policy.load(CPU)
    assert isinstance(given, PlainHpa)
    assert (given.min_replicas, given.max_replicas, given.utilization, given.hpa) == (4, 24, 70, "consumer")
    behavior = given.compressed(scales.load("quick")).content["spec"]["behavior"]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleUp"]["policies"][1] == {"type": "Pods", "value": 8, "periodSeconds": 1}
    on_lag = policy.load(ON_LAG)  # it begins with a pod, as an HPA wakes only what it has put to sleep itself
    assert (on_lag.min_replicas, on_lag.start, on_lag.utilization, on_lag.lag_threshold) == (0, 1, None, 4500)
    (lag,) = fidelity.lags(on_lag, scales.load("quick"))
    assert (lag.written, lag.applied, lag.rounded) == (4500, 150, True)


def test_decreed_steps_are_the_same_at_every_scale():
    """A rebalance takes the time it takes."""
    given = policy.load(UP_AND_DOWN)
    assert isinstance(given, ReplicaSteps)
    assert given.steps[:2] == (Step(8, 0), Step(6, 0))
    assert (given.min_replicas, given.max_replicas, given.start, given.hpa) == (6, 8, 6, None)
    assert given.compressed(scales.load("quick")) is given


def test_a_plain_hpa_without_metrics_is_the_api_servers_own():
    """80 % of the CPU, and both directions of a behavior that is not written."""
    given = parse_hpa(changed(CPU, (("spec",), {"maxReplicas": 4})), "cpu.yaml")
    assert (given.min_replicas, given.utilization) == (1, 80)
    behavior = given.compressed(scales.load("quick")).content["spec"]["behavior"]
    assert behavior["scaleDown"] == {
        "stabilizationWindowSeconds": 10,
        "policies": [{"type": "Percent", "value": 100, "periodSeconds": 1}],
    }


@pytest.mark.parametrize(
    ("file", "path", "value", "line"),
    [
        (LAG, (*KAFKA, "lagThreshold"), "0", "lagThreshold: '0' | a whole number from 1"),
        (LAG, (*KAFKA, "lagThreshold"), 1000, 'lagThreshold: 1000 | did you mean "1000"? allowed: a string: quote it'),
        (LAG, ("spec", "minReplicaCount"), 30, "spec.minReplicaCount: 30 | at most maxReplicaCount, 24"),
        (LAG, ("spec", "minReplicas"), 3, "spec.minReplicas: 3 | did you mean minReplicaCount?"),
        (LAG, ("spec", "pollingIntervall"), 3, "spec.pollingIntervall: 3 | did you mean pollingInterval?"),
        (LAG, ("spec", "triggers", 0, "useCachedMetrics"), "yes", "triggers[0].useCachedMetrics: 'yes' | true or false"),
        (LAG, ("spec", "triggers", 0, "cached"), True, "triggers[0].cached: True | one of the fields"),
        (LAG, (*KAFKA, "limitToPartitionsWithLag"), "true", 'limitToPartitionsWithLag is "true": KEDA refuses the pair'),
        (LAG, ("spec", "triggers", 0, "type"), "rabbitmq", "spec.triggers[0].type: 'rabbitmq' | kafka"),
        (LAG, (*KAFKA, "bootstrapServersFromEnv"), None, "bootstrapServers: missing |"),
        (LAG, (*KAFKA, "lagTreshold"), "5", "lagTreshold: '5' | did you mean lagThreshold?"),
        (LAG, ("spec", "advanced"), "fast", "spec.advanced: 'fast' | a mapping"),
        (LAG, ADVANCED, ["behavior"], "spec.advanced.horizontalPodAutoscalerConfig: ['behavior'] |"),
        (LAG, ("metadata", "annotations"), [1], "metadata.annotations: [1] | a mapping"),
        (LAG, (*ADVANCED, "behavior"), [], f"{BEHAVIOR}: [] | a mapping"),
        (LAG, (*ADVANCED, "behavior"), {"scaleup": {}}, f"{BEHAVIOR}.scaleup: {{}} | did you mean scaleUp?"),
        (LAG, (*ADVANCED, "behavior", "scaleUp", "tolerance"), "10%", f"{BEHAVIOR}.scaleUp.tolerance: '10%' |"),
        (
            LAG,
            (*ADVANCED, "behavior", "scaleUp", "tolerance"),
            0.05,
            f'{BEHAVIOR}.scaleUp.tolerance: 0.05 | did you mean "0.05"?',
        ),
        (LAG, (*ADVANCED, "name"), "My_HPA", "horizontalPodAutoscalerConfig.name: 'My_HPA' | the name of the HPA in small"),
        (
            LAG,
            ("metadata", "name"),
            "orders..v2",
            "metadata.name: 'orders..v2' | the name of the ScaledObject in small letters",
        ),
        (LAG, ("metadata", "labels"), {"team": "a b"}, "metadata.labels.team: 'a b' | at most 63 letters"),
        (LAG, ("metadata", "name"), "Orders!", "metadata.name: 'Orders!' | the name of the ScaledObject in small letters"),
        (LAG, ("metadata", "name"), None, "metadata.name: missing | the name of the ScaledObject"),
        (LAG, ("metadata", "label"), {}, "metadata.label: {} | did you mean labels?"),
        (LAG, ("spec", "scaleTargetRef", "kind"), "deployment", "kind: 'deployment' | did you mean Deployment?"),
        (LAG, ("spec", "cooldownPeriod"), "5m", "'5m' | did you mean 300? allowed: a whole number from 0 to 2147483647 s"),
        (LAG, ("kind",), "HorizontalPodAutoscaler", "kind: 'HorizontalPodAutoscaler' | ScaledObject"),
        (CPU, ("apiVersion",), "autoscaling/v1", "apiVersion: 'autoscaling/v1' | autoscaling/v2"),
        (CPU, ("spec", "minReplicas"), 30, "spec.minReplicas: 30 | at most maxReplicas, 24"),
        (CPU, ("spec", "maxReplicas"), 2.5, "spec.maxReplicas: 2.5 | a whole number"),
        (CPU, ("kind",), "ScaledObject", "kind: 'ScaledObject' | HorizontalPodAutoscaler"),
        (CPU, ("spec", "metrics"), {}, "spec.metrics: {} | a list of mappings"),
        (CPU, (*METRIC, "target"), {"type": "AverageValue", "averageValue": "1"}, "cpu by Utilization"),
        (CPU, ("spec", "behavior", "scaleUp", "policies"), [], "spec.behavior.scaleUp.policies: [] |"),
        (CPU, ("spec", "behavior", "scaleUp", "tolerance"), -1, "spec.behavior.scaleUp.tolerance: -1 |"),
        (CPU, (*METRIC, "name"), "gpu", "spec.metrics[0].resource.name"),
        (CPU, (*METRIC, "name"), "memory", "cpu by Utilization"),
        (CPU, (*METRIC, "target", "type"), "Value", "spec.metrics[0].resource.target"),
        (CPU, (*METRIC, "target", "averageUtilization"), 0, "averageUtilization: 0 |"),
        (CPU, ("spec", "behavior", "scaleUp", "policies", 0, "type"), "Half", "spec.behavior.scaleUp.policies[0].type: 'Half'"),
        (CPU, ("spec", "behaviour"), {}, "spec.behaviour: {} | did you mean behavior?"),
        (UP_AND_DOWN, ("spec", "replicas"), 0, "spec.replicas: 0 | a whole number from 1 to 200"),
        (UP_AND_DOWN, ("spec", "holdSeconds"), 0.1, "spec.holdSeconds: 0.1 | a number from 0.5 to 600"),
        (UP_AND_DOWN, ("spec", "steps"), "up", "spec.steps: 'up' |"),
        (UP_AND_DOWN, ("spec", "steps", 1), {}, "spec.steps[1]: {} | one of"),
        (UP_AND_DOWN, ("spec", "steps", 1), {"replica": 3}, "spec.steps[1].replica: 3 |"),
        (UP_AND_DOWN, ("spec", "steps", 1, "replicas"), 1000, "spec.steps[1].replicas: 1000 |"),
    ],
)
def test_a_bad_policy_is_one_clear_line(file, path, value, line):
    """File, field, value and what is allowed, on one line."""
    said = refused(PARSE[file], changed(file, (path, value)), "my.yaml")
    assert said.startswith("my.yaml: ")
    assert line in said


def test_a_scale_compresses_every_time_and_lag_and_no_count_of_pods():
    """Windows, periods and intervals are divided and stay whole seconds; replicas and percentages are left alone."""
    given: Any = policy.load(LAG)
    small = given.compressed(Scale("test", 30, 2))
    assert given.content == yaml.safe_load(LAG.read_text())  # what was read stays as it is
    behavior = small.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert (small.content["spec"]["pollingInterval"], small.content["spec"]["cooldownPeriod"]) == (1, 10)
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleUp"]["stabilizationWindowSeconds"] == 0
    assert behavior["scaleUp"]["policies"][0] == {"type": "Percent", "value": 200, "periodSeconds": 1}
    assert (given.lag_threshold, small.lag_threshold) == (45_000, 3_000)
    assert (small.min_replicas, small.max_replicas) == (given.min_replicas, given.max_replicas)


@pytest.mark.parametrize(
    "written", [{}, {"behavior": None}, {"behavior": {"scaleUp": None, "scaleDown": {"policies": None}}}, None]
)
def test_a_null_is_not_written(written):
    """As to the API server: the defaults apply, and are compressed, KEDA's 30 s and 300 s too."""
    content = changed(LAG, (ADVANCED, written or {}), (("spec", "pollingInterval"), None), (("spec", "cooldownPeriod"), None))
    if written is None:
        content["spec"]["advanced"]["horizontalPodAutoscalerConfig"] = None
    small = parse(content, "my.yaml").compressed(Scale("test", 30, 1))
    assert (small.content["spec"]["pollingInterval"], small.content["spec"]["cooldownPeriod"]) == (1, 10)
    behavior = small.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    assert behavior["scaleUp"]["policies"] == [
        {"type": "Pods", "value": 4, "periodSeconds": 1},
        {"type": "Percent", "value": 100, "periodSeconds": 1},
    ]
    assert behavior["scaleDown"]["stabilizationWindowSeconds"] == 10
    assert behavior["scaleDown"]["policies"] == [{"type": "Percent", "value": 100, "periodSeconds": 1}]


def test_another_kind_is_refused():
    """A Deployment decides nothing."""
    assert "kind: 'Deployment' | one of ScaledObject" in refused(policy.parse, {"kind": "Deployment"}, "my.yaml")


TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "consumer"}


def plain(*metrics, **spec):
    """An HPA of these metrics, from 4 to 24."""
    body = {"scaleTargetRef": TARGET, "minReplicas": 4, "maxReplicas": 24, "metrics": list(metrics)} | spec
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "orders"}, "spec": body}


def external(name, value="150", kind="AverageValue", **labels):
    """An External metric."""
    target = {"type": kind, "averageValue" if kind == "AverageValue" else "value": value}
    metric = {"name": name} | ({"selector": {"matchLabels": labels}} if labels else {})
    return {"type": "External", "external": {"metric": metric, "target": target}}


def scaled(content):
    """The ScaledObject of an HPA."""
    return parse(hpa_on_lag.scaledobject_of(content, "hpa.yaml"), "hpa.yaml")


@pytest.mark.parametrize("name", ["kafka_consumergroup_lag", "s0-kafka-orders"])
def test_lag_scales_as_a_trigger_on_it_does(name):
    """With the behavior that is written."""
    behavior = lag_150().content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    ours = scaled(plain(external(name), behavior=behavior))
    assert simulate(used(None), ours).changes == simulate(used(None), lag_150()).changes != []


def test_the_hpa_that_kedas_would_make_is_the_one_that_is_written():
    """Its metrics, targets, bounds and behavior, none included."""
    percent = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    weight = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}}}
    lag = external("kafka_consumergroup_lag", "12500m", "Value", topic="orders")
    for behavior in ({}, {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60, "tolerance": 0.3}}}):
        given = plain(lag, percent, weight, **behavior)
        made, written = (hpa.parse(one, "x") for one in (keda.hpa(scaled(given), {}), given))
        assert [(one.target, one.amount) for one in made.metrics] == [(one.target, one.amount) for one in written.metrics]
        assert (made.min_replicas, made.max_replicas, made.behavior) == (4, 24, written.behavior)


def test_the_labels_of_its_selector_are_those_of_the_query():
    """So a topic or a partition counts alone."""
    (trigger,) = scaled(plain(external("kafka_consumergroup_lag", topic="orders", partition="3"))).triggers
    assert trigger.query == 'sum(kafka_consumergroup_lag{topic="orders",partition="3"})'


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (plain(external("kafka lag")), "metric.name: 'kafka lag' | the name of a series of Prometheus"),
        (plain(external("kafka_consumergroup_lag"), minReplicas=0), "spec.minReplicas: 0 | from 1"),
        (plain(external("kafka_consumergroup_lag"), scaleTargetRef={"name": "x"}), "scaleTargetRef.kind: missing | the kind"),
        (plain({"type": "Pods"}), "spec.metrics[0].type: 'Pods' | External or Resource"),
    ],
)
def test_what_is_no_lag_is_refused(content, line):
    """By the HPA's own fields."""
    assert line in refused(scaled, content)


@pytest.mark.parametrize(
    ("name", "series", "most", "others"), [("x", "up", 9, []), (None, "a b", "9", ["metadata.name", "spec.maxReplicas"])]
)
def test_all_errors_are_said_at_once_by_the_fields_of_the_hpa(name, series, most, others):
    """Also those of the query that it is taken as."""
    content = plain(external(series), maxReplicas=most, minReplicas=1) | {"metadata": {"name": name}}
    with pytest.raises(InputError) as error:
        scaledobject_file.read(yaml.safe_dump(content), "hpa.yaml", also=queries.check, hpa=True)
    found = [re.fullmatch(r"hpa.yaml:\d+: (\S+): .*", line)[1] for line in str(error.value).splitlines()]
    assert found == [*others, "spec.metrics[0].external.metric.name"]
