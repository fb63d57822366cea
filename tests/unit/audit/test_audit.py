"""The audit of files: public ones by their deciding lines, diffs in a List, and what the command prints and ends with."""

import io
import json
import re
import subprocess
import sys
import time

import pytest
import yaml

from lab import paths
from lab.__main__ import main
from lab.audit import cure, findings
from lab.audit.findings import RULES
from lab.audit.rules import ERROR, REMOVED
from lab.audit.scaledobject import Facts
from tests.unit.audit.objects import BASE, CONTENT, PROMETHEUS, audit, other, text_of, workload

OF_PARTITIONS = ("idle-replicas", "one-past-partitions", "unreachable-last")
# Rules that a public file of few surprises fires none of.
TOLD = (*OF_PARTITIONS, "activation-holds", "trigger-refused", "ignored-metadata", "timers", "no-topic", "max-not-sum")
SECOND, THIRD = ({"type": "kafka", "metadata": CONTENT["spec"]["triggers"][0]["metadata"] | {"topic": name}} for name in "ab")
HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "hpa"}}
HPA |= {"spec": {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "orders"}}}
METRIC = PROMETHEUS | {"metadata": PROMETHEUS["metadata"] | {"metricName": "lag"}}
ZERO = {"least": 0, "most": 50}
PUBLIC = {  # by file of a corpus: what decides in it, partitions of each topic, and the rules that fire with their numbers
    "activation-1-threshold-1": (ZERO | {"k.lagThreshold": "1", "k.activationLagThreshold": "1"}, 12,
                                 {"unreachable-last": 1, "activation-holds": 1}),
    "apache-kafka-type": (ZERO | {"t.type": "apache-kafka"}, 12, {"one-past-partitions": 13, "unreachable-last": 1}),
    "from-env-activation-above": ({"least": 0, "most": 10, "k.topic": None, "k.lagThreshold": "1000",
                                   "k.activationLagThreshold": "3000"}, 12, {"activation-holds": 3000, "no-topic": None}),
    "hpa-and-so-one-target": ({"least": 3, "most": 500, "cool": 60}, 12,
                              {"one-past-partitions": 13, "unreachable-last": 1, "timers": 0, "two-owners": 2}),
    "idle-allowed-0-100": ({"least": 0, "most": 100, "k.allowIdleConsumers": "true"}, 12, {"idle-replicas": 88}),
    "kafka-900-window-min": ({"least": 2, "most": 8, "poll": 30, "down": {"stabilizationWindowSeconds": 900}}, 12, {}),
    "limit-high-threshold": ({"most": 12, "cool": 300, "k.limitToPartitionsWithLag": "true"}, 12,
                             {"unreachable-last": 1, "timers": 0}),
    "min-50-of-12-partitions": ({"least": 50, "most": 500}, 12, {"idle-replicas": 38, "one-past-partitions": 13}),
    "prom-and-kafka-same-lag": ({"least": 2, "most": 50, "also": [METRIC]}, 12, {
        "idle-replicas": 38, "one-past-partitions": 13, "unreachable-last": 1, "ignored-metadata": None}),
    "redpanda-percent-50": ({"least": None, "most": 10}, 12, {}),
    "sasl-msk-iam-direct": ({"least": 2, "most": 10, "k.sasl": "aws_msk_iam"}, 12, {"trigger-refused": None}),
    "start-threshold": ({"most": 10, "k.startThreshold": "1"}, 12, {"ignored-metadata": 0}),
    "three-topics-one-group": ({"least": 5, "most": 100, "also": [SECOND, THIRD]}, 4, {"max-not-sum": 4}),
    "unquoted-booleans": ({"least": 0, "most": None, "k.allowIdleConsumers": True, "k.partitionLimitation": "1,2,10-20,31"},
                          12, {"one-past-partitions": 5, "trigger-refused": None}),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_what_is_said_of_a_public_file(name):
    """The rules that must fire do so with their numbers, and of those that tell of the commonest errors no other."""
    changes, partitions, expected = PUBLIC[name]
    found = audit(text_of(changes, [HPA] if "two-owners" in expected else []), {"partitions": {"": partitions}}).findings
    told = {one.rule: one.number for one in found if one.rule in (*TOLD, "two-owners")}
    assert told == expected


@pytest.mark.parametrize(
    ("text", "objects", "said"),
    [
        (BASE.replace("keda.sh/", "keda.k8s.io/"), 0, "a.yaml:3: ScaledObject orders is of apiVersion keda.k8s.io/v1alpha1"),
        (BASE.replace("keda.sh/", "keda.k8s.io/").replace("{name", "{deploymentName"), 0, "v1alpha1, scaleTargetRef.name for"),
        (BASE.partition("spec:")[0] + "spec:\nminReplicaCount: 1\n", 0, "perhaps its indentation is lost"),
        (BASE.replace("orders}", "{{ .Values.name }}}"), 0, "is left of a template"),
        (BASE + "  maxReplicaCount: 3\n", 1, "maxReplicaCount is written twice"),
        ("kedaAutoscaling: {enabled: true}\n", 0, ""),
        (f"kind: List\nitems: [{json.dumps(CONTENT)}, {json.dumps(CONTENT | {'metadata': {'name': 'b'}})}]", 2, ""),
    ],
)
def test_what_can_not_be_read_is_told_and_no_pass(text, objects, said):
    """The rest of the file is audited."""
    found = audit(text, {})
    assert found.objects == objects
    assert (said in "".join(found.unread)) if said else found.unread == ()


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        *(({"k.lagThreshold": text}, told) for text, told in (("010", True), (" 10 ", False), ("9" * 18, False))),
        *(({"k.partitionLimitation": text}, told) for text, told in (("24-30", True), ("5-3", True), ("5-3,23", False))),
        ({"k.partitionLimitation": "24-30", "k.topic": None}, False),  # without a topic KEDA looks at none
        *(({"k.topic": text}, told) for text, told in (("a,b", True), ("orders.*", True), ("{{ a }}", False))),
        *(({"k.version": text}, told) for text, told in (("2.8", True), ("3.6.0", False))),
        ({"also": [PROMETHEUS | {"metadata": {"query": "q", "threshold": "1"}}]}, True),
    ],
)
def test_a_value_is_refused_as_keda_refuses_it(changes, told):
    """By how it reads numbers, ranges and versions, and for a field that is missing."""
    assert any(one.rule == "trigger-refused" for one in audit(text_of(changes, []), {}).findings) is told


