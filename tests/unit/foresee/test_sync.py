"""One sync of the HPA, explained: three by hand, the same as the simulation's, and what the command says and refuses."""

import json
from contextlib import suppress
from fractions import Fraction

import numpy as np
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as some

from lab.__main__ import main
from lab.commands.play.answer import by
from lab.foresee import explain, sync
from lab.foresee.curve import Change
from lab.foresee.group import Consumers, Seen
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.inputs import hpa_spec, scaledobject
from lab.model import hpa
from tests.unit.foresee.groups import EVEN, step

NAMES = {"bootstrapServers": "kafka:9092", "consumerGroup": "g"}
CPU = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "50"}}
SIDECAR = {"type": "cpu", "metricType": "Utilization", "metadata": {"value": "60", "containerName": "app"}}
TWO_A_MINUTE = {"scaleUp": {"policies": [{"type": "Pods", "value": 2, "periodSeconds": 60}]}}


def kafka(topic="orders", **metadata):
    """A kafka trigger of lagThreshold 10."""
    return {"type": "kafka", "metadata": NAMES | {"topic": topic, "lagThreshold": "10"} | metadata}


def written(*triggers, least=1, most=100, behavior=None, **spec):
    """A ScaledObject's content."""
    settings = {"horizontalPodAutoscalerConfig": {"behavior": behavior}} if behavior else {}
    spec = {"scaleTargetRef": {"name": "c"}, "minReplicaCount": least, "maxReplicaCount": most, "advanced": settings} | spec
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {"name": "so"},
        "spec": spec | {"triggers": list(triggers or [kafka()])},
    }


@pytest.fixture
def said(tmp_path, capsys):
    """A function that runs ``sync`` on a ScaledObject: exit code, what it prints, and the line on stderr."""

    def run(content, *flags):
        file, code = tmp_path / "so.yaml", 2
        file.write_text(yaml.safe_dump(content))
        with suppress(SystemExit):
            code = main(["sync", f"--scaledobject={file}", *flags])
        out, line = capsys.readouterr()
        return code, out, line.replace(f"{file}: ", "")

    return run


@pytest.fixture
def answer(said):
    """A function that runs ``sync --json`` with flags as one text: what it answers."""
    return lambda content, flags: json.loads(said(content, *flags.split(), "--json")[1])


# lagThreshold 10: the flags; then metric, proposal, decision, what limits it, and the decision once the windows agree.
BY_HAND = {
    "42 / (10 x 4) = 1.05 is tolerated": ("--lag 42 --replicas 4 --partitions 12", {}, (42, 4, 4, None, 4)),
    "33 / (10 x 4) = 0.825 is not: ceil(33 / 10)": ("--lag 33 --replicas 4 --partitions 12", {}, (33, 4, 4, None, 4)),
    "500 // 10 is above 12 partitions: 12 x 10": ("--lag 500 --replicas 8 --partitions 12", {}, (120, 12, 12, None, 12)),
    "125 // 10 is not: one past the partitions": ("--lag 125 --replicas 8 --partitions 12", {}, (125, 13, 13, None, 13)),
    "4 + 2 a minute": ("--lag 500 --replicas 4 --partitions 60", TWO_A_MINUTE, (500, 50, 6, "ScaleUpLimit", 6)),
    "one of the 2 is taken": (
        "--lag 500 --replicas 4 --partitions 60 --changed 1",
        TWO_A_MINUTE,
        (500, 50, 5, "ScaleUpLimit", 5),
    ),
    "without a behavior 4 x 2": ("--lag 500 --replicas 4 --partitions 60", {}, (500, 50, 8, "ScaleUpLimit", 8)),
    "a new HPA keeps 4 for 300 s": ("--lag 5 --replicas 4 --partitions 12", {}, (5, 1, 4, None, 1)),
    "earlier syncs asked for 3 at most": ("--lag 5 --replicas 4 --partitions 12 --recommended 2,3", {}, (5, 1, 3, None, 1)),
    "50 of 3 partitions, by partition: 3 x 10": ("--lag 25,0,25 --replicas 1", {}, (30, 3, 3, None, 3)),
}


