"""A plain HPA on lag is simulated as the ScaledObject that makes the same HPA."""

import pytest

from lab.foresee.simulate import simulate
from lab.inputs import hpa_on_lag, scaledobject
from lab.model import hpa, keda
from tests.unit.foresee.groups import lag_150
from tests.unit.foresee.test_triggers import used
from tests.unit.inputs.written import refused

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


def read(content):
    """The ScaledObject of an HPA."""
    return scaledobject.parse(hpa_on_lag.scaledobject_of(content, "hpa.yaml"), "hpa.yaml")


@pytest.mark.parametrize("name", ["kafka_consumergroup_lag", "s0-kafka-orders"])
def test_lag_scales_as_a_trigger_on_it_does(name):
    """With the behavior that is written."""
    behavior = lag_150().content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    ours = read(plain(external(name), behavior=behavior))
    assert simulate(used(None), ours).changes == simulate(used(None), lag_150()).changes != []


def test_the_hpa_that_kedas_would_make_is_the_one_that_is_written():
    """Its metrics, targets, bounds and behavior, none included."""
    percent = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 70}}}
    weight = {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "500Mi"}}}
    lag = external("kafka_consumergroup_lag", "12500m", "Value", topic="orders")
    for behavior in ({}, {"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}):
        given = plain(lag, percent, weight, **behavior)
        made, written = (hpa.parse(one, "x") for one in (keda.hpa(read(given), {}), given))
        assert [(one.target, one.amount) for one in made.metrics] == [(one.target, one.amount) for one in written.metrics]
        assert (made.min_replicas, made.max_replicas, made.behavior) == (4, 24, written.behavior)


def test_the_labels_of_its_selector_are_those_of_the_query():
    """So a topic or a partition counts alone."""
    (trigger,) = read(plain(external("kafka_consumergroup_lag", topic="orders", partition="3"))).triggers
    assert trigger.query == 'sum(kafka_consumergroup_lag{topic="orders",partition="3"})'


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (plain(external("kafka lag")), "metric.name: 'kafka lag' | the name of a series of Prometheus"),
        (plain(external("kafka_consumergroup_lag"), minReplicas=0), "spec.minReplicas: 0 | from 1"),
        (plain({"type": "Pods"}), "spec.metrics[0].type: 'Pods' | External or Resource"),
    ],
)
def test_what_is_no_lag_is_refused(content, line):
    """By the HPA's own fields."""
    assert line in refused(read, content)
