"""The ScaledObject is found in whatever file it stands in, and all that is wrong with a file is said at once."""

import copy
import io
import json
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lab.errors import InputError
from lab.inputs import scaledobject_file
from tests.unit.inputs.written import KAFKA

DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "orders"}, "spec": {}}
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login"}, "stringData": {"sasl": ""}}
LOGIN = {"apiVersion": "keda.sh/v1alpha1", "kind": "TriggerAuthentication", "metadata": {"name": "login"}, "spec": {}}
BESIDE = (DEPLOYMENT, SECRET, LOGIN, None)


def named(name="orders", target="orders", **spec):
    """A ScaledObject of this name."""
    spec = {"scaleTargetRef": {"name": target}, "triggers": [copy.deepcopy(KAFKA)], **spec}
    return {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "metadata": {"name": name}, "spec": spec}


def hpa(**spec):
    """An HPA of the same Deployment."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x"}} | {
        "spec": {"scaleTargetRef": target, "maxReplicas": 9} | spec
    }


@pytest.fixture
def file(tmp_path):
    """A function that writes a file."""

    def write(content):
        path = tmp_path / "my.yaml"
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return write


def said(path, name=""):
    """The lines with which a file is refused, without its folder."""
    with pytest.raises(InputError) as error:
        scaledobject_file.load(path, name)
    return str(error.value).replace(f"{path.parent}/", "").splitlines()


def as_list(objects):
    """The objects in a List."""
    return {"apiVersion": "v1", "kind": "List", "items": [one for one in objects if one], "metadata": {"resourceVersion": ""}}


WAYS = {
    "documents": lambda objects: "".join(f"---\n{yaml.safe_dump(one) if one else '# Source: a.yaml'}\n" for one in objects),
    "trailing": lambda objects: yaml.safe_dump_all(objects, explicit_end=False) + "---\n",
    "List": lambda objects: yaml.safe_dump(as_list(objects)),
    "JSON": lambda objects: json.dumps(as_list(objects), indent="\t"),
    "List in a List": lambda objects: yaml.safe_dump(as_list([as_list(objects)])),
}


@settings(suppress_health_check=list(HealthCheck))
@given(st.sampled_from(sorted(WAYS)), st.lists(st.sampled_from(BESIDE), max_size=4), st.integers(0, 4))
def test_the_one_scaledobject_is_taken_wherever_it_stands(tmp_path, way, beside, place):
    """Among other objects, before and after them, in any way that Helm or kubectl prints them."""
    objects = [*beside[:place], named(), *beside[place:]]
    path = tmp_path / "my.yaml"
    path.write_text(WAYS[way](objects))
    found = scaledobject_file.load(path)
    assert (found.scaled.name, found.scaled.content, found.remarks) == ("orders", named(), ())


@pytest.mark.parametrize("way", WAYS)
def test_of_several_the_named_one_is_taken(way, file):
    """Without a name they are named, and so is one that is not there."""
    path = file(WAYS[way]([named("a", "x"), DEPLOYMENT, named("b", "y")]))
    assert scaledobject_file.load(path, "b").scaled.name == "b"
    assert said(path) == ["my.yaml: 2 ScaledObjects are in it: a, b; choose one with --name (pytest: --lab-name)"]
    assert said(path, "c")[0].startswith("command line: --name: 'c' is not allowed; allowed: a ScaledObject of")
    path = file(WAYS[way]([named() | {"metadata": {"name": "a", "namespace": space}} for space in ("x", "y")]))
    assert scaledobject_file.load(path, "y/a").scaled.content["metadata"]["namespace"] == "y"
    assert said(path, "a") == ["my.yaml: 2 ScaledObjects are in it: x/a, y/a; choose one with --name (pytest: --lab-name)"]


def test_standard_input_is_a_file_too(monkeypatch):
    """By the name "-"."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(yaml.safe_dump(named()).encode())))
    assert scaledobject_file.load(Path("-")).scaled.where == "standard input"


