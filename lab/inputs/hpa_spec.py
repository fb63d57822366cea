"""What an HPA's YAML (autoscaling/v2) asks for, typed and with the API server's defaults filled in.

Names, defaults and bounds are those of ``pkg/apis/autoscaling/v2/defaults.go`` and ``validation/validation.go`` of Kubernetes
1.36. What the API server would refuse, the controller would ignore, or the model doesn't know is refused here, by name.
Quantities are read as the HPA reads them (``k8s.io/apimachinery/pkg/api/resource/quantity.go``): in whole milli-units, or as
the nearest float.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lab.errors import together
from lab.inputs.scale import Scale
from lab.yamlfile import Fields, present

MAX_INT64 = 2**63 - 1
_NUMBER = re.compile(r"([+-]?)([0-9]+\.?[0-9]*|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,3})?")
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_MOST_FLOAT = int(sys.float_info.max)
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}


def parse_quantity(text: object) -> Fraction:
    """The number that ``text`` ("1500m", "2Ki", 0.1) writes, rounded up to nano as ``ParseQuantity``. Raises ``ValueError``."""
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
    return math.inf if abs(scaled) > _MOST_FLOAT else float(scaled.numerator) * float(f"1e{exponent}")


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

    def to_dict(self) -> dict[str, Any]:
        """The policy as the YAML has it."""
        return {"type": self.type, "value": self.value, "periodSeconds": self.period_s}


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
    ``min_replicas`` is 0 only where the API server has the feature gate HPAScaleToZero."""

    min_replicas: int
    max_replicas: int
    metrics: tuple[Metric, ...]
    behavior: Behavior | None = None


def parse(content: Mapping[str, Any], where: object) -> HpaSpec:
    """The HPA in ``content``; ``where`` names its source. Raises :class:`InputError` for all fields that can't be used."""
    with together():
        return _parse(Fields(content, where))


def _parse(given: Fields) -> HpaSpec:
    given.choice("apiVersion", "autoscaling/v2")
    given.choice("kind", "HorizontalPodAutoscaler")
    spec = given.under("spec", "scaleTargetRef", "minReplicas", "maxReplicas", "metrics", "behavior")
    least, most = bounds(spec, 0)
    metrics = tuple(map(_metric, spec.each("metrics"))) or (DEFAULT_METRIC,)
    if not least and all(metric.source != "External" for metric in metrics):
        spec.refuse("minReplicas", "from 1 without an External metric: no other is known without a pod")
    return HpaSpec(least, most, metrics, behavior_of(spec))


def bounds(spec: Fields, least: int) -> tuple[int, int]:
    """The minReplicas, from ``least``, and the maxReplicas of ``spec``."""
    low, high = (
        spec.whole("minReplicas", least, MAX_REPLICAS, 1, "pods"),
        spec.whole("maxReplicas", 1, MAX_REPLICAS, unit="pods"),
    )
    if low > high and spec.sound("minReplicas", "maxReplicas"):
        spec.refuse("minReplicas", f"at most maxReplicas, {high}")
    return low, high


def behavior_of(given: Fields, *, keda: bool = False) -> Behavior | None:
    """The ``behavior`` of an HPA, or of a ScaledObject's HPA, if any. Reports an :class:`InputError` for each wrong field.

    ``keda``: that of a ScaledObject. Its empty list of policies is none: KEDA leaves it out of the HPA, so that the API server
    fills its defaults in. Its tolerance is no bare fraction: the CRD takes integers and strings alone.
    """
    if given.content.get("behavior") is None:
        return None
    written = given.under("behavior", "scaleUp", "scaleDown")
    return Behavior(_rules(written, "scaleUp", UP, keda), _rules(written, "scaleDown", DOWN, keda))


def _metric(given: Fields) -> Metric:
    source = given.choice("type", *_KNOWN_TARGETS)
    if not given.sound("type"):
        return DEFAULT_METRIC
    given.known("type", source.lower())
    if source == "External":
        body = given.under("external", "metric", "target")
        name = body.under("metric", "name", "selector").text("name", "the name of a metric")
    else:
        body = given.under("resource", "name", "target")
        name = body.choice("name", *RESOURCES)
    target = body.under("target")
    kind = target.choice("type", *_KNOWN_TARGETS[source])
    if not target.sound("type"):
        return DEFAULT_METRIC
    field = _TARGETS[kind]
    target.known("type", field)
    if kind == "Utilization":
        return Metric(source, name, kind, target.whole(field, 1, 1_000_000))
    amount = _quantity(target, field)
    if amount is None or not 0 < amount <= 10**15:
        target.refuse(field, "a positive quantity, at most 1P")
        return DEFAULT_METRIC
    return Metric(source, name, kind, milli(amount))


def _rules(behavior: Fields, direction: str, default: Rules, keda: bool) -> Rules:
    if direction not in behavior.content:
        return default
    given = behavior.under(direction, "stabilizationWindowSeconds", "selectPolicy", "policies", "tolerance")
    select = given.choice("selectPolicy", "Max", "Min", "Disabled", default=default.select)
    window, policies, tolerance = default.window_s, default.policies, None
    if "stabilizationWindowSeconds" in given.content:
        window = given.whole("stabilizationWindowSeconds", 0, 3600, unit="s")
    if "policies" in given.content and not (keda and given.content["policies"] == []):
        policies = tuple(map(_policy, given.each("policies")))
        if not policies:
            given.refuse("policies", "at least one policy")
    if "tolerance" in given.content:
        exact = _quantity(given, "tolerance")
        written = given.content["tolerance"]
        if exact is None or not 0 <= exact <= 1000:
            given.refuse("tolerance", "a quantity from 0 to 1000")
        elif keda and isinstance(written, float) and written != int(written):
            given.refuse("tolerance", "a quantity as a string: KEDA's CRD takes no bare fraction", f'"{written}"')
        else:
            tolerance = approximate(exact)
    return Rules(window, select, policies, tolerance)


def _policy(given: Fields) -> Policy:
    given.known("type", "value", "periodSeconds")
    kind = given.choice("type", "Pods", "Percent")
    return Policy(kind, given.whole("value", 1, 1_000_000), given.whole("periodSeconds", 1, 1800, unit="s"))


def _quantity(given: Fields, field: str) -> Fraction | None:
    """The quantity in ``field``; None where it is none."""
    try:
        return parse_quantity(given.content.get(field))
    except ValueError:
        return None


def compressed_behavior(behavior: Mapping[str, Any] | None, scale: Scale) -> dict[str, Any]:
    """A checked ``behavior`` with its times, also those by default, divided as ``scale`` declares."""
    made = {}
    for direction, rules, window in (("scaleUp", UP, UP.window_s), ("scaleDown", DOWN, DOWNSCALE_STABILIZATION_S)):
        written = present(present(behavior or {}).get(direction, {}))
        policies = written.get("policies") or [policy.to_dict() for policy in rules.policies]
        made[direction] = dict(written) | {
            "stabilizationWindowSeconds": scale.seconds(written.get("stabilizationWindowSeconds", window)),
            "policies": [policy | {"periodSeconds": scale.seconds(policy["periodSeconds"])} for policy in policies],
        }
    return made
