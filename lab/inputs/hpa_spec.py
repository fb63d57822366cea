"""What an HPA's YAML (autoscaling/v2) asks for, typed and with the API server's defaults filled in.

Names, defaults and bounds are those of ``pkg/apis/autoscaling/v2/defaults.go`` and ``validation/validation.go`` of Kubernetes
1.36. What the API server would refuse, the controller would ignore, or the model doesn't know is refused here, by name.
Quantities are read as the HPA reads them (``k8s.io/apimachinery/pkg/api/resource/quantity.go``): in whole milli-units, or as
the nearest float.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lab import yamlfile
from lab.errors import InputError
from lab.inputs.scale import Scale

MAX_INT64 = 2**63 - 1
_NUMBER = re.compile(r"([+-]?)(\d+\.?\d*|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d{1,3})?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(text: object) -> Fraction:
    """The number that ``text`` ("1500m", "2Ki", 0.1) writes, rounded up to nano like ``ParseQuantity``.

    Raises :class:`ValueError` when it is not a quantity.
    """
    found = None if isinstance(text, bool) or not isinstance(text, str | int | float) else _NUMBER.fullmatch(str(text))
    if found is None:
        raise ValueError(f"{text!r} is not a quantity")
    sign, digits, suffix = found[1], Fraction(found[2].rstrip(".")), found[3] or ""
    if suffix in _BINARY:
        digits *= 2 ** _BINARY[suffix]
    elif suffix in _DECIMAL:
        digits *= Fraction(10) ** _DECIMAL[suffix]
    elif suffix:
        digits *= Fraction(10) ** int(suffix[1:])
    rounded = Fraction(math.ceil(digits * 10**9), 10**9)
    return -rounded if sign == "-" else rounded


def milli(value: Fraction) -> int:
    """``value`` in milli-units, rounded up (``Quantity.MilliValue``)."""
    return math.ceil(value * 1000)


def approximate(value: Fraction) -> float:
    """``value`` as the controller computes it from the canonical form ("300m" is 300 x 1e-3; ``AsApproximateFloat64``)."""
    for exponent in (0, -3, -6, -9):
        scaled = value / Fraction(10) ** exponent
        if scaled.denominator == 1:
            break
    return float(scaled.numerator) * float(f"1e{exponent}")


MAX_REPLICAS = 100_000  # so that no formula leaves int32
DOWNSCALE_STABILIZATION_S = 300  # of kube-controller-manager, for a scale-down without a window of its own
DEFAULT_UTILIZATION = 80  # of the one metric an HPA without metrics has
_TARGETS = {"Value": "value", "AverageValue": "averageValue", "Utilization": "averageUtilization"}
RESOURCES = ("cpu", "memory")
_KNOWN_TARGETS = {"External": ("Value", "AverageValue"), "Resource": ("Utilization", "AverageValue")}


@dataclass(frozen=True)
class Policy:
    """A scaling policy: at most ``value`` pods, or percent of the replicas, within ``period_s`` seconds."""

    type: str
    value: int
    period_s: int


@dataclass(frozen=True)
class Rules:
    """One direction of ``behavior``. A window (s) or tolerance (ratio) of None is the controller's own setting."""

    window_s: int | None
    select: str
    policies: tuple[Policy, ...]
    tolerance: float | None = None


@dataclass(frozen=True)
class Behavior:
    """Both directions; the API server fills in the one that is not written as soon as there is a ``behavior`` at all."""

    up: Rules
    down: Rules


UP = Rules(0, "Max", (Policy("Pods", 4, 15), Policy("Percent", 100, 15)))
DOWN = Rules(None, "Max", (Policy("Percent", 100, 15),))


@dataclass(frozen=True)
class Metric:
    """A metric and its target. ``amount`` is in milli-units for Value and AverageValue, in percent for Utilization."""

    source: str
    name: str
    target: str
    amount: int


DEFAULT_METRIC = Metric("Resource", "cpu", "Utilization", DEFAULT_UTILIZATION)


