"""Each rule of the audit fires on its condition with its number, is silent just beside it, and is cured by its diff."""

import copy
import json
import math
import subprocess

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from lab.audit.findings import RULES
from lab.audit.rules import ERROR, INFORMATION, SEVERITIES, WARNING
from tests.unit.audit.objects import (
    CONTENT,
    CPU,
    EVEN,
    FALLBACK,
    INVALID,
    KAFKA,
    LOGGED,
    PROMETHEUS,
    audit,
    budget,
    cron,
    other,
    policies,
    scaled,
    text_of,
    workload,
)

TARGET, TWIN = {"scaleTargetRef": {"name": "orders"}}, {**scaled({}), "metadata": {"name": "twin"}}
POLLED = CONTENT["spec"] | {"pollingInterval": 3}
MANY = [CONTENT | {"metadata": {"name": f"o-{n}"}, "spec": POLLED | {"scaleTargetRef": {"name": f"{n}"}}} for n in range(59)]
COMPOSED = {"t.name": "lag", "modifiers": {"formula": "lag", "target": "100"}}
OF_ENV = {"k.topic": None, "k.topicFromEnv": "TOPIC"}
REFUNDS, TWO_TOPICS = (
    {**KAFKA, "metadata": KAFKA["metadata"] | {"topic": "refunds"}},
    {"partitions": {"orders": 24, "refunds": 12}},
)
SIDECAR = {"containers": [{"name": "app"}, {"name": "sidecar", "env": [{"name": "TOPIC", "value": "orders"}]}]}
FIRES = [
    ("idle-replicas", {"most": None, "k.allowIdleConsumers": "true"}, 76, WARNING, [], {}),
    ("idle-replicas", {"least": 30, "most": 40}, 6, WARNING, [], {}),
    ("idle-replicas", {"most": None}, 50, WARNING, [], {"partitions": {"orders": 150}}),
    ("idle-replicas", {"most": 50, "also": [PROMETHEUS, KAFKA | {"metadata": {"consumerGroup": "o"}}]}, 26, WARNING, [], {}),
    ("one-past-partitions", {"most": 30}, 25, INFORMATION, [], {}),
    ("one-past-partitions", {"most": 30, "k.partitionLimitation": "0,2-4,90"}, 5, INFORMATION, [], {}),
    ("unreachable-last", {}, 2, WARNING, [], {}),
    ("unreachable-last", {"most": 11}, 1, WARNING, [], {"partitions": {"": 11}}),
    ("unreachable-last", {"k.limitToPartitionsWithLag": "true"}, 2, WARNING, [], {}),
    ("uneven-share", {"most": 20}, 12, INFORMATION, [], {}),
    ("uneven-share", {"most": 10, f"k.{EVEN}": "true"}, 8, INFORMATION, [], {}),
    ("uneven-share", {"most": 13, f"k.{EVEN}": "true"}, 12, INFORMATION, [], {"partitions": {"": 13}}),
    ("bounds", {"least": 30}, 30, ERROR, [], {}),
    ("bounds", {"least": 3, "idle": 1}, 1, ERROR, [], {}),
    ("bounds", {"least": None, "idle": 0}, 0, ERROR, [], {}),
    ("bounds", {"name": "o" * 60}, 69, ERROR, [], {}),
    ("bounds", {"down": policies("Pods/1/3600")}, 3600, ERROR, [], {}),
    ("bounds", {"up": {"stabilizationWindowSeconds": 4000}}, 4000, ERROR, [], {}),
    ("bounds", {"up": {"tolerance": 0.05}}, None, ERROR, [], {}),  # a string alone is a fraction to the CRD
    ("bounds", {"target": {"name": "orders", "kind": "deployment"}}, None, ERROR, [], {}),
    ("paused", {"paused": "false", "paused-replicas": "5"}, 5, WARNING, [], {}),
    ("paused", {"paused": "yes"}, None, WARNING, [], {}),
    ("paused", {"down": {"selectPolicy": "Disabled"}}, 23, WARNING, [], {}),
    ("no-topic", {"k.topic": None}, None, WARNING, [], {}),
    ("no-topic", OF_ENV, None, ERROR, [workload(pod=SIDECAR)], {}),
    ("ignored-metadata", {"k.lagThreshold": None, "k.lagThresholdFromEnv": "LAG"}, 10, ERROR, [], {}),
    ("ignored-metadata", {"k.startThreshold": "1"}, 0, ERROR, [], {}),
    ("trigger-refused", {"k.sasl": "plaintext"}, None, ERROR, [], {}),
    ("trigger-refused", {"k.allowIdleConsumers": True}, None, ERROR, [], {}),
    ("trigger-refused", {"k.allowIdleConsumers": "true", "k.limitToPartitionsWithLag": "true"}, None, ERROR, [], {}),
    ("trigger-refused", {"k.topic": None, f"k.{EVEN}": "true"}, None, ERROR, [], {}),
    ("trigger-refused", {"only": []}, None, ERROR, [], {}),
    ("trigger-refused", {"k.lagThreshold": "0"}, None, ERROR, [], {}),
    ("trigger-refused", {"also": [CPU | {"useCachedMetrics": True}]}, None, ERROR, [], {}),
    ("trigger-refused", {"also": [cron("0 8 * * 7", "0 18 * * 7")]}, None, ERROR, [], {}),
    ("persistent-vs-commit", {"k.excludePersistentLag": "true"}, 15, WARNING, [], {}),
    ("persistent-vs-commit", {"k.excludePersistentLag": "true"}, 0.25, WARNING, [], {"commit_s": 20.0}),
    ("persistent-vs-commit", {"k.excludePersistentLag": "true", "least": 0}, 0.5, WARNING, [], {"commit_s": 20.0}),
    ("threshold-below-commit", {}, 2, INFORMATION, [], {"commit_s": 5.0, "pod_rate": 3.0}),
    ("metric-type-value", {"t.metricType": "Value"}, 2, ERROR, [], {}),
    ("idle-replicas", {"t.metricType": "Value", "most": 30}, 6, WARNING, [], {}),
    ("timers", {"t.useCachedMetrics": True, "poll": 120}, 8, WARNING, [], {}),
    ("timers", {"poll": 5}, 0, INFORMATION, [], {}),
    ("timers", {"cool": 600}, 0, INFORMATION, [], {}),
    ("max-not-sum", {"also": [KAFKA]}, 24, INFORMATION, [], {}),
    ("modifiers-cap", COMPOSED, 3, ERROR, [], {}),
    ("modifiers-cap", {**COMPOSED, "modifiers": {"formula": "lag + more", "target": "10"}}, None, ERROR, [], {}),
    ("modifiers-cap", {"modifiers": {"formula": "lag", "target": "10"}}, None, ERROR, [], {}),
    ("fallback-never", {**COMPOSED, "modifiers": {"formula": "lag", "target": "2.5"}, "fallback": FALLBACK}, 0, ERROR, [], {}),
    ("fallback-never", {"only": [CPU], "fallback": FALLBACK}, 0, ERROR, [], {}),
    ("fallback-never", {"fallback": FALLBACK}, 60, INFORMATION, [], {}),
    ("fallback-shrinks", {"fallback": FALLBACK}, 21, WARNING, [], {}),
    ("fallback-shrinks", {"fallback": FALLBACK | {"replicas": 0}}, 23, ERROR, [], {}),
    ("cron-open", {"also": [cron("30 6 * * 1-5", "10 22 * * *")]}, 126.33, WARNING, [], {}),
    ("cron-open", {"also": [cron("0 8 * * *", "0 6 * * *")]}, 154, WARNING, [], {}),
    ("cron-open", {"also": [cron("* 8 * * *", "* 18 * * *")]}, 70, WARNING, [], {}),
    ("cron-zone-dst", {"also": [cron("0 8 * * *", "0 18 * * *", zone="IST")]}, None, ERROR, [], {}),
    ("cron-zone-dst", {"also": [cron("0 8 * * *", "0 18 * * *", zone="EST")]}, 238, WARNING, [], {}),
    ("cron-zone-dst", {"also": [cron("30 2 * * *", "0 6 * * *")]}, None, WARNING, [], {}),
    ("cron-no-effect", {"also": [cron("0 8 * * *", "0 18 * * *", 24)]}, 2, WARNING, [], {}),
    ("cron-no-effect", {"also": [cron("0 8 * * *", "0 18 * * *", 1)]}, 1, WARNING, [], {}),
    ("activation-holds", {"least": 0, "k.activationLagThreshold": "50"}, 50, ERROR, [], {}),
    ("activation-holds", {"idle": 0, "k.activationLagThreshold": "5"}, 5, WARNING, [], {}),
    ("activation-holds", {"k.activationLagThreshold": "5"}, 5, INFORMATION, [], {}),
    ("uncommitted-group", {"least": 0}, 3, WARNING, [], {}),
    ("uncommitted-group", {"least": 4, "idle": 0}, 4, WARNING, [], {}),
    ("uncommitted-group", {"least": 0, f"k.{INVALID}": "true"}, 0, ERROR, [], {}),
    ("uncommitted-group", {"k.offsetResetPolicy": "latest"}, 3, INFORMATION, [], {}),
    ("jump-to-zero", {"least": 0, "down": policies("Pods/1/60")}, 23, WARNING, [], {}),
    ("jump-to-zero", {"least": 0, "cool": 200, "down": {"stabilizationWindowSeconds": 600}}, 24, WARNING, [], {}),
    ("one-poll-to-zero", {"least": 0, "cool": 30}, 1, WARNING, [], {}),
    ("one-poll-to-zero", {"least": 0}, 3, WARNING, [workload({"replicas": 3})], {}),
    ("zero-on-slow-source", {"least": 0, "also": [PROMETHEUS]}, 300, ERROR, [], {}),
    ("slow-ramp", {"up": policies("Pods/1/60")}, 22, WARNING, [], {}),
    ("slow-ramp", {"up": policies("Pods/1/5")}, 5.5, WARNING, [], {}),
    ("slow-ramp", {"down": policies("Percent/10/60")}, 14, WARNING, [], {}),
    ("policy-arithmetic", {"down": policies("Percent/100/15", "Pods/1/60")}, 1, INFORMATION, [], {}),
    ("policy-arithmetic", {"up": policies("Percent/10/60")}, 50, INFORMATION, [], {}),
    ("down-in-one-step", {}, 23, INFORMATION, [], {}),
    ("down-in-one-step", {"down": {"stabilizationWindowSeconds": 0}}, 23, WARNING, [], {}),
    ("tolerance-dropped", {"up": {"tolerance": 0}}, 0.1, ERROR, [], {"kubernetes": (1, 34)}),
    ("tolerance-dropped", {"up": {"tolerance": 0}}, 0.1, ERROR, [], {"keda": (2, 17)}),
    ("cpu-without-request", {"also": [CPU]}, 1, ERROR, [workload(pod=LOGGED)], {}),
    ("cpu-without-request", {"least": 0, "only": [CPU]}, 0, ERROR, [], {}),
    ("manifest-replicas", {}, 1, WARNING, [workload({"replicas": 1})], {}),
    ("grace-too-short", {}, 30, WARNING, [workload()], {"job_s": 60.0}),
    ("pdb-blocks", {}, 0, WARNING, [workload(), budget(minAvailable=1)], {}),
    ("pdb-blocks", {}, 0, WARNING, [workload(), budget(maxUnavailable="0%")], {}),
    ("two-owners", {}, 2, ERROR, [TWIN], {}),
    ("two-owners", {}, 2, ERROR, [other("HorizontalPodAutoscaler", **TARGET)], {}),
    ("two-owners", {}, 2, ERROR, [other("HorizontalPodAutoscaler", "keda-hpa-orders")], {}),
    ("fleet-rate", {"poll": 3}, 20, WARNING, MANY, {}),
]  # fmt: skip
OWNED = other("HorizontalPodAutoscaler", **TARGET) | {"metadata": {"name": "x", "ownerReferences": [{"kind": "ScaledObject"}]}}
SILENT = [
    ("idle-replicas", {}, [], {}),
    ("idle-replicas", {"k.allowIdleConsumers": "true"}, [], {}),
    ("idle-replicas", {"most": 100, "k.allowIdleConsumers": "true"}, [], {"partitions": {}}),
    ("one-past-partitions", {}, [], {}),
    ("one-past-partitions", {"most": 30, "k.lagThreshold": "1"}, [], {}),  # no lag lies between
    ("one-past-partitions", {"most": 30, "k.allowIdleConsumers": "true"}, [], {}),
    ("unreachable-last", {"most": 10}, [], {"partitions": {"": 10}}),
    ("unreachable-last", {"up": {"tolerance": 0}}, [], {}),
    ("unreachable-last", {"k.allowIdleConsumers": "true"}, [], {}),
    ("unreachable-last", {"most": 21}, [], {}),
    ("one-past-partitions", {"most": 36, "also": [REFUNDS]}, [], TWO_TOPICS),  # the other asks for more, and they own its
    ("unreachable-last", {"most": 36, "also": [REFUNDS]}, [], TWO_TOPICS),
    ("uneven-share", {"most": 12}, [], {}),
    ("uneven-share", {f"k.{EVEN}": "true"}, [], {}),
    ("bounds", {"least": 3, "idle": 0}, [], {}),
    ("bounds", {"least": 0, "idle": 0}, [], {}),  # KEDA counts the HPA's minimum, 1
    ("bounds", {"least": 24, "target": {"name": "orders", "kind": "KameletBinding", "apiVersion": "camel.io/v1"}}, [], {}),
    ("bounds", {"down": {"policies": []}}, [], {}),  # KEDA leaves an empty list out
    ("paused", {"paused": "false"}, [], {}),
    ("no-topic", {}, [], {}),
    ("no-topic", OF_ENV, [], {}),  # the container is not known
    ("no-topic", OF_ENV, [workload(pod={"containers": SIDECAR["containers"][1:]})], {}),
    ("ignored-metadata", {"k.lagThreshold": "500"}, [], {}),
    ("ignored-metadata", {"k.topic": None, "k.topicFromEnv": "TOPIC"}, [], {}),
    ("trigger-refused", {"k.sasl": "plaintext", "t.authenticationRef": {"name": "login"}}, [], {}),
    ("trigger-refused", {"also": [cron("0 8 * * 6", "0 18 * * 6")]}, [], {}),
    ("persistent-vs-commit", {"k.excludePersistentLag": "true"}, [], {"commit_s": 5.0}),
    ("persistent-vs-commit", {"k.excludePersistentLag": "true", "t.useCachedMetrics": True}, [], {"commit_s": 20.0}),
    ("threshold-below-commit", {}, [], {"commit_s": 5.0, "pod_rate": 1.0}),
    ("threshold-below-commit", {}, [], {}),
    ("metric-type-value", {"t.metricType": "AverageValue"}, [], {}),
    ("timers", {"poll": 15, "least": 0}, [], {}),
    ("timers", {"t.useCachedMetrics": True, "poll": 30}, [], {}),
    ("timers", {"poll": 30}, [], {}),
    ("max-not-sum", {"also": [PROMETHEUS]}, [], {}),
    ("modifiers-cap", {**COMPOSED, "k.lagThreshold": "100"}, [], {}),
    ("fallback-never", {"only": [PROMETHEUS], "fallback": FALLBACK}, [], {}),
    ("fallback-never", {"t.type": "apache-kafka", "fallback": FALLBACK}, [], {}),
    ("fallback-shrinks", {"fallback": FALLBACK | {"behavior": "currentReplicasIfHigher"}}, [], {}),
    ("cron-open", {"also": [cron("30 6 * * 1-5", "10 22 * * 1-5")]}, [], {}),
    ("cron-open", {"also": [cron("0 22 * * 1-5", "0 6 * * 2-6")]}, [], {}),
    ("cron-zone-dst", {"also": [cron("0 4 * * *", "0 6 * * *")]}, [], {}),
    ("cron-no-effect", {"also": [cron("0 8 * * *", "0 18 * * *", 8)]}, [], {}),
    ("cron-no-effect", {"least": 0, "also": [cron("0 8 * * *", "0 18 * * *", 1)]}, [], {}),  # there is a pod in its hours
    ("activation-holds", {"least": 0, "k.activationLagThreshold": "0"}, [], {}),
    ("uncommitted-group", {"least": 0, "k.offsetResetPolicy": "earliest"}, [], {}),
    ("uncommitted-group", {"least": 0, "k.activationLagThreshold": "24"}, [], {}),
    ("uncommitted-group", {}, [], {}),  # the default
    ("uncommitted-group", {"k.offsetResetPolicy": "latest", f"k.{INVALID}": "true"}, [], {}),
    ("jump-to-zero", {"least": 0, "cool": 1740, "down": policies("Pods/1/60")}, [], {}),
    ("jump-to-zero", {"down": policies("Pods/1/60")}, [], {}),
    ("jump-to-zero", {"least": 3, "idle": 0, "cool": 1740, "down": policies("Pods/1/60")}, [], {}),
    ("unreachable-last", {"t.metricType": "Value"}, [], {}),
    ("one-poll-to-zero", {"least": 0, "cool": 300}, [], {}),
    ("one-poll-to-zero", {"cool": 30}, [], {}),
    ("zero-on-slow-source", {"also": [PROMETHEUS]}, [], {}),
    ("zero-on-slow-source", {"least": 0, "also": [PROMETHEUS]}, [], {"keda": (2, 19)}),
    ("slow-ramp", {}, [], {}),
    ("policy-arithmetic", {"down": policies("Percent/100/15", "Pods/1/60", selectPolicy="Min")}, [], {}),
    ("down-in-one-step", {"down": policies("Percent/25/60")}, [], {}),
    ("tolerance-dropped", {"up": {"tolerance": 0}}, [], {}),
    ("cpu-without-request", {"also": [CPU]}, [workload()], {}),
    ("cpu-without-request", {"also": [CPU | {"metadata": {"value": "9", "containerName": "app"}}]}, [workload(pod=LOGGED)], {}),
    ("manifest-replicas", {}, [workload()], {}),
    ("manifest-replicas", {}, [workload({"replicas": 1}, uid="1")], {}),  # out of a cluster, and no manifest
    ("grace-too-short", {}, [workload(pod={"terminationGracePeriodSeconds": 90})], {"job_s": 60.0}),
    ("pdb-blocks", {}, [workload(), budget(maxUnavailable=1)], {}),
    ("two-owners", {"also": [KAFKA]}, [OWNED], {}),
    ("two-owners", {}, [workload(), CONTENT, workload()], {}),  # of another environment
    ("fleet-rate", {"poll": 3}, MANY[:58], {}),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "changes", "number", "severity", "beside", "facts"), FIRES, ids=[case[0] for case in FIRES])