@pytest.mark.parametrize(("flags", "behavior", "right"), BY_HAND.values(), ids=BY_HAND)
def test_a_sync_by_hand(answer, flags, behavior, right):
    """Metric, proposal, decision, its limit, and what is decided once the windows hold nothing else."""
    found = answer(written(behavior=behavior), flags)
    (one,) = found["triggers"]
    assert (one["metric"], one["proposal"], found["decided"], found["limited"], found["steady"]) == right


def test_each_step_of_a_decision_is_said(said):
    """Metric, cap, activation, ratio and tolerance, policies, window, KEDA's part, and the decision."""
    _, text, _ = said(written(behavior=TWO_A_MINUTE), "--lag=500", "--replicas=8", "--partitions=12")
    for step_ in (
        "lag 500 on 12 of 12 partitions",
        "cap: 500 // 10 = 50 is above 12 partitions, metric 120",
        "500 is above activationLagThreshold 0",
        "120 / (10 x 8) = 1.5, not within 0.9 to 1.1: ceil(120 / 10) = 12",
        "scaleUp Max of Pods 2 per 60 s from 8 -> 10: 10",
        "active: changes nothing",
        "8 -> 10 (HPA)",
    ):
        assert step_ in text
    _, text, _ = said(written(), "--lag=5", "--replicas=4", "--partitions=12")
    assert "ScaleDownStabilized: 1 -> 4, of the recommendations in the window" in text
    assert "4 -> 1 once every sync of 300 s has asked for this" in text


def test_what_deserves_a_line_is_said(said):
    """As by simulate."""
    _, text, _ = said(written(kafka(consumerGroup="<GROUP>")), "--lag=5", "--replicas=4", "--partitions=12")
    assert "<GROUP> looks like a placeholder" in text.splitlines()[-1]


def test_from_zero_and_to_zero_it_is_keda(answer):
    """The HPA is off at 0. Activation is above its threshold, and cooldownPeriod is before the end."""
    asleep = written(kafka(activationLagThreshold="5"), least=0, cooldownPeriod=60)
    found = [answer(asleep, f"--lag {lag} --replicas {count} --partitions 3") for lag, count in ((5, 0), (6, 0), (5, 2))]
    assert [(one["decided"], one["decided_by"]) for one in found] == [(0, "KEDA"), (1, "KEDA"), (2, "HPA")]
    assert found[2]["keda"] == "not active: 2 -> 0, once it has been so for cooldownPeriod 60 s"
    assert found[0]["triggers"][0]["proposal"] is None


def test_each_trigger_is_told_what_it_sees(answer):
    """By topic, type or index; the largest proposal wins, and lag beyond a trigger's partitions doesn't count."""
    cron = {"type": "cron", "metadata": {"timezone": "UTC", "start": "0 8 * * *", "end": "0 9 * * *", "desiredReplicas": "3"}}
    query = {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "up", "threshold": "0.5"}}
    content = written(CPU, kafka("a"), kafka("b", partitionLimitation="0-1"), cron, query)
    flags = "--lag a=21 --lag b=70 --partitions 6 --value cpu=80 --value 4=1 --at 2026-01-15T08:30:00Z --replicas 4"
    found = answer(content, flags)
    assert [(one["metric"], one["proposal"]) for one in found["triggers"]] == [(80, 7), (21, 3), (20, 2), (3, 3), (1, 2)]
    assert (found["decided"], found["triggers"][0]["ratio"]) == (7, 1.6)