def test_what_is_not_known_is_no_pass():
    """A rule that lacks a number says so, by the flag that would give it; a topic's own object gives it too."""
    found = audit(BASE, {"partitions": {}})
    (rest,) = (one for one in found.unchecked if one.flag == "--partitions")
    assert rest.objects == 1
    assert set(OF_PARTITIONS) < set(rest.rules)
    assert not {one.rule for one in found.findings} & set(OF_PARTITIONS)
    known = audit(text_of({"most": 11}, [other("KafkaTopic", "orders", partitions=11)]), {"partitions": {}})
    assert [one.number for one in known.findings if one.rule == "unreachable-last"] == [1]


INDENTED = "".join(f"  {line}\n" for line in BASE.strip().splitlines())
LIST = f"kind: List\nitems:\n# the first\n-{INDENTED[1:]}\n-{INDENTED[1:].replace('orders', 'refunds', 1)}# end\nmore: 1\n"
WRITTEN = {
    "a document": f"# head\n---\n{BASE}",
    "a list": LIST,
    "no end of line": BASE.rstrip(),
    "JSON": json.dumps({"kind": "List", "items": [CONTENT, CONTENT | {"metadata": {"name": "b"}}]}, indent=4),
    "JSON in a line": json.dumps(CONTENT),
}