def test_a_rule_fires_on_its_condition_and_its_diff_cures(tmp_path, rule, changes, number, severity, beside, facts):
    """With the number of this object; with the diff applied it fires there no more."""
    text = text_of(changes, beside)
    hits = [one for one in audit(text, facts).findings if one.rule == rule]
    found = [one for one in hits if one.severity == severity and one.number == pytest.approx(number, abs=0.01)]
    assert found, [(one.severity, one.number, one.sentence) for one in hits]
    for one in found:
        assert one.line
        assert text.splitlines()[one.line - 1]
        if one.diff:
            (tmp_path / "a.yaml").write_text(text)
            subprocess.run(["git", "apply", "-"], input=one.diff + "\n", text=True, cwd=tmp_path, check=True, timeout=60)
            left = audit((tmp_path / "a.yaml").read_text(), facts)
            assert not left.unread
            same = (one.rule, one.severity, one.field, one.object)
            assert same not in {(each.rule, each.severity, each.field, each.object) for each in left.findings}


@pytest.mark.parametrize(("rule", "changes", "beside", "facts"), SILENT, ids=[case[0] for case in SILENT])
def test_a_rule_is_silent_just_beside_its_condition(rule, changes, beside, facts):
    """One value further."""
    assert [one.sentence for one in audit(text_of(changes, beside), facts).findings if one.rule == rule] == []