def test_a_lag_may_be_what_a_query_answers(answer):
    """Of a trigger, or of a plain HPA, whose metric an adapter gives; a trigger on lag itself comes first."""
    query = {"type": "prometheus", "metadata": {"serverAddress": "http://p", "query": "up", "threshold": "10"}}
    metric = {"metric": {"name": "kafka_consumergroup_lag"}, "target": {"type": "AverageValue", "averageValue": "10"}}
    spec = {"scaleTargetRef": {"kind": "Deployment", "name": "c"}, "maxReplicas": 9}
    spec["metrics"] = [{"type": "External", "external": metric}]
    plain = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h"}, "spec": spec}
    for content in (written(query), plain):
        found = answer(content, "--lag 33 --partitions 12 --replicas 2")
        assert (found["triggers"][0]["metric"], found["decided"]) == (33, 4)
    found = answer(written(query, kafka()), "--lag 33 --partitions 3 --value prometheus=50 --replicas 4")
    assert [one["metric"] for one in found["triggers"]] == [50, 33]


def test_the_persistent_lag_scaler_sees_a_lag_that_has_lasted(answer):
    """At most so much as its partitions take."""
    metadata = NAMES | {"scalerAddress": "s:6000", "topic": "orders", "lagThreshold": "10", "sustainSeconds": "120"}
    found = answer(written({"type": "external", "metadata": metadata}), "--lag 33 --partitions 2 --replicas 1")
    assert (found["triggers"][0]["metric"], found["decided"]) == (20, 2)


@pytest.mark.parametrize(
    ("triggers", "flags", "line"),
    [
        ([kafka()], "--partitions=3", "command line: --lag: missing; allowed: orders=messages"),
        ([kafka()], "--lag=3", "command line: --partitions: missing; allowed: orders=N, 1 to 100,000"),
        ([kafka(), kafka("b")], "--lag=3", "command line: --lag: '3' is not allowed; allowed: orders=..., b=..."),
        ([kafka()], "--lag=b=3", "command line: --lag: 'b' is not allowed; allowed: orders=..."),
        ([kafka()], "--lag=x", "command line: --lag: 'x' is not allowed; allowed: TRIGGER=N or N: 0 to"),
        ([kafka(partitionLimitation="9")], "--lag=1,2", "spec.triggers[0]: 'no partition of topic"),
        ([kafka(partitionLimitation="9")], "--lag=1 --partitions=3", "--partitions: 3 is not allowed; allowed: one that"),
        ([{"type": "external", "metadata": {"scalerAddress": "s:1"}}], "--value=1", "spec.triggers: 'external' is not"),
        ([kafka(), CPU], "--lag=1,2 --value=cpu=500m", "command line: --value: '500m' is not allowed; allowed: percent of the"),
        ([kafka(), SIDECAR], "--lag=1,2 --value=cpu=50", "spec.triggers[1].metadata.containerName: 'app' is not allowed"),
    ],
)
def test_what_is_not_known_is_asked_for(said, triggers, flags, line):
    """One line, exit code 2: a lag is never made up."""
    code, out, error = said(written(*triggers), "--replicas=1", *flags.split())
    assert (code, out) == (2, "")
    assert line in error


FLAGS = [{}, {"allowIdleConsumers": "true"}, {"limitToPartitionsWithLag": "true"}]
FLAGS += [{"ensureEvenDistributionOfPartitions": "true"}, {"partitionLimitation": "0"}]
BEHAVIORS = [None, TWO_A_MINUTE, {"scaleDown": {"stabilizationWindowSeconds": 0}}, {"scaleUp": {"tolerance": "0.5"}}]


