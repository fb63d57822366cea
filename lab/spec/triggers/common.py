"""What every trigger has besides its metadata, and the metric that an HPA is given for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from lab import yamlfile
from lab.errors import InputError

_FIELDS = ("type", "name", "metadata", "metricType", "useCachedMetrics", "authenticationRef")
_SECRETS = ("TriggerAuthentication", "ClusterTriggerAuthentication")
_SUFFIXES = ("", "k", "M", "G", "T", "P", "E")


@dataclass(frozen=True)
class Common:
    """Name ("" for none), whether the HPA is given the poll's value, the HPA's target type, and whether secrets are named."""

    name: str
    cached: bool
    metric_type: str
    authenticated: bool


def read(trigger: Mapping[str, Any], where: object, place: str, *, resource: bool = False, cacheable: bool = True) -> Common:
    """The common fields of ``trigger``; ``resource`` for a metric the HPA reads itself, which has target types of its own.

    Raises :class:`InputError` naming the field. Source: ``ValidateTriggers`` in ``apis/keda/v1alpha1/scaletriggers_types.go``,
    ``GetMetricTargetType`` in ``pkg/scalers/scaler.go`` and ``parseResourceMetadata`` in ``pkg/scalers/cpu_memory_scaler.go``.
    """
    yamlfile.known(trigger, _FIELDS, where, place)
    cached = trigger.get("useCachedMetrics", False)
    if not isinstance(cached, bool):
        raise InputError(where, f"{place}useCachedMetrics", cached, "true or false")
    if cached and not cacheable:
        raise InputError(where, f"{place}useCachedMetrics", cached, f"false: KEDA has none for {trigger['type']}")
    name = trigger.get("name", "")
    if not isinstance(name, str):
        raise InputError(where, f"{place}name", name, "a string")
    allowed = ("Utilization", "AverageValue") if resource else ("AverageValue", "Value")
    metric_type = trigger.get("metricType") or ("" if resource else "AverageValue")
    if metric_type not in allowed:
        raise InputError(where, f"{place}metricType", trigger.get("metricType"), " or ".join(allowed))
    reference = trigger.get("authenticationRef")
    if reference is not None:
        if not isinstance(reference, dict) or not reference.get("name"):
            raise InputError(where, f"{place}authenticationRef", reference, "a mapping with a name")
        yamlfile.known(reference, ("name", "kind"), where, f"{place}authenticationRef.")
        if reference.get("kind", _SECRETS[0]) not in _SECRETS:
            raise InputError(where, f"{place}authenticationRef.kind", reference["kind"], " or ".join(_SECRETS))
    return Common(name, cached, metric_type, reference is not None)


def quantity(value: float) -> str:
    """``value`` as Kubernetes writes a decimal quantity: thousandths, in the largest unit that leaves a whole number."""
    thousandths = int(Decimal(f"{value:.3f}" if isinstance(value, float) else value) * 1000)
    if thousandths % 1000:
        return f"{thousandths}m"
    whole, unit = thousandths // 1000, 0
    while whole and whole % 1000 == 0 and unit < len(_SUFFIXES) - 1:
        whole, unit = whole // 1000, unit + 1
    return f"{whole}{_SUFFIXES[unit]}"


def external(index: int, name: str, metric_type: str, target: float) -> dict[str, Any]:
    """The HPA's metric for the trigger at ``index``.

    Source: ``GenerateMetricNameWithIndex``, ``GetMetricTarget`` and ``GetMetricTargetMili`` in ``pkg/scalers/scaler.go``.
    """
    field = "averageValue" if metric_type == "AverageValue" else "value"
    return {
        "type": "External",
        "external": {"metric": {"name": f"s{index}-{name}"}, "target": {"type": metric_type, field: quantity(target)}},
    }


def normalized(name: str) -> str:
    """``name`` without the characters a metric can't have. Source: ``NormalizeString`` in ``pkg/util/normalize_string.go``."""
    return name.translate(str.maketrans("/.:%()", "------"))