WRONG = """\
apiVersion: keda.sh/v1
kind: ScaledObject
metadata: {name: orders, annotations: {autoscaling.keda.sh/paused-replicas: "four", autoscaling.keda.sh/pause: "true"}}
spec:
  scaleTargetRef: {deploymentName: orders, kind: deployment, apiVersion: 1}
  pollingIntervall: 5
  cooldownPeriod: 5m
  minReplicaCount: 9
  maxReplicaCount: 3
  maxReplicaCount: 4
  advanced: {horizontalPodAutoscalerConfig: {behavior: {scaleup: {}, scaleDown: {policies: [{type: Pods, value: 0}]}}},
    scalingModifiers: {formula: a + b, target: "1"}}
  triggers:
  - meta: {topic: t}
    type: kafka
  - type: kafka
    metadata:
      brokerList: b:9092
      consumerGroup: g
      startThreshold: "1"
      topics: [a, b]
      allowIdleConsumers: true
      version: 1.0
      tls: "on"
  - metadata: {consumerGroup: g, bootstrapServers: [a, b], lagThreshold: 5}
  - {type: rabbitmq, metadata: {}}
"""


def test_all_errors_of_a_file_are_said_at_once_in_their_order(file):
    """A line each: file, line, field, value, what is allowed or meant. Nothing that only follows from another."""
    lines = said(file(WRONG))
    shown = [line.partition(" is not allowed")[0].partition(";")[0] for line in lines]
    assert [one.removeprefix("my.yaml:") for one in shown] == [
        "1: apiVersion: 'keda.sh/v1'",
        "3: metadata.annotations.autoscaling.keda.sh/pause: 'true'",
        "3: metadata.annotations.autoscaling.keda.sh/paused-replicas: 'four'",
        "5: spec.scaleTargetRef.deploymentName: 'orders'",
        *("5: spec.scaleTargetRef.kind: 'deployment'", "5: spec.scaleTargetRef.apiVersion: 1"),
        "6: spec.pollingIntervall: 5",
        "7: spec.cooldownPeriod: '5m'",
        "8: spec.minReplicaCount: 9",
        "10: spec.maxReplicaCount is written twice, first in line 9: kubectl refuses it",
        "11: spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleup: {}",
        "11: spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies[0].value: 0",
        "11: spec.advanced.horizontalPodAutoscalerConfig.behavior.scaleDown.policies[0].periodSeconds: missing",
        "12: spec.advanced.scalingModifiers.formula: 'a + b'",
        "14: spec.triggers[0].meta: {'topic': 't'}",
        "18: spec.triggers[1].metadata.brokerList: 'b:9092'",
        "20: spec.triggers[1].metadata.startThreshold: '1'",
        "21: spec.triggers[1].metadata.topics: ['a', 'b']",
        "22: spec.triggers[1].metadata.allowIdleConsumers: True",
        *("23: spec.triggers[1].metadata.version: 1.0", "24: spec.triggers[1].metadata.tls: 'on'"),
        "25: spec.triggers[2].type: missing",
        "25: spec.triggers[2].metadata.bootstrapServers: ['a', 'b']",
        "25: spec.triggers[2].metadata.lagThreshold: 5",
        "26: spec.triggers[3].type: 'rabbitmq'",
    ]
    meant = {line.split(": ")[1].rsplit(".", 1)[-1]: line.partition("did you mean ")[2].partition("?")[0] for line in lines}
    wanted = {
        **{"pollingIntervall": "pollingInterval", "deploymentName": "name", "kind": "Deployment", "meta": "metadata"},
        **{"brokerList": "bootstrapServers", "startThreshold": "activationLagThreshold", "cooldownPeriod": "300"},
        **{"topics": "topic, and a trigger for each", "allowIdleConsumers": '"true"', "sh/pause": "paused"},
    }
    assert meant.items() >= wanted.items()


