"""The cpu trigger: KEDA only writes it into the HPA, which reads the metric itself (``pkg/scalers/cpu_memory_scaler.go``)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lab.autoscaling.triggers import common
from lab.autoscaling.triggers.common import Common
from lab.autoscaling.triggers.metadata import Metadata

_MISTAKEN = {"type": "nothing: KEDA 2.18 removed it; write metricType beside metadata"}
_CORES = re.compile(r"(\d+(?:\.\d{1,3})?)(m?)")


@dataclass(frozen=True)
class Cpu:
    """CPU of the pods: ``value`` is percent of what they request (Utilization), or a quantity of cores (AverageValue).

    It never activates: a ScaledObject of nothing else is always active, and can't scale to 0.
    """

    common: Common
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
            source = {"name": "cpu", "container": self.container, "target": target}
            return {"type": "ContainerResource", "containerResource": source}
        return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def parse(trigger: Mapping[str, Any], where: object, place: str) -> Cpu:
    """The trigger at ``place``. Raises :class:`InputError` naming the field. Source: ``parseResourceMetadata``."""
    shared = common.read(trigger, where, place, resource=True, cacheable=False)
    metadata = Metadata.read(trigger, where, place)
    metadata.known(("value", "containerName"), _MISTAKEN)
    if shared.metric_type == "Utilization":
        value = str(metadata.whole("value", 1, most=2**31 - 1))
    else:
        value = metadata.text("value", "cores above 0, such as 2, 0.5 or 500m")
        found = _CORES.fullmatch(value)
        if not found or float(found[1]) == 0 or ("." in found[1] and found[2]):
            raise metadata.error("value", "cores above 0, such as 2, 0.5 or 500m")
        value = common.quantity(float(found[1]) / (1000 if found[2] else 1))
    return Cpu(shared, value, metadata.content.get("containerName", ""))
