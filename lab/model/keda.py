"""A pure model of KEDA between the readings of a ScaledObject's triggers and the replicas: scale loop, fallback and HPA.

Readings come from the triggers' own modules (:mod:`lab.model.lag` and so on). Between 1 and N replicas the HPA
decides alone, on the metrics that :func:`observe` answers; KEDA itself moves replicas only to and from 0 (or idle), by
:func:`scale` once per pollingInterval. Times are seconds on any one clock. Everything that a decision depends on is an
argument, and its ``reasons`` explain it.

The model is of KEDA 2.21.0; each function names its source there.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lab.inputs import modifiers
from lab.inputs.formula.tree import FormulaError
from lab.inputs.formula.values import truncated
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.common import Reading, ScalerError
from lab.inputs.triggers.external import External
from lab.inputs.triggers.resource import Resource

OWNER = "scaledobject.keda.sh/name"


@dataclass(frozen=True)
class Observation:
    """One metric as KEDA holds it after fallback. ``metric`` None is an error to the HPA; ``failures`` are those in a row."""

    metric: float | None
    active: bool
    fallback: bool
    failures: int
    reasons: tuple[str, ...]

    @property
    def outcome(self) -> Reading | ScalerError:
        """This observation as the raw outcome of a query: ``useCachedMetrics`` gives it to the HPA's next call in this form."""
        if self.metric is None:
            return ScalerError("; ".join(self.reasons))
        return Reading(self.metric, self.active, self.reasons)


@dataclass(frozen=True)
class State:
    """The result of one pass of the scale loop: whether any trigger is active, whether any failed, and why."""

    active: bool
    error: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """The replicas that KEDA sets (None: it sets nothing), and the time that it now remembers as last active."""

    replicas: int | None
    last_active_s: float | None
    reasons: tuple[str, ...]


def polls(scaled: ScaledObject) -> bool:
    """Whether KEDA's loop asks the sources; else, while the HPA is active, only the HPA's own calls reach them.

    Source: ``ScaledObject.IsPollingIntervalRelevant`` and ``UsesHPAObservations`` in ``scaledobject_types.go``.
    """
    zero = not scaled.min_replicas or scaled.idle_replicas is not None
    return zero or scaled.modifiers is not None or any(one.common.cached for one in scaled.triggers)


def observe(
    scaled: ScaledObject,
    outcome: Reading | ScalerError | None,
    failures: int,
    target: float,
    metric_type: str = "AverageValue",
    replicas: int = 0,
    ready: int = 0,
) -> Observation:
    """One query's ``outcome`` after fallback; None stands for an external scaler that doesn't name its metric.

    Where a formula composes the metric, its target and type count, and not these of the trigger's.
    ``failures`` counts the failed observations in a row before this one, by loop and HPA together; ``target`` and
    ``metric_type`` are the metric's in the HPA; ``replicas`` the scale target has now, ``ready`` of them ready.
    Source: ``scaleHandler.observeMetric`` in ``pkg/scaling/scale_handler.go`` and ``GetMetricsWithFallback`` and ``doFallback``
    in ``pkg/fallback/fallback.go``.
    """

    def failed(failures: int, *reasons: str) -> Observation:
        return Observation(None, False, False, failures, reasons)

    fallback, composed = scaled.fallback, scaled.modifiers
    if outcome is None:
        return failed(failures, "the scaler is unreachable and names no metric: no fallback counts it")
    if isinstance(outcome, Reading):
        return Observation(outcome.metric, outcome.active, False, 0, outcome.reasons)
    if fallback is None:
        return failed(0, f"{outcome}", "no fallback")
    if composed and not composed.whole:
        return failed(0, f"{outcome}", "no fallback: KEDA wants a whole scalingModifiers.target for one")
    failures += 1
    if failures <= fallback.threshold:
        return failed(failures, f"{outcome}", f"failure {failures} of the {fallback.threshold} that failureThreshold lets pass")
    if fallback.behavior == modifiers.FALLBACK:
        return Observation(-1.0, False, False, failures, (f"{outcome}", f"failure {failures}: nil to the formula"))
    if composed:
        target, metric_type = composed.target, composed.metric_type
    wanted = {
        "static": fallback.replicas,
        "currentReplicas": replicas,
        "currentReplicasIfHigher": max(replicas, fallback.replicas),
        "currentReplicasIfLower": min(replicas, fallback.replicas),
    }[fallback.behavior]
    if metric_type == "Value" and not ready:
        return failed(failures, f"{outcome}", "no pod is ready: a fallback of type Value can't be worked out")
    share = float(wanted) / (ready if metric_type == "Value" else 1)
    metric = int(target * 1000 * share) / 1000
    why = f"failure {failures} is above failureThreshold {fallback.threshold}"
    then = f"{fallback.behavior} fallback to {wanted} replicas, metric {metric:g}"
    return Observation(metric, False, True, failures, (f"{outcome}", f"{why}: {then}"))