@dataclass(frozen=True)
class HpaSpec:
    """An HPA's spec; ``behavior`` is None when the YAML has none, which is not the same as the defaults of one.

    ``min_replicas`` is 0 only where the API server has the feature gate HPAScaleToZero.
    """

    min_replicas: int
    max_replicas: int
    metrics: tuple[Metric, ...]
    behavior: Behavior | None = None


def parse(content: Mapping[str, Any], where: object) -> HpaSpec:
    """The HPA in ``content``; ``where`` names its source. Raises :class:`InputError` naming the field that can't be used."""
    for field, wanted in (("apiVersion", "autoscaling/v2"), ("kind", "HorizontalPodAutoscaler")):
        if content.get(field) != wanted:
            raise InputError(where, field, content.get(field), wanted)
    spec = present(yamlfile.mapping(content, "spec", where))
    yamlfile.known(spec, ("scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior"), where, "spec.")
    least = yamlfile.whole(spec, "minReplicas", where, 0, MAX_REPLICAS, 1, "spec.")
    most = yamlfile.whole(spec, "maxReplicas", where, 1, MAX_REPLICAS, prefix="spec.")
    if least > most:
        raise InputError(where, "spec.minReplicas", least, f"at most maxReplicas, {most}")
    written = enumerate(_list(spec, "metrics", where, "spec."))
    metrics = tuple(_metric(metric, where, f"spec.metrics[{index}].") for index, metric in written) or (DEFAULT_METRIC,)
    if not least and all(metric.source != "External" for metric in metrics):
        raise InputError(where, "spec.minReplicas", least, "from 1 without an External metric: no other is known without a pod")
    return HpaSpec(least, most, metrics, behavior_of(spec, where, "spec."))


def behavior_of(content: Mapping[str, Any], where: object, prefix: str) -> Behavior | None:
    """The ``behavior`` in ``content``, which lies at ``prefix``: an HPA's spec, or what a ScaledObject says of its HPA.

    None where there is none. Raises :class:`InputError` like :func:`parse`.
    """
    if content.get("behavior") is None:
        return None
    written = _mapping(content, "behavior", where, prefix)
    prefix = f"{prefix}behavior."
    yamlfile.known(written, ("scaleUp", "scaleDown"), where, prefix)
    return Behavior(_rules(written, "scaleUp", UP, where, prefix), _rules(written, "scaleDown", DOWN, where, prefix))


