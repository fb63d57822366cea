"""Where a new group settles before there is traffic: at the floor, or where partitions without a commit take it."""

import pytest

from lab import paths, yamlfile
from lab.inputs import policy
from lab.inputs.scale import Scale
from lab.model.baseline import FLOOR, baseline
from tests.unit.inputs import written

LASTING = {"sustainSeconds": "60", "scalerAddress": "s:6000", "lagThreshold": "4"}
FILES = [
    file
    for kind in ("scaledobjects", "hpa", "controllers", "steps", "payments", "zeroloss", "lagscaler")
    for file in sorted((paths.MANIFESTS / kind).glob("*.yaml"))
]


def scaled(kind="kafka", metadata=None, other=(), **spec):
    """A ScaledObject of one trigger on lag, and others."""
    return written.scaled([*other, {"type": kind, "metadata": written.KAFKA["metadata"] | (metadata or {})}], **spec)


@pytest.mark.parametrize("kind", ["kafka", "apache-kafka"])
@pytest.mark.parametrize(
    ("metadata", "spec", "replicas"),
    [
        ({"lagThreshold": "50"}, {}, 1),  # KEDA's own example: 24 partitions count 1 each, which wakes it and asks for one
        ({}, {}, 3),  # its default of 10
        ({"lagThreshold": "5"}, {"minReplicaCount": 2}, 5),
        ({"lagThreshold": "1"}, {"maxReplicaCount": 7}, 7),
        ({"lagThreshold": "12"}, {"minReplicaCount": 4}, 4),
        ({"activationLagThreshold": "24"}, {}, 0),
        ({"offsetResetPolicy": "earliest"}, {}, 0),
        ({"offsetResetPolicy": "earliest", "lagThreshold": "1"}, {"minReplicaCount": 2}, 2),
        ({"scaleToZeroOnInvalidOffset": "true"}, {}, 0),
        ({"partitionLimitation": "0-5"}, {}, 1),
    ],
)
def test_partitions_without_a_commit_count_one_under_latest(kind, metadata, spec, replicas):
    """As ceil(24 / lagThreshold) says, from the floor to the ceiling; the reason is the floor, or what was counted."""
    found = baseline(scaled(kind, metadata, **spec), 24)
    assert found.replicas == replicas
    assert (found.why == FLOOR) == (replicas == spec.get("minReplicaCount", 0))
    if found.why != FLOOR:
        assert f"lag {6 if 'partitionLimitation' in metadata else 24} on " in found.why


DISABLED = {"horizontalPodAutoscalerConfig": {"behavior": {"scaleUp": {"selectPolicy": "Disabled"}}}}
MEMORY = {"type": "memory", "metricType": "Utilization", "metadata": {"value": "70"}}


@pytest.mark.parametrize(
    ("found", "replicas"),
    [
        (scaled(metadata={"topic": ""}), 0),  # KEDA asks which topics the group has: before anyone has subscribed, none
        (scaled(metadata={"topic": ""}, minReplicaCount=1), 3),
        (scaled(other=[MEMORY]), 3),  # what memory at rest is, no one knows beforehand
        (policy.load(paths.MANIFESTS / "ridehailing" / "fare-reconciliation-as-written.yaml"), 1),  # no offsetResetPolicy
        (scaled(advanced=DISABLED), 1),  # from 0 to 1 is KEDA's, and not the HPA's
        (scaled("external", LASTING), 6),  # a message of each partition, once it has lasted
        (scaled("external", LASTING | {"offsetResetPolicy": "earliest"}), 0),
        (
            scaled("external", LASTING | {"lagThreshold": "", "lagSeconds": "30"}),
            1,
        ),  # of no age: it wakes, and asks for no more
    ],
)
def test_what_else_a_new_group_has(found, replicas):
    """Without a topic, beside other triggers, where to scale up is forbidden, and by the persistent-lag scaler."""
    assert baseline(found, 24).replicas == replicas


@pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_the_labs_own_policies_begin_at_their_floor(file):
    """They say earliest, or commit before: nothing about their trials has changed."""
    for item in yamlfile.documents(file):
        if item.get("kind") in policy.KINDS:
            read = policy.parse(item, file).compressed(Scale("quick", 30, 1))
            assert baseline(read, 24).replicas == (read.start if read.min_replicas else 0)