def state(scaled: ScaledObject, observations: Sequence[Observation | None]) -> State:
    """The scale loop's view of one observation per trigger, in their order; None for cpu and memory, which it never asks. A
    trigger in fallback counts as active. Source: ``scaleHandler.getScaledObjectState`` and ``getScalerState``."""
    if all(isinstance(trigger, Resource) for trigger in scaled.triggers):
        return State(True, False, ("every trigger is cpu or memory: always active",))
    found = {}
    for index, one in enumerate(observations):
        if one is not None:
            active = "active" if one.active or one.fallback else "not active"
            found[index] = "failed" if one.metric is None else active
    reasons = tuple(f"trigger {index}: {word}" for index, word in found.items())
    if scaled.modifiers and "failed" in found.values():
        return State(False, True, reasons)
    if scaled.modifiers:
        one = compose(scaled, observations)
        return State(one.active, False, one.reasons)
    return State("active" in found.values(), "failed" in found.values(), reasons)


def compose(scaled: ScaledObject, observations: Sequence[Observation | None]) -> Observation:
    """The metric that the formula of ``scaled`` composes of one observation per trigger, None for cpu and memory.

    A fallback of any trigger counts in its place. An error is a failure of the formula, or of a trigger. Source:
    ``GetScaledObjectMetrics``, ``HandleScalingModifiers`` and ``getScaledObjectState``.
    """
    composed, fallback = scaled.modifiers, scaled.fallback
    assert composed is not None, "asked of a formula alone"
    fallen = next((one for one in observations if one and one.fallback), None)
    if fallen and fallen.metric is not None:
        return replace(fallen, active=fallen.metric > composed.activation)
    failed = [one for one in observations if one and one.metric is None]
    if failed:
        return failed[0]
    values = {}
    for trigger, one in zip(scaled.triggers, observations, strict=True):
        if one and trigger.common.name:
            gone = fallback and fallback.behavior == modifiers.FALLBACK and one.failures > fallback.threshold
            values[trigger.common.name] = None if gone else one.metric
    told = ", ".join(f"{name} {'nil' if value is None else f'{value:g}'}" for name, value in values.items())
    try:
        milli = composed.milli(values)
    except FormulaError as error:
        return Observation(None, False, False, 0, (f"{composed.formula} with {told} fails: {error}",))
    if milli is None and fallback is None:
        return Observation(None, False, False, 0, (f"{composed.formula} with {told} is nil, and there is no fallback",))
    if milli is None:
        assert fallback is not None
        milli = truncated(fallback.replicas * composed.target * 1000)
    metric = milli / 1000
    active = milli * 0.001 > composed.activation
    above = f"{'above' if active else 'not above'} activationTarget {composed.activation:g}"
    return Observation(metric, active, False, 0, (f"{composed.formula} with {told} is {metric:g}, {above}",))


def scale(
    scaled: ScaledObject, found: State, replicas: int, now_s: float, created_s: float, last_active_s: float | None
) -> Decision:
    """The effect of one pass of the scale loop on ``replicas``.

    ``created_s`` is when the ScaledObject was made, ``last_active_s`` when a pass last found it active without an error. To 0
    it is one jump from any number. Source: ``scaleExecutor.RequestScale`` in ``pkg/scaling/executor/scale_scaledobjects.go``.
    """
    if scaled.switches.paused:
        return Decision(None, last_active_s, ("paused",))
    if found.active or scaled.switches.forced:
        return _activate(scaled, found, replicas, now_s, last_active_s)
    if found.error and scaled.fallback is not None and scaled.fallback.replicas:
        return Decision(None, last_active_s, ("a trigger failed: left for the fallback",))
    if found.error and scaled.fallback is None:
        return Decision(None, last_active_s, ("a trigger failed and there is no fallback: left alone",))
    idle = scaled.idle_replicas
    if (idle is not None and replicas > idle) or (replicas > 0 and not scaled.min_replicas):
        return _deactivate(scaled, replicas, now_s, created_s, last_active_s)
    if idle is None and replicas < scaled.min_replicas:
        return Decision(scaled.min_replicas, last_active_s, (f"not active: {replicas} is below minReplicaCount",))
    return Decision(None, last_active_s, (f"not active: {replicas} replicas left to the HPA",))