FLAT = "apiVersion: keda.sh/v1alpha1\nkind: ScaledObject\nmetadata:\nname: a\nspec:\nscaleTargetRef:\ntriggers:\ntype: kafka\n"
VALUES = {"keda": {"enabled": True, "triggers": [KAFKA]}}
FUNC = {"specVersion": "0.37.0", "name": "fn", "runtime": "go", "deploy": {"keda": {"triggers": []}}}


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("", ["nothing is in it; allowed: a ScaledObject"]),
        ("# only a comment\n---\n", ["nothing is in it"]),
        ("just words", ["no ScaledObject is in it, but text"]),
        (as_list([]), ["no ScaledObject is in it, but an empty List"]),
        (DEPLOYMENT, ["no ScaledObject is in it, but Deployment orders"]),
        ("---\n".join(map(yaml.safe_dump, (DEPLOYMENT, SECRET))), ["but Deployment orders, Secret login"]),
        (named() | {"kind": "ScaledJob"}, ["no ScaledObject is in it, but ScaledJob orders"]),
        (named() | {"kind": "scaledobject"}, ["kind: 'scaledobject' is not allowed; allowed: ScaledObject"]),
        (VALUES, ["these look like a chart's values; render the chart"]),
        (
            {"hpa": {"kafka": [{"consumerGroup": "g", "lagThreshold": "5"}]}},
            ["these look like a chart's values; render the chart"],
        ),
        (FUNC, ["a function's func.yaml"]),
        ([{"op": "replace", "path": "/spec/maxReplicaCount", "value": 8}], ["a patch: bring what it makes"]),
        ([KAFKA], ["no ScaledObject is in it, but a list"]),
        ({"kind": "steps", "steps": []}, ["no ScaledObject is in it, but steps"]),
        (FLAT, ["the indentation is lost: spec is empty, and scaleTargetRef, triggers stand beside it"]),
        (FLAT + "metadata:\n", ["metadata is written twice", "the indentation is lost"]),
        (FLAT + "kind: Deployment\n", ["kind is written twice", "the indentation is lost"]),
        (
            FLAT.replace("keda.sh", "keda.k8s.io").replace("type", "deploymentName"),
            ["the indentation is lost", "allowed: keda.sh/v1alpha1", "deploymentName: 'kafka' is not allowed; did you mean s"],
        ),
        (
            {"triggers": [{"type": "kafka", "metadata": KAFKA["metadata"] | {"allowIdleConsumers": False, "version": 1.0}}]},
            [
                *("no whole ScaledObject: triggers must stand under spec", "apiVersion: missing", "kind: missing"),
                *("metadata: missing", "allowIdleConsumers: False", "version: 1.0", "spec.scaleTargetRef: missing"),
            ],
        ),
        (
            named(triggers=None) | {"triggers": [KAFKA | {"type": "kafka2"}]},
            ["no whole ScaledObject: triggers must stand under spec", "spec.triggers[0].type: 'kafka2'"],
        ),
        (
            named() | {"advanced": {"horizontalPodAutoscalerConfig": {"behaviour": {}}}},
            [
                "no whole ScaledObject: advanced must stand under spec",
                "spec.advanced.horizontalPodAutoscalerConfig.behaviour: {}",
            ],
        ),
        ("spec: {scaleTargetRef: {name: a}, triggers: 3}", ["apiVersion: missing", "kind: missing", "metadata: missing", "3"]),
    ],
    ids=range(22),
)
def test_a_file_without_a_scaledobject_says_what_is_in_it(content, lines, file):
    """What it looks like, and what to bring instead."""
    found = said(file(content))
    assert len(found) == len(lines)
    assert all(any(line in one for one in found) for line in lines), found