@pytest.mark.parametrize("text", WRITTEN.values(), ids=WRITTEN)
def test_a_diff_changes_its_object_alone(tmp_path, text):
    """Wherever it stands: as a patch it makes the change, and no other value differs."""
    for one in audit(text, {}).findings:
        if one.rule != "unreachable-last":
            continue
        begins, context = re.search(r"^@@ -(\d+).*\n[ -](.*)", one.diff, re.MULTILINE).groups()
        assert text.splitlines()[int(begins) - 1] == context
        (tmp_path / "a.yaml").write_text(text)
        subprocess.run(["git", "apply", "-"], input=one.diff + "\n", text=True, cwd=tmp_path, check=True, timeout=60)
        made = list(yaml.safe_load_all((tmp_path / "a.yaml").read_text()))
        before = list(yaml.safe_load_all(text))
        objects, were = ((each[-1].get("items", [each[-1]])) for each in (made, before))
        changed = [number for number, (new, old) in enumerate(zip(objects, were, strict=True)) if new != old]
        assert len(changed) == 1
        assert objects[changed[0]]["metadata"]["name"] == one.object.split()[1]
        assert objects[changed[0]]["spec"]["triggers"][0]["metadata"].pop("allowIdleConsumers") == "true"
        assert objects == were


def test_the_page_has_each_rule():
    """With its severity, condition and cure, and in no other words."""
    page = (paths.PROJECT / "docs" / "audit.md").read_text()
    rows = [line for line in page.splitlines() if line.startswith("|")][2:]
    assert rows == [f"|{one.id}|{one.severity[0].upper()}|{one.condition}|{one.cure}|" for one in RULES]
    assert len(page.partition("## In CI")[0].split()) <= 600


def test_each_test_and_thread_is_there():
    """A rule names a test of this project, and a thread that can be looked up."""
    for one in RULES:
        assert not one.test or (paths.PROJECT / one.test).is_file(), one.test
        assert all(re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for thread in one.threads), one.threads


@pytest.fixture
def folder(tmp_path):
    """A folder of files, one of which a hidden folder has."""
    files = {"a.yaml": BASE, "in/b.yml": BASE.replace("orders", "b"), ".git/c.yaml": BASE, "in/notes.txt": "-"}
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize(
    ("more", "flags", "code"),
    [
        ("", ["--partitions=24"], 0),
        ("", ["--partitions=orders=24,b=10", "--fail-on=warning"], 1),
        ("", ["--partitions=10", "--fail-on=warning"], 0),
        ("", ["--partitions=24", "--fail-on=nothing"], 0),
        (BASE.replace('"10"', '"0"'), [], 1),
        (BASE.replace('"10"', '"0"'), ["--fail-on=nothing"], 0),
        ("{{ a }}: [", [], 2),
    ],
)
def test_the_exit_code_is_that_of_the_worst(capsys, folder, more, flags, code):
    """1 for a finding that --fail-on names, 2 for a text that can't be read, and the rest is told."""
    if more:
        (folder / "z.yaml").write_text(more)
    assert main(["audit", str(folder), *flags]) == code
    said = capsys.readouterr()
    assert "2 ScaledObjects: " in said.out or "3 ScaledObjects: " in said.out
    assert bool(said.err) == (code == 2)


def test_text_json_and_sarif_say_the_same(capsys, monkeypatch, folder):
    """Text has the place, the number's sentence and the cure; SARIF has what its schema wants, and each rule once."""
    text = BASE.replace('"10"', '"0"')
    printed = {}
    for flag in ("--hpa-sync-s=15", "--json", "--sarif"):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert main(["audit", "-", "--partitions=24", flag]) == 1
        printed[flag] = capsys.readouterr().out
    plain, made, sarif = printed["--hpa-sync-s=15"], json.loads(printed["--json"]), json.loads(printed["--sarif"])
    for one in made["findings"]:
        assert f"{one['file']}:{one['line']}: {one['severity']}: {one['object']}: {one['field']}: {one['sentence']}" in plain
    assert "standard input:12: error: ScaledObject orders: spec.triggers[0].metadata.lagThreshold: 0 is no whole" in plain
    (ran,) = sarif["runs"]
    assert (sarif["version"], len(ran["tool"]["driver"]["rules"])) == ("2.1.0", len(RULES))
    told = [(one["ruleId"], one["locations"][0]["physicalLocation"]["region"]["startLine"]) for one in ran["results"]]
    assert told == [(one["rule"], one["line"]) for one in made["findings"]]
    for one in ran["results"]:
        assert ran["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]
        assert one["level"] in ("error", "warning", "note")
        assert " " not in one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "FILE: missing; allowed: files, folders or -, or else --context"),
        (["-", "--context=a"], "FILE: ['-'] is not allowed"),
        (["{folder}/in/notes.txt"], "no ScaledObject is in it"),
        (["{folder}", "--partitions=a"], "--partitions: 'a' is not allowed; allowed: N, or TOPIC=N with commas"),
        (["{folder}", "--keda=new"], "--keda: 'new' is not allowed; allowed: such as 2.21"),
        (["{folder}", "--json", "--sarif"], "--sarif: True is not allowed; allowed: without --json"),
    ],
)
def test_a_bad_question_is_one_line(capsys, folder, arguments, line):
    """And exit code 2."""
    try:
        code = main(["audit", *(one.replace("{folder}", str(folder)) for one in arguments)])
    except SystemExit as end:
        code = end.code
    said = capsys.readouterr()
    assert (code, said.out) == (2, "")
    assert line in said.err