def _activate(scaled: ScaledObject, found: State, replicas: int, now_s: float, last_active_s: float | None) -> Decision:
    """Source: ``scaleFromZeroOrIdle`` and the branch that calls it. After an error the time of activity is not renewed."""
    why = "active" if found.active else "activation forced by annotation"
    if replicas == 0 or (scaled.idle_replicas is not None and replicas < scaled.min_replicas):
        if scaled.switches.scale_out_paused:
            return Decision(None, last_active_s, (f"{why}, but paused-scale-out: stays at {replicas}",))
        wanted = max(1, scaled.min_replicas)
        return Decision(wanted, now_s, (f"{why}: {replicas} to {wanted}",))
    if found.error:
        return Decision(None, last_active_s, (f"{why}, though a trigger failed: left to the HPA",))
    return Decision(None, now_s, (f"{why}: {replicas} replicas left to the HPA",))


def _deactivate(scaled: ScaledObject, replicas: int, now_s: float, created_s: float, last_active_s: float | None) -> Decision:
    """Source: ``scaleToZeroOrIdle`` and ``getIdleOrMinimumReplicaCount``."""
    if scaled.switches.scale_in_paused:
        return Decision(None, last_active_s, (f"not active, but paused-scale-in: stays at {replicas}",))
    if last_active_s is None:
        since, wait, name = created_s, scaled.initial_cooldown_s, "initialCooldownPeriod"
    else:
        since, wait, name = last_active_s, scaled.cooldown_s, "cooldownPeriod"
    quiet = f"not active for {now_s - since:g} s"
    if not since + wait < now_s:
        return Decision(None, last_active_s, (f"{quiet} of {name} {wait} s: stays at {replicas}",))
    wanted = scaled.min_replicas if scaled.idle_replicas is None else scaled.idle_replicas
    return Decision(wanted, last_active_s, (f"{quiet}, {name} {wait} s is over: {replicas} to {wanted}",))


def hpa(
    scaled: ScaledObject, environment: Mapping[str, str] | None = None, external: Mapping[int, tuple[str, float]] | None = None
) -> dict[str, Any] | None:
    """The HorizontalPodAutoscaler (autoscaling/v2) KEDA makes, without labels, annotations, namespace and owner.

    ``environment`` is that of the scale target's container, and fills ``…FromEnv`` fields. ``external`` holds, by trigger, the
    name and target that an external scaler answers; a scaler that answers none is left out. The result is None while paused,
    and where no trigger names a metric: KEDA then makes no HPA and tries again.
    Source: ``newHPAForScaledObject`` and ``getScaledObjectMetricSpecs`` in ``controllers/keda/hpa.go``.
    """
    metrics: list[dict[str, Any]] = []
    for index, trigger in enumerate(scaled.triggers):
        if not isinstance(trigger, External):
            metrics.append(trigger.metric(index, environment or {}))
        elif index in (external or {}):
            metrics.append(trigger.metric(index, *(external or {})[index]))
    if scaled.switches.paused or not metrics:
        return None
    metrics.sort(key=lambda metric: str(metric["type"]))
    if scaled.modifiers:  # its metric in place of the triggers' own, and of a container's cpu too
        metrics = [*(metric for metric in metrics if metric["type"] == "Resource"), scaled.modifiers.metric()]
    for metric in metrics:
        if "external" in metric:
            metric["external"]["metric"]["selector"] = {"matchLabels": {OWNER: scaled.name}}
    reference = scaled.content["spec"]["scaleTargetRef"]
    spec: dict[str, Any] = {
        "scaleTargetRef": {
            "apiVersion": reference.get("apiVersion") or "apps/v1",
            "kind": reference.get("kind") or "Deployment",
            "name": scaled.target,
        },
        "minReplicas": max(1, scaled.min_replicas),
        "maxReplicas": scaled.max_replicas,
        "metrics": metrics,
    }
    behavior = _behavior(scaled)
    if behavior is not None:
        spec["behavior"] = behavior
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": scaled.hpa}, "spec": spec}


def _behavior(scaled: ScaledObject) -> dict[str, Any] | None:
    """The behavior block, in which a pause disables its direction. KEDA passes an empty block on, and the API sets defaults."""
    settings = (scaled.content["spec"].get("advanced") or {}).get("horizontalPodAutoscalerConfig") or {}
    behavior: dict[str, Any] | None = copy.deepcopy(settings.get("behavior"))
    for rules in filter(None, (behavior or {}).values()):
        if rules.get("policies") == []:  # an empty list is not written into the HPA
            del rules["policies"]
    for paused, direction in ((scaled.switches.scale_in_paused, "scaleDown"), (scaled.switches.scale_out_paused, "scaleUp")):
        if paused:
            behavior = behavior or {}
            behavior[direction] = dict(behavior.get(direction) or {}) | {"selectPolicy": "Disabled"}
    return behavior