@pytest.mark.parametrize(
    ("objects", "remarks"),
    [
        ([named(), hpa()], ["spec.scaleTargetRef: HorizontalPodAutoscaler x beside it scales the same Deployment orders"]),
        ([named(), hpa(scaleTargetRef={"kind": "StatefulSet", "name": "orders"})], []),
        ([named(), hpa(), named("b", "c")], ["HorizontalPodAutoscaler x beside it"]),
        (
            [named(scaleTargetRef={"apiVersion": "serving.knative.dev/v1", "kind": "Service", "name": "a"})],
            ["a Knative Service"],
        ),
        (
            [
                named(
                    triggers=[
                        KAFKA | {"metadata": KAFKA["metadata"] | {"bootstrapServers": "<HOST>:9092", "topic": "a-{{ b }}"}}
                    ]
                )
            ],
            ["bootstrapServers: <HOST> looks like a placeholder", "topic: {{ b }} looks like a placeholder"],
        ),
        (
            [named(triggers=[KAFKA | {"metadata": KAFKA["metadata"] | {"bootstrapServers": "b:9092, c"}}])],
            ["bootstrapServers: c has no port"],
        ),
        (
            [named(triggers=[KAFKA | {"metadata": KAFKA["metadata"] | {"bootstrapServers": "SSL://b:1", "topic": "$(T)"}}])],
            ["topic: $(T) looks like a placeholder", "SSL://b:1 begins with a listener's name"],
        ),
        ([named(scaleTargetRef={"kind": "Rollout", "name": "a"})], ["there is no Rollout of apps/v1"]),
        ([named(scaleTargetRef={"apiVersion": "extensions/v1beta1", "name": "a"})], ["no Deployment of extensions/v1beta1"]),
        ([named(scaleTargetRef={"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "a"})], []),
    ],
    ids=range(10),
)
def test_what_is_allowed_and_deserves_a_line(objects, remarks, file):
    """A rival, a target that nothing scales, a placeholder, an address without a port."""
    found = scaledobject_file.load(file(WAYS["documents"](objects)), "orders").remarks
    assert len(found) == len(remarks)
    assert all(remark in one for remark, one in zip(remarks, found, strict=True)), found


def test_a_template_is_rendered_before_it_is_brought(file):
    """Where it is left in a name: no such name is one."""
    (line,) = said(file(named("stage-{{ID}}")))
    assert "metadata.name: 'stage-{{ID}}' is not allowed" in line
    assert "{{ID}} is left of a template: render it first" in line


def test_an_empty_list_of_policies_is_what_keda_makes_of_it(file):
    """The HPA that it makes has none, so the API server fills in its defaults."""
    behavior = {"scaleUp": {"policies": []}}
    found = scaledobject_file.load(file(named(advanced={"horizontalPodAutoscalerConfig": {"behavior": behavior}}))).scaled
    assert found.content["spec"]["advanced"]["horizontalPodAutoscalerConfig"]["behavior"] == behavior


def test_a_field_that_keda_ignores_has_a_line(file):
    """metricName of a prometheus trigger, which most public files have, is no reason to refuse it."""
    metadata = {"serverAddress": "http://p:9090", "metricName": "lag", "query": "sum(x)", "threshold": "1"}
    found = scaledobject_file.load(file(named(triggers=[{"type": "prometheus", "metadata": metadata}])))
    assert [one.partition("spec.")[2] for one in found.remarks] == ["triggers[0].metadata.metricName: KEDA ignores it"]


def test_a_plain_hpa_is_taken_where_it_may_be(file):
    """Alone; beside a ScaledObject it is the rival that it was."""
    metric = {"type": "External", "external": {"metric": {"name": "kafka_consumergroup_lag"}}}
    metric["external"]["target"] = {"type": "AverageValue", "averageValue": "150"}
    path = file(hpa(metrics=[metric]))
    found = scaledobject_file.load(path, hpa=True)
    assert (found.scaled.name, found.scaled.triggers[0].query) == ("x", "sum(kafka_consumergroup_lag{})")
    assert "a plain HPA" in found.remarks[0]
    assert said(path) == ["my.yaml: no ScaledObject is in it, but HorizontalPodAutoscaler x"]
