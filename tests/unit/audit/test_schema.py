"""What of a ScaledObject the API server's schema refuses, what was meant, and that the schema is the one of KEDA's CRD."""

import pytest
import yaml

from lab.audit import cure, schema
from lab.audit.schema import ANY, FLAG, TEXT, WHOLE
from lab.components import build
from tests.unit.audit.test_rules import CONTENT, path, scaled, text_of
from tests.unit.audit.test_rules import audit as audit_of

SAME = object()


@pytest.mark.parametrize(
    ("field", "value", "words", "meant"),
    [
        ("most", "24", ["'24' is no whole number"], 24),
        ("most", 24.0, [], SAME),
        ("poll", "30s", ["'30s' is no whole number"], 30),
        ("cool", True, ["True is no whole number"], SAME),
        ("fallback", {"replicas": "3"}, ["'3' is no whole number"], {"replicas": 3}),
        ("up", {"policies": {"type": "Pods"}}, ["{'type': 'Pods'} is no list"], SAME),
        ("down", {"policies": [{"type": 1, "value": 1, "periodSeconds": "1m"}]}, ["1 is no string", "'1m' is no whole number"],
         {"policies": [{"type": "1", "value": 1, "periodSeconds": 60}]}),
        ("modifiers", {"formula": "a", "target": 10}, ["10 is no string"], {"formula": "a", "target": "10"}),
        ("t.useCachedMetrics", "true", ["'true' is no true or false"], True),
        ("t.authenticationRef", "login", ["'login' is no mapping"], SAME),
        ("up", {"stabilisationWindowSeconds": 5}, ["no such field"], {"stabilizationWindowSeconds": 5}),
        ("down", {"tolerance": 0.05, "extra": 1}, ["no such field"], SAME),
    ],
)  # fmt: skip
def test_what_the_schema_refuses_and_what_was_meant(field, value, words, meant):
    """A value of another type, and a field that it lacks; null is not written."""
    content = cure.changed(CONTENT, {path(field): value, path("idle"): None})
    hits = list(schema.wrong(content["spec"]))
    assert [hit.sentence.partition(": the API")[0].partition(": kube")[0] for hit in hits] == words
    made = cure.changed(content, {place: one for hit in hits for place, one in hit.changes.items()})
    assert made == cure.changed(content, {path(field): value if meant is SAME else meant})


def test_a_field_of_the_hpa_is_one_of_keda_by_another_name():
    """As a finding: with its line, and a diff."""
    text = text_of({}, []).replace("maxReplicaCount", "maxReplicas")
    (found,) = (one for one in audit_of(text, {}).findings if one.sentence.startswith("no such field"))
    assert (found.rule, found.field, found.cure) == ("bounds", "spec.maxReplicas", "maxReplicaCount")
    assert "+  maxReplicaCount: 24" in found.diff


def of_crd(given):
    """A part of the CRD in the words of the audit."""
    if given.get("x-kubernetes-int-or-string") or "additionalProperties" in given:
        return ANY
    if given["type"] == "array":
        return [of_crd(given["items"])]
    if given["type"] == "object":
        return {name: of_crd(one) for name, one in given["properties"].items()}
    return {"integer": WHOLE, "string": TEXT, "boolean": FLAG}[given["type"]]


@pytest.mark.services  # the module comes with what a cluster is built of
def test_the_schema_is_that_of_the_crd():
    """Of the pinned release."""
    file = build.source(build.KEDA_MODULE, "kubernetes") / "config" / "crd" / "bases" / "keda.sh_scaledobjects.yaml"
    (version,) = yaml.safe_load(file.read_text())["spec"]["versions"]
    assert of_crd(version["schema"]["openAPIV3Schema"]["properties"]["spec"]) == schema.SPEC
    assert not list(schema.wrong(scaled({})["spec"]))
