"""The replicas that one metric asks for, as ``replica_calculator.go`` of Kubernetes 1.36 computes them.

Amounts are whole milli-units, as the controller counts them; the arithmetic is its float64 arithmetic, step by step.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from lab.inputs.hpa_spec import DOWNSCALE_STABILIZATION_S, MAX_INT64, Metric
from lab.model.hpa_limits import nanoseconds

MAX_INT32 = 2**31 - 1
MIN_INT32 = -(2**31)
CPU = "cpu"


@dataclass(frozen=True)
class Controller:
    """The kube-controller-manager's flags that matter, with their defaults; times in s, tolerance as a ratio."""

    tolerance: float = 0.1
    downscale_stabilization_s: int = DOWNSCALE_STABILIZATION_S
    cpu_initialization_s: float = 300
    initial_readiness_s: float = 30


@dataclass(frozen=True)
class Pod:
    """A pod of the target; times in s on the clock of ``now``. ``requests`` are by resource, in milli-units."""

    name: str
    phase: str = "Running"
    ready: bool | None = True
    started: float | None = 0
    ready_changed: float = 0
    deleting: bool = False
    requests: Mapping[str, int] = field(default_factory=lambda: {CPU: 1000})


@dataclass(frozen=True)
class Usage:
    """A pod's use of a resource in milli-units, of cores or of bytes, measured over ``window`` seconds up to ``at`` (s)."""

    milli: int
    at: float = 0
    window: float = 30


External = tuple[int, ...]
PodUsage = Mapping[str, Usage]
Observed = External | PodUsage | None


@dataclass(frozen=True)
class Target:
    """The scaled object: its desired replicas, its current ones, and its pods. ``pods`` of None means as many ready pods."""

    replicas: int
    status_replicas: int
    pods: Sequence[Pod] | None = None


