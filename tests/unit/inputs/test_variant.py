"""A policy as a base and what differs: where each change goes, the label that the id has, and what is refused by name."""

import pytest

from lab import paths, yamlfile
from lab.inputs.variant import NAMES, SPEC, policy
from tests.unit.inputs.written import refused, trial

FOLDER = paths.MANIFESTS / "scaledobjects"
ORDERS = paths.PROJECT / "docs" / "examples" / "orders.yaml"
MEMORY = {"type": "memory", "metricType": "AverageValue", "metadata": {"value": "31Mi"}}


def content(base, **changes):
    """The base's YAML with the changes."""
    return policy(base, **changes).applied(yamlfile.read(FOLDER / f"{base}.yaml"), "here")


def read(base, **changes):
    """The inputs of a trial on the changed policy at real time."""
    return trial("bursty", policy(base, **changes), scale="real")


def at(content, place):
    """The value at a path of field names."""
    for field in place.split("."):
        content = content[field]
    return content


@pytest.mark.parametrize("name", [name for name in SPEC if name not in ("scale_up", "scale_down")])
def test_a_change_of_the_spec_is_one_field(name):
    """And no other; it is there also where the base has no such block."""
    made = content("lag-4500", **{name: 7})
    assert str(at(made["spec"], SPEC[name][0])) == "7"
    bare = {"kind": "ScaledObject", "spec": {}}
    assert str(at(policy("x", **{name: 7}).applied(bare, "here")["spec"], SPEC[name][0])) == "7"
    assert bare["spec"] == {}


def test_a_change_of_triggers_is_in_each_that_has_the_field():
    """As text, which KEDA's metadata is; a switch of the trigger itself is a switch."""
    both = content("halves-4500", lag_threshold=2250)["spec"]["triggers"]
    assert [one["metadata"]["lagThreshold"] for one in both] == ["2250", "2250"]
    lag, arrivals = content("lag-4500-arrivals", exclude_persistent_lag=True, use_cached_metrics=True)["spec"]["triggers"]
    assert lag["metadata"]["excludePersistentLag"] == "true"
    assert "excludePersistentLag" not in arrivals["metadata"]
    assert lag["useCachedMetrics"] is arrivals["useCachedMetrics"] is True
    assert content("lag-4500", trigger=MEMORY)["spec"]["triggers"][1:] == [MEMORY]


def test_the_hpas_policies_are_said_in_short():
    """A share or a number of pods a period, one or several."""
    made = content("lag-4500", scale_up=["200%/30s", "8 pods/30 s"], scale_down="1 pod/60s")
    percent, pods = at(made["spec"], SPEC["scale_up"][0])
    assert percent == {"type": "Percent", "value": 200, "periodSeconds": 30}
    assert pods == {"type": "Pods", "value": 8, "periodSeconds": 30}
    assert at(made["spec"], SPEC["scale_down"][0]) == [{"type": "Pods", "value": 1, "periodSeconds": 60}]


@pytest.mark.parametrize(
    ("base", "changes", "label"),
    [
        ("lag-4500", {"scale_down_window": 900}, "lag-4500-window-900"),
        ("lag-4500", {"lag_threshold": 1500, "scale_down_tolerance": 0.94}, "lag-1500-tolerance-0-94"),
        ("lag-4500", {"lag_threshold": 4500}, "lag-4500"),
        ("halves-4500", {"lag_threshold": 2250}, "halves-2250"),
        ("capped", {"allow_idle_consumers": True, "max_replicas": 24}, "capped-max-24-idle-consumers"),
        ("capped", {"use_cached_metrics": False, "lag_threshold": 20}, "capped-threshold-20-no-cached"),
        ("lag-4500", {"scale_down": "100%/30s", "scale_down_window": 0}, "lag-4500-window-0-down-100-30s"),
        ("lag-4500", {"trigger": MEMORY}, "lag-4500-memory-31mi"),
        (ORDERS, {"scale_down_window": 600}, "orders-window-600"),
    ],
)
def test_the_label_says_the_base_and_the_values(base, changes, label):
    """In one order, however the test writes them; what is applied is what was changed."""
    made = read(base, **changes)
    assert made.policy_name == label
    assert made.id.startswith(f"bursty-{label[:36]}")
    assert read(base, **dict(reversed(changes.items()))).id == made.id


@pytest.mark.parametrize(
    ("base", "changes", "line"),
    [
        ("lag-4500", {"lag_treshold": 1}, f"lag_treshold: 1 | one of {', '.join(NAMES)}"[:100]),
        ("lag-4500", {"max_replicas": "9"}, "spec.maxReplicaCount: '9' | did you mean 9? allowed: a whole number from 1"),
        ("lag-4500", {"lag_threshold": "x"}, r"metadata.lagThreshold: 'x' | a whole number"),
        ("lag-4500", {"scale_down_window": -1}, "scaleDown.stabilizationWindowSeconds: -1 | a whole number from 0"),
        ("lag-4500", {"scale_down": "fast"}, 'scale_down: \'fast\' | "50%/60s" or "8 pods/30s"'),
        ("lag-4500", {"sustain_seconds": 4}, "sustain_seconds: 4 | none without a trigger of type external"),
        ("lag-4500", {"trigger": 3}, "trigger: 3 | a trigger as in YAML"),
        ("cpu", {"max_replicas": 9}, "kind: 'HorizontalPodAutoscaler' | ScaledObject"),
        ("none", {"max_replicas": 9}, "policy: 'none' | one of"),
    ],
)
def test_what_can_not_be_changed_is_refused_by_name(base, changes, line):
    """File and changes, field, value and what is allowed."""
    said, (change,) = refused(read, base, **changes), changes.items()
    assert line in said
    assert base == "none" or said.partition(": ")[0].endswith(f"{base}.yaml with {change[0]}={change[1]!r}")
