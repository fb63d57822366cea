"""What of a ScaledObject the API server's schema refuses, what was meant, and that the schema is the one of KEDA's CRD."""

import pytest
import yaml

from lab.__main__ import main
from lab.audit import cure, schema
from lab.audit.schema import ANY, FLAG, TEXT, WHOLE, Items, Object
from lab.components import build
from tests.unit.audit.objects import CONTENT, PROMETHEUS, path, scaled, text_of
from tests.unit.audit.objects import audit as audit_of

SAME = object()


@pytest.mark.parametrize(
    ("field", "value", "words", "meant"),
    [
        ("most", "24", ["'24' is no whole number from 1"], 24),
        ("most", 24.0, [], SAME),
        ("poll", "30s", ["'30s' is no whole number from 1"], 30),
        ("cool", True, ["True is no whole number from 0"], SAME),
        ("fallback", {"replicas": "3"}, ["no failureThreshold", "'3' is no whole number from 0"], {"replicas": 3}),
        ("up", {"policies": {"type": "Pods"}}, ["{'type': 'Pods'} is no list"], SAME),
        ("down", {"policies": [{"type": 1, "value": 1, "periodSeconds": "1m"}]},
         ["1 is not Pods or Percent", "'1m' is no whole number from 1"],
         {"policies": [{"type": 1, "value": 1, "periodSeconds": 60}]}),
        ("down", {"selectPolicy": "min"}, ["'min' is not Max or Min or Disabled"], {"selectPolicy": "Min"}),
        ("least", -1, ["-1 is no whole number from 0"], SAME),
        ("modifiers", {"formula": "a", "target": 10}, ["10 is no string"], {"formula": "a", "target": "10"}),
        ("t.useCachedMetrics", "true", ["'true' is no true or false"], True),
        ("t.authenticationRef", "login", ["'login' is no mapping"], SAME),
        ("up", {"stabilisationWindowSeconds": 5}, ["no such field"], {"stabilizationWindowSeconds": 5}),
        ("down", {"tolerance": 0.05, "extra": 1}, ["no such field"], SAME),
    ],
)  # fmt: skip
def test_what_the_schema_refuses_and_what_was_meant(field, value, words, meant):
    """A value of another type, and a field that it lacks; null is not written."""
    content = cure.apply(CONTENT, {path(field): value, path("idle"): None})
    hits = list(schema.wrong(content["spec"]))
    assert [hit.sentence.partition(": the API")[0].partition(": kube")[0] for hit in hits] == words
    made = cure.apply(content, {place: one for hit in hits for place, one in hit.changes.items()})
    assert made == cure.apply(content, {path(field): value if meant is SAME else meant})


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"name": "Orders!"}, "metadata.name", "'Orders!' is no name of an object"),
        ({"name": None}, "metadata.name", "None is no name of an object"),
        ({"paused": True}, "metadata.annotations.autoscaling.keda.sh/paused", "True is no string"),
    ],
)
def test_the_metadata_is_of_the_api_servers_types(changes, field, words):
    """A name that no object may have, and a value that is no string."""
    told = [(one.field, one.sentence.partition(":")[0]) for one in audit_of(text_of(changes, []), {}).findings]
    assert (field, words) in told


@pytest.mark.parametrize(("threshold", "told"), [("10%", True), ("1k", True), (" ", True), ("1.5e+1", False), (" 0.5", False)])
def test_a_threshold_is_a_number_as_json_writes_it(threshold, told):
    """Else KEDA makes no scaler."""
    trigger = PROMETHEUS | {"metadata": PROMETHEUS["metadata"] | {"threshold": threshold}}
    found = audit_of(text_of({"also": [trigger]}, []), {}).findings
    assert [one.field for one in found if one.rule == "trigger-refused"] == ["spec.triggers[1].metadata.threshold"] * told


def test_a_terminal_is_sent_no_escape(capsys, tmp_path):
    """Whatever a key or a name holds."""
    (tmp_path / "a.yaml").write_text(text_of({}, []).replace("maxReplicaCount", '"\\e[31mmax"'))
    assert main(["audit", str(tmp_path / "a.yaml")]) == 1
    said = capsys.readouterr().out
    assert "spec.\\x1b[31mmax" in said
    assert all("\x1b" not in line for line in said.splitlines() if line.startswith(str(tmp_path)))


def test_a_field_of_the_hpa_is_one_of_keda_by_another_name():
    """As a finding: with its line, and a diff."""
    text = text_of({}, []).replace("maxReplicaCount", "maxReplicas")
    (found,) = (one for one in audit_of(text, {}).findings if one.sentence.startswith("no such field"))
    assert (found.rule, found.field, found.cure) == ("bounds", "spec.maxReplicas", "maxReplicaCount")
    assert "+  maxReplicaCount: 24" in found.diff


def agree(ours, crd):
    """Whether a part of the schema is that of the CRD; words and numbers of a behavior are those of the HPA's validation."""
    if isinstance(ours, Object):
        assert ours.fields.keys() == crd["properties"].keys()
        assert {*ours.needed} <= {*crd.get("required", ())}
        for name, one in ours.fields.items():
            agree(one, crd["properties"][name])
    elif isinstance(ours, Items):
        agree(ours.each, crd["items"])
    elif ours.kind == ANY:
        assert crd.get("x-kubernetes-int-or-string") or "additionalProperties" in crd
    else:
        assert {"integer": WHOLE, "string": TEXT, "boolean": FLAG}[crd["type"]] == ours.kind
        assert ours.words == tuple(crd.get("enum", ours.words))
        assert ours.least == crd.get("minimum", ours.least)


@pytest.mark.services  # the module comes with what a cluster is built of
def test_the_schema_is_that_of_the_crd():
    """Of the pinned release."""
    file = build.source(build.KEDA_MODULE, "kubernetes") / "config" / "crd" / "bases" / "keda.sh_scaledobjects.yaml"
    (version,) = yaml.safe_load(file.read_text())["spec"]["versions"]
    agree(schema.SPEC, version["schema"]["openAPIV3Schema"]["properties"]["spec"])
    assert not list(schema.wrong(scaled({})["spec"]))
