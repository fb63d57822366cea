"""The group's lag as an external metric, for an HPA that is not KEDA's.

KEDA serves a metric for a ScaledObject alone, and a target has one HPA at most. So the ScaledObject of
``manifests/lagmetric/lag-metric.yaml`` has a target of its own, without pods. An HPA's file names the metric for a topic called
"events", in whose place comes the trial's.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from lab import paths, yamlfile
from lab.inputs import scaledobject
from lab.inputs.scale import Scale
from lab.inputs.triggers.kafka import Kafka

NAME = "lag-metric"  # of the ScaledObject, its target and its trigger's metric
METRIC = "s0-kafka-events"
SELECTOR = {"matchLabels": {"scaledobject.keda.sh/name": NAME}}
_FILE = paths.MANIFESTS / "lagmetric" / "lag-metric.yaml"


def objects(scale: Scale) -> list[dict[str, Any]]:
    """The ScaledObject for which KEDA serves the metric, with its times compressed, after its target."""
    target, scaled = yamlfile.documents(_FILE)
    return [target, scaledobject.parse(scaled, _FILE).compressed(scale).content]


def with_topic(hpa: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """The content of an ``hpa`` on the lag, whose metric has the name that KEDA gives it for the topic in ``environment``."""
    _, scaled = yamlfile.documents(_FILE)
    (trigger,) = scaledobject.parse(scaled, _FILE).triggers
    assert isinstance(trigger, Kafka), "as it is committed"
    placed = copy.deepcopy(dict(hpa))
    placed["spec"]["metrics"][0]["external"]["metric"]["name"] = trigger.metric(0, environment)["external"]["metric"]["name"]
    return placed


def concerns(line: str) -> bool:
    """Whether a line of the HPA controller's log is about the HPA that KEDA makes for this ScaledObject, or its target."""
    return f"/{NAME}" in line or f"keda-hpa-{NAME}" in line