def present(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """``content`` without its nulls: to the API server a null field is one that is not written."""
    return {field: value for field, value in content.items() if value is not None}


def _metric(content: Mapping[str, Any], where: object, prefix: str) -> Metric:
    source = content.get("type")
    if not isinstance(source, str) or source not in _KNOWN_TARGETS:
        raise InputError(where, f"{prefix}type", source, " or ".join(_KNOWN_TARGETS))
    field = source.lower()
    yamlfile.known(content, ("type", field), where, prefix)
    body = _mapping(content, field, where, prefix)
    if source == "External":
        yamlfile.known(body, ("metric", "target"), where, f"{prefix}{field}.")
        identifier = _mapping(body, "metric", where, f"{prefix}{field}.")
        yamlfile.known(identifier, ("name", "selector"), where, f"{prefix}{field}.metric.")
        name = identifier.get("name")
        if not isinstance(name, str) or not name:
            raise InputError(where, f"{prefix}{field}.metric.name", name, "the name of a metric")
    else:
        yamlfile.known(body, ("name", "target"), where, f"{prefix}{field}.")
        name = body.get("name")
        if name not in RESOURCES:
            raise InputError(where, f"{prefix}{field}.name", name, " or ".join(RESOURCES))
    return _target(_mapping(body, "target", where, f"{prefix}{field}."), source, name, where, f"{prefix}{field}.target.")


def _target(content: Mapping[str, Any], source: str, name: str, where: object, prefix: str) -> Metric:
    kind = content.get("type")
    if kind not in _KNOWN_TARGETS[source]:
        raise InputError(where, f"{prefix}type", kind, " or ".join(_KNOWN_TARGETS[source]))
    field = _TARGETS[str(kind)]
    yamlfile.known(content, ("type", field), where, prefix)
    if kind == "Utilization":
        return Metric(source, name, kind, yamlfile.whole(content, field, where, 1, 1_000_000, prefix=prefix))
    amount = milli(_quantity(content, field, where, prefix, "a positive quantity, at most 1P"))
    if not 0 < amount <= 10**18:
        raise InputError(where, f"{prefix}{field}", content[field], "a positive quantity, at most 1P")
    return Metric(source, name, str(kind), amount)


def _rules(behavior: Mapping[str, Any], direction: str, default: Rules, where: object, prefix: str) -> Rules:
    if direction not in behavior:
        return default
    content = _mapping(behavior, direction, where, prefix)
    prefix = f"{prefix}{direction}."
    yamlfile.known(content, ("stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance"), where, prefix)
    window = default.window_s
    if "stabilizationWindowSeconds" in content:
        window = yamlfile.whole(content, "stabilizationWindowSeconds", where, 0, 3600, prefix=prefix)
    select = content.get("selectPolicy", default.select)
    if select not in ("Max", "Min", "Disabled"):
        raise InputError(where, f"{prefix}selectPolicy", select, "Max, Min or Disabled")
    policies = default.policies
    if "policies" in content:
        written = _list(content, "policies", where, prefix)
        policies = tuple(_policy(policy, where, f"{prefix}policies[{index}].") for index, policy in enumerate(written))
        if not policies:
            raise InputError(where, f"{prefix}policies", [], "at least one policy")
    tolerance = None
    if "tolerance" in content:
        allowed = "a quantity from 0 to 1000"
        exact = _quantity(content, "tolerance", where, prefix, allowed)
        if not 0 <= exact <= 1000:
            raise InputError(where, f"{prefix}tolerance", content["tolerance"], allowed)
        tolerance = approximate(exact)
    return Rules(window, select, policies, tolerance)


def _policy(content: Mapping[str, Any], where: object, prefix: str) -> Policy:
    yamlfile.known(content, ("type", "value", "periodSeconds"), where, prefix)
    if content.get("type") not in ("Pods", "Percent"):
        raise InputError(where, f"{prefix}type", content.get("type"), "Pods or Percent")
    return Policy(
        content["type"],
        yamlfile.whole(content, "value", where, 1, 1_000_000, prefix=prefix),
        yamlfile.whole(content, "periodSeconds", where, 1, 1800, prefix=prefix),
    )


def _quantity(content: Mapping[str, Any], field: str, where: object, prefix: str, allowed: str) -> Fraction:
    try:
        return parse_quantity(content.get(field))
    except ValueError:
        raise InputError(where, f"{prefix}{field}", content.get(field), allowed) from None


def _mapping(content: Mapping[str, Any], field: str, where: object, prefix: str) -> Mapping[str, Any]:
    value = content.get(field)
    if not isinstance(value, Mapping):
        raise InputError(where, f"{prefix}{field}", value, "a mapping")
    return present(value)


def _list(content: Mapping[str, Any], field: str, where: object, prefix: str) -> list[Mapping[str, Any]]:
    value = content.get(field, [])
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise InputError(where, f"{prefix}{field}", value, "a list of mappings")
    return [present(item) for item in value]


def compressed_behavior(behavior: Mapping[str, Any] | None, scale: Scale) -> dict[str, Any]:
    """A checked ``behavior`` with its times divided as ``scale`` declares.

    Both directions are written out, with the API server's and the controller's defaults: or those would stay at real time.
    """
    written = present(behavior or {})
    return {
        direction: _compressed_direction(present(written.get(direction, {})), rules, scale)
        for direction, rules in (("scaleUp", UP), ("scaleDown", DOWN))
    }


def _compressed_direction(written: Mapping[str, Any], default: Rules, scale: Scale) -> dict[str, Any]:
    window = DOWNSCALE_STABILIZATION_S if default.window_s is None else default.window_s
    policies = written.get("policies", [_written(policy) for policy in default.policies])
    return dict(written) | {
        "stabilizationWindowSeconds": scale.seconds(written.get("stabilizationWindowSeconds", window)),
        "policies": [policy | {"periodSeconds": scale.seconds(policy["periodSeconds"])} for policy in policies],
    }


def _written(policy: Policy) -> dict[str, Any]:
    return {"type": policy.type, "value": policy.value, "periodSeconds": policy.period_s}