SCALARS = [None, True, 0, -1, -2, 10**12, 10**30, 0.5, math.nan, "", "x", "-1", "9" * 20, "nan", "inf", "1e999", "9-3"]
JUNK = st.sampled_from([*SCALARS, [], [1], {}, {1: [2]}, ["a", {}], {"a": None}])


@given(st.sampled_from(FIRES), st.data())
def test_junk_in_any_place_is_no_fault(case, data):
    """Whatever stands in a field, of a ScaledObject or of what is beside it, the audit of the rest goes on."""
    objects = json.loads(json.dumps([scaled(case[1]), *case[4][:2]]))
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(objects))
        while True:
            inner = list(place) if isinstance(place, dict) else list(range(len(place)))
            key = data.draw(st.sampled_from(inner))
            if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
                break
            place = place[key]
        place[key] = copy.deepcopy(data.draw(JUNK))  # a later one may go into it
    audit(yaml.safe_dump_all(objects), case[5])


def test_every_rule_is_tried():
    """Each fires once at least, and once is silent; its severity is known, and no id is used twice."""
    ids = [one.id for one in RULES]
    assert len(ids) == len(set(ids)) == 35
    assert {case[0] for case in FIRES} == {case[0] for case in SILENT} == set(ids)
    assert {one.severity for one in RULES} == set(SEVERITIES)


def test_a_window_that_is_open_over_a_weekend_is_not_made_longer():
    """The end on the day of the start would come a week later."""
    found = audit(text_of({"also": [cron("0 20 * * 5", "0 8 * * 1")]}, []), {}).findings
    assert [one.diff for one in found if one.rule == "cron-open"] == [""]