def test_a_cluster_is_read_through_kubectl(capsys, monkeypatch, tmp_path):
    """The context's objects, in one question; without kubectl, or where it fails, a line says so."""
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\necho \"$*\" > {tmp_path}/asked\ncat <<'END'\n{json.dumps(CONTENT)}\nEND\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert main(["audit", "--context=staging", "--partitions=24"]) == 0
    assert "1 ScaledObject: " in capsys.readouterr().out
    asked = (tmp_path / "asked").read_text()
    assert asked.startswith("--context=staging get scaledobjects.keda.sh,")
    assert "--all-namespaces" in asked
    program.write_text("#!/bin/sh\necho 'no such context' >&2\nexit 1\n")
    assert main(["audit", "--context=staging"]) == 2
    assert "a cluster that answers kubectl: no such context" in capsys.readouterr().err
    monkeypatch.setenv("PATH", "")
    assert main(["audit", "--context=staging"]) == 2
    assert "kubectl on the PATH" in capsys.readouterr().err


def test_what_a_fleet_costs(capsys):
    """The time is printed, and every object is there."""
    names = (({"name": f"orders-{n}"}, {"scaleTargetRef": {"name": f"{n}"}}) for n in range(200))
    each = [CONTENT | {"metadata": name, "spec": CONTENT["spec"] | target} for name, target in names]
    text = yaml.dump_all(each, Dumper=yaml.CSafeDumper)
    begun = time.perf_counter()
    found = audit(text, {})
    with capsys.disabled():
        print(f"\n{found.objects} ScaledObjects, {len(found.findings)} findings: {time.perf_counter() - begun:.2f} s")
    assert found.objects == 200
    assert not found.counts[ERROR]


def test_each_environment_has_its_own_workload():
    """One object in two folders is no two owners, a rule looks at the workload of its folder, and a patch is no object."""
    both = {"dev": yaml.safe_dump(workload({"replicas": 3})), "prod": yaml.safe_dump(workload())}
    parts = (BASE, BASE.partition("  scaleT")[0] + "  maxReplicaCount: 9\n")
    found = findings.audit({f"{one}/{n}.yaml": text for one in both for n, text in enumerate((*parts, both[one]))}, Facts())
    told = [(one.rule, one.file) for one in found.findings if one.rule in ("two-owners", "manifest-replicas")]
    assert (told, found.objects, len(found.unread)) == ([("manifest-replicas", "dev/2.yaml")], 2, 2)


def test_a_change_makes_its_way():
    """A mapping that is missing, or is something else, is made; what goes takes nothing along."""
    changes = {("a", "b"): 2, ("d", "e", "f"): 4, ("c",): REMOVED}
    assert cure.apply({"a": [1], "c": 3}, changes) == {"a": {"b": 2}, "d": {"e": {"f": 4}}}
    assert cure.apply({"a": [{"b": 1}, {"b": 2}]}, {("a", 1, "b"): 3}) == {"a": [{"b": 1}, {"b": 3}]}