@dataclass(frozen=True)
class Tolerances:
    """A usage ratio from 1 - ``down`` to 1 + ``up`` changes nothing."""

    down: float
    up: float

    def within(self, ratio: float) -> bool:
        """``Tolerances.isWithin``."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up

    def __str__(self) -> str:
        return f"{1.0 - self.down:g} to {1.0 + self.up:g}"


class MetricFailed(Exception):
    """The metric gives no number of replicas; the text is the reason."""


def external(*values: float) -> External:
    """An observed external metric: each value in milli-units, rounded up (``Quantity.MilliValue``)."""
    return tuple(math.ceil(round(value * 1000, 6)) for value in values)


def proposal(
    metric: Metric, observed: Observed, target: Target, tolerances: Tolerances, now: int, controller: Controller
) -> tuple[int, str]:
    """The replicas ``metric`` asks for at ``now`` (ns), and how. Raises :class:`MetricFailed`. ``computeReplicasForMetric``."""
    if observed is None:
        raise MetricFailed("no value")
    if metric.source == "External":
        if not isinstance(observed, tuple):
            raise TypeError(f"external metric {metric.name}: a tuple of milli-units is needed, not {observed!r}")
        function = _per_pod if metric.target == "AverageValue" else _total
        return function(metric, observed, target, tolerances)
    if isinstance(observed, tuple) or target.pods is None:
        raise TypeError(f"resource metric {metric.name}: the pods and the usage of each are needed")
    return _resource(metric, observed, target.replicas, target.pods, tolerances, now, controller)


def _per_pod(metric: Metric, values: External, target: Target, tolerances: Tolerances) -> tuple[int, str]:
    """External with AverageValue (``GetExternalPerPodMetricReplicas``): ceil(usage / target), unless the ratio is tolerated."""
    usage = 0
    for value in values:
        usage += value
        if usage < 0 or usage > MAX_INT64:  # the controller treats a negative sum as an overflow
            usage = MAX_INT64
            break
    have = target.status_replicas
    divisor = float(metric.amount) * float(have)
    if divisor:
        ratio = float(usage) / divisor
    else:  # as a float64 divides
        ratio = math.inf if usage else math.nan
    used, target_text = f"{usage / 1000:g}", f"{metric.amount / 1000:g}"
    sum_text = f"{used} / ({target_text} x {have}) = {ratio:.4g}"
    if tolerances.within(ratio):
        return have, f"{sum_text}, within {tolerances}: keeps {have}"
    replicas = _whole(float(usage) / float(metric.amount))
    return replicas, f"{sum_text}, not within {tolerances}: ceil({used} / {target_text}) = {replicas}"


def _total(metric: Metric, values: External, target: Target, tolerances: Tolerances) -> tuple[int, str]:
    """External with Value (``GetExternalMetricReplicas``, ``getUsageRatioReplicaCount``): ceil(ratio x ready pods)."""
    usage = 0
    for value in values:
        if value > 0 and usage > MAX_INT64 - value:
            usage = MAX_INT64
            break
        usage += value
    ratio = float(usage) / float(metric.amount)
    sum_text = f"{usage / 1000:g} / {metric.amount / 1000:g} = {ratio:.4g}"
    if tolerances.within(ratio):
        return target.replicas, f"{sum_text}, within {tolerances}: keeps {target.replicas}"
    if target.pods is None:
        pods = ready = target.status_replicas
    else:
        pods = len(target.pods)
        ready = sum(pod.phase == "Running" and pod.ready is True for pod in target.pods)
    if pods == 0:
        raise MetricFailed("the target has no pods")
    replicas = _whole(ratio * float(ready))
    return replicas, f"{sum_text}, not within {tolerances}: ceil({ratio:.4g} x {ready} ready pods) = {replicas}"


def _resource(
    metric: Metric, usage: PodUsage, current: int, pods: Sequence[Pod], tolerances: Tolerances, now: int, controller: Controller
) -> tuple[int, str]:
    """Resource cpu or memory (``GetResourceReplicas`` for Utilization, ``calcPlainMetricReplicas`` for AverageValue).

    Pods without a sample count as idle when the others ask for more and as being at their target when they ask for less;
    pods that are not ready yet count as idle when the others ask for more, and not at all otherwise. Of memory a sample counts
    from the first one on, and only a pending pod is not ready yet.
    """
    if not pods:
        raise MetricFailed("the target has no pods")
    groups: dict[str, set[str]] = {"ready": set(), "unready": set(), "missing": set(), "ignored": set()}
    for pod in pods:
        groups[_group(pod, usage, metric.name, now, controller)].add(pod.name)
    ready, unready, missing = len(groups["ready"]), groups["unready"], groups["missing"]
    milli = {name: sample.milli for name, sample in usage.items() if name not in groups["ignored"] | unready}
    if not milli:
        raise MetricFailed("no usage of a ready pod")
    requests: dict[str, int] = {}
    for pod in pods if metric.target == "Utilization" else ():  # ``calculateRequests``
        if metric.name not in pod.requests:
            raise MetricFailed(f"pod {pod.name} has no {metric.name} request")
        requests[pod.name] = pod.requests[metric.name]
    ratio = _ratio(metric, milli, requests)
    rising = bool(unready) and ratio > 1.0
    text = f"ratio {ratio:.4g} of {len(milli)} pods"
    if not rising and not missing:
        if tolerances.within(ratio):
            return current, f"{text}, within {tolerances}: keeps {current}"
        replicas = _whole(ratio * float(ready))
        return replicas, f"{text}, not within {tolerances}: ceil({ratio:.4g} x {ready} ready pods) = {replicas}"
    for name in missing:
        if ratio < 1.0 and metric.target == "Utilization":
            milli[name] = requests[name] * max(100, metric.amount) // 100
        elif ratio < 1.0:
            milli[name] = metric.amount
        elif ratio > 1.0:
            milli[name] = 0
    if rising:
        milli |= dict.fromkeys(unready, 0)
    again = _ratio(metric, milli, requests)
    text += f", {again:.4g} with {len(missing)} missing" + (f" and {len(unready)} unready" if rising else "")
    if tolerances.within(again) or (ratio < 1.0 < again) or (again < 1.0 < ratio):
        return current, f"{text}, within {tolerances} or the other way: keeps {current}"
    replicas = _whole(again * float(len(milli)))
    if (again < 1.0 and replicas > current) or (again > 1.0 and replicas < current):
        return current, f"{text}: ceil({again:.4g} x {len(milli)} pods) = {replicas} is the other way: keeps {current}"
    return replicas, f"{text}: ceil({again:.4g} x {len(milli)} pods) = {replicas}"


def _group(pod: Pod, usage: PodUsage, resource: str, now: int, controller: Controller) -> str:
    """The group that ``pod`` counts in (``groupPods``)."""
    if pod.deleting or pod.phase == "Failed":
        return "ignored"
    if pod.phase == "Pending":
        return "unready"
    if pod.name not in usage:
        return "missing"
    return "unready" if resource == CPU and _unready(pod, usage[pod.name], now, controller) else "ready"


def _unready(pod: Pod, sample: Usage, now: int, controller: Controller) -> bool:
    if pod.ready is None or pod.started is None:
        return True
    started, changed = nanoseconds(pod.started), nanoseconds(pod.ready_changed)
    if started + nanoseconds(controller.cpu_initialization_s) > now:
        return not pod.ready or nanoseconds(sample.at) < changed + nanoseconds(sample.window)
    return not pod.ready and started + nanoseconds(controller.initial_readiness_s) > changed


def _ratio(metric: Metric, milli: Mapping[str, int], requests: Mapping[str, int]) -> float:
    """Usage by target, in the whole numbers of ``GetResourceUtilizationRatio`` and ``GetMetricUsageRatio``."""
    if metric.target == "AverageValue":
        return float(sum(milli.values()) // len(milli)) / float(metric.amount)
    known = [name for name in milli if name in requests]
    requested = sum(requests[name] for name in known)
    if requested == 0:
        raise MetricFailed("no usage of a known pod")
    return float(sum(milli[name] for name in known) * 100 // requested) / float(metric.amount)


def _whole(replicas: float) -> int:
    """``replicas`` rounded up, in the range of an int32."""
    return max(MIN_INT32, min(MAX_INT32, math.ceil(replicas)))