@given(
    lags=some.lists(some.integers(0, 60), min_size=1, max_size=9),
    replicas=some.integers(1, 12),
    metadata=some.sampled_from(FLAGS),
    behavior=some.sampled_from(BEHAVIORS),
    threshold=some.integers(1, 20),
    kind=some.sampled_from(["AverageValue", "Value"]),
)
def test_a_sync_is_the_first_of_a_simulation(lags, replicas, metadata, behavior, threshold, kind):
    """The simulation's HPA, whose model the controller's own code proves, decides the same on the same lag."""
    trigger = kafka(lagThreshold=str(threshold), **metadata) | {"metricType": kind}
    scaled = scaledobject.parse(written(trigger, behavior=behavior), "so.yaml")
    scaler = Scaler(scaled, Situation(step(1, 1), EVEN, Consumers(1.0, 1.0)))
    scaler.replicas = replicas
    nothing = np.zeros(len(lags))
    simulated = scaler.sync(Seen(0.0, np.array(lags, dtype=float), nothing, nothing, [0.0] * replicas))
    assert sync.sync(scaled, [lags], replicas, sync.memory((), 0)).decided == simulated


@given(some.integers(0, 10**6), some.integers(1, 100))
def test_the_use_of_pods_is_as_given(percent, replicas):
    """Percent of a request, of any number of pods: the HPA reads it back whole."""
    scaled = scaledobject.parse(written(CPU), "so.yaml")
    (one,) = sync.sync(scaled, [Fraction(percent)], replicas, sync.memory((), 0)).triggers
    assert one.arithmetic is not None
    assert f"ratio {percent / 50:.4g} of {replicas} pods" in one.arithmetic


def test_a_formula_is_one_metric_in_place_of_its_triggers(said, answer):
    """12 partitions each: 33 and 40 are 73 of 10 a pod."""
    two = (kafka("orders") | {"name": "a"}, kafka("refunds") | {"name": "b"})
    content = written(*two, advanced={"scalingModifiers": {"formula": "a + b", "target": "10"}})
    flags = "--lag a=33 --lag b=40 --replicas 4 --partitions 12"
    (one,) = answer(content, flags)["triggers"]
    assert (one["trigger"], one["metric"], one["target"], one["proposal"]) == ("formula", 73, 10, 8)
    code, out, _ = said(content, *flags.split())
    assert (code, "a + b with a 33, b 40 is 73" in out, "4 -> 8 (HPA)" in out) == (0, True, True)


def test_what_the_question_before_decides_has_a_line(answer):
    """One sync alone can't tell whether an offset has moved."""
    found = answer(written(kafka("orders", excludePersistentLag="true")), "--lag 33 --replicas 4 --partitions 12")
    assert any(line.startswith("orders: excludePersistentLag counts nothing of a partition") for line in found["remarks"])


RULE = some.fixed_dictionaries(
    {
        "stabilizationWindowSeconds": some.sampled_from([0, 60]),
        "selectPolicy": some.sampled_from(["Max", "Disabled"]),
        "policies": some.just([{"type": "Pods", "value": 1, "periodSeconds": 15}]),
    }
)


@given(some.lists(some.integers(0, 12), min_size=1, max_size=8), some.integers(0, 14), RULE, RULE)
def test_what_decided_is_read_from_the_reasons(lags, replicas, up, down):
    """As explain reads it from the decision itself, for an HPA of 2 to 12 pods that want 10 messages each, of 100 at most."""
    target = {"type": "AverageValue", "averageValue": "10"}
    metric = {"type": "External", "external": {"metric": {"name": "lag"}, "target": target}}
    content = {"minReplicas": 2, "maxReplicas": 12, "metrics": [metric], "behavior": {"scaleUp": up, "scaleDown": down}}
    scale = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    whole = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"}}
    spec, kept = hpa_spec.parse(whole | {"spec": content | {"scaleTargetRef": scale}}, "x"), hpa.State()
    for number, lag in enumerate(lags):
        seen = min(10 * lag, 100)
        decision, kept = hpa.decide(spec, kept, replicas, [hpa.external(seen)], 15.0 * number)
        known, _ = explain.decided_by(decision, (seen,), (100,))
        assert by(Change(0.0, replicas, decision.desired, decision.reasons), 100) == known
        replicas = decision.desired
