"""The cpu and memory triggers: KEDA only writes them into the HPA, which reads the metric itself (``cpu_memory_scaler.go``)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lab.errors import InputError, report, together
from lab.inputs.hpa_spec import parse_quantity
from lab.inputs.triggers import common
from lab.inputs.triggers.common import Common, Unscaled
from lab.inputs.triggers.metadata import Metadata

RESOURCES = CPU, MEMORY = "cpu", "memory"
FIELDS = ("value", "containerName")
REFUSALS = {"type": "nothing: KEDA 2.18 removed it; write metricType beside metadata"}
_ALLOWED = {
    CPU: "cores above 0, such as 2, 0.5 or 500m",
    MEMORY: "whole bytes above 0, such as 500Mi, 1.5Gi or 2G",
}
_MOST_BYTES = 10**15
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
    """The quantity in ``value``, as Kubernetes writes it: thousandths of a core, or whole bytes. Cores may be binary too."""
    allowed = _ALLOWED[resource]
    text = metadata.text("value", allowed)
    binary = text.endswith("i")
    decimal = resource == CPU and not binary
    try:
        exact = parse_quantity(text)
    except ValueError:
        exact = Fraction(0)
    if not 0 < exact < _MOST_BYTES or (exact * (1000 if decimal else 1)).denominator != 1:
        metadata.refuse("value", allowed)
        return "1"
    return common.quantity(float(exact)) if decimal else _bytes(int(exact), binary)


def _bytes(value: int, binary: bool) -> str:
    """``value`` in the largest unit of its kind, thousands or 1024s, that leaves a whole number. Less than 1024 bytes are
    thousands, whatever they were written in. Source: ``Quantity.CanonicalizeBytes``."""
    units, base = (_BINARY, 1024) if binary and value >= 1024 else (_THOUSANDS, 1000)
    step = 0
    while value % base == 0 and step < len(units) - 1:
        value, step = value // base, step + 1
    return f"{value}{units[step]}"


def check_whole_pods(triggers: Iterable[object], where: object) -> None:
    """Raise :class:`InputError` for each of ``triggers`` that asks for one container's use."""
    with together():
        for index, one in enumerate(triggers):
            if isinstance(one, Resource) and one.container:
                field, allowed = (
                    f"spec.triggers[{index}].metadata.containerName",
                    "nothing: what the whole pod uses is computed",
                )
                report(InputError(where, field, one.container, allowed))
