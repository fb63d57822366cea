"""The cpu and memory triggers: KEDA only writes them into the HPA, which reads the metric itself (``cpu_memory_scaler.go``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.errors import report
from lab.inputs.triggers import common
from lab.inputs.triggers.common import Common, Unscaled
from lab.inputs.triggers.metadata import Metadata

CPU, MEMORY = "cpu", "memory"
FIELDS = ("value", "containerName")
REFUSALS = {"type": "nothing: KEDA 2.18 removed it; write metricType beside metadata"}
_AMOUNTS = {
    CPU: (re.compile(r"(\d{1,15}(?:\.\d{1,3})?)(m?)"), "cores above 0, such as 2, 0.5 or 500m"),
    MEMORY: (re.compile(r"(\d{1,15})(|k|M|G|T|Ki|Mi|Gi|Ti)"), "whole bytes above 0, such as 500Mi or 2G"),
}
_THOUSANDS = ("", "k", "M", "G", "T")
_BINARY = ("", "Ki", "Mi", "Gi", "Ti")


@dataclass(frozen=True)
class Resource(Unscaled):
    """Use of ``resource`` by the pods: ``value`` is percent of what they request (Utilization), or a quantity (AverageValue).
    It never activates: a ScaledObject of nothing else is always active, and can't scale to 0."""

    common: Common
    resource: str
    value: str
    container: str

    def metric(self, index: int, environment: Mapping[str, str]) -> dict[str, Any]:
        """The HPA's metric. Source: ``cpuMemoryScaler.GetMetricSpecForScaling``."""
        target: dict[str, Any] = {"type": self.common.metric_type}
        if self.common.metric_type == "Utilization":
            target["averageUtilization"] = int(self.value)
        else:
            target["averageValue"] = self.value
        if self.container:
            source = {"name": self.resource, "container": self.container, "target": target}
            return {"type": "ContainerResource", "containerResource": source}
        return {"type": "Resource", "resource": {"name": self.resource, "target": target}}


def parse(trigger: Mapping[str, Any], where: object, place: str) -> Resource:
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``parseResourceMetadata``."""
    metadata = Metadata.read(trigger, where, place)
    if "type" in metadata.content and not trigger.get("metricType"):
        allowed = f"nothing: KEDA 2.18 removed it; write metricType: {metadata.content['type']} beside metadata"
        report(metadata.error("type", allowed), f"{place}metricType")
    shared = common.read(trigger, where, place, resource=True, cacheable=False)
    metadata.check(FIELDS, REFUSALS)
    if shared.metric_type == "Utilization":
        value = str(metadata.whole("value", 1, most=2**31 - 1))
    else:
        value = _amount(metadata, trigger["type"])
    return Resource(shared, trigger["type"], value, metadata.content.get("containerName", ""))


def _amount(metadata: Metadata, resource: str) -> str:
    """The quantity in ``value``, as Kubernetes writes it."""
    words, allowed = _AMOUNTS[resource]
    text = metadata.text("value", allowed)
    found = words.fullmatch(text)
    if not found or float(found[1]) == 0 or ("." in found[1] and found[2]):
        metadata.refuse("value", allowed)
        return "1"
    if resource == CPU:
        return common.quantity(float(found[1]) / (1000 if found[2] else 1))
    return _bytes(int(found[1]), found[2])


def _bytes(count: int, unit: str) -> str:
    """``count`` of ``unit`` in the largest unit of its kind, thousands or 1024s, that leaves a whole number. Less than 1024
    bytes are thousands, whatever they were written in. Source: ``Quantity.CanonicalizeBytes``."""
    binary = unit.endswith("i")
    units, base = (_BINARY, 1024) if binary else (_THOUSANDS, 1000)
    value = count * base ** units.index(unit)
    if binary and value < 1024:
        units, base = _THOUSANDS, 1000
    step = 0
    while value % base == 0 and step < len(units) - 1:
        value, step = value // base, step + 1
    return f"{value}{units[step]}"
