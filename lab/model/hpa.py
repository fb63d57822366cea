"""A pure model of the Kubernetes 1.36 HPA controller: one sync of one HPA, without a clock, a cluster or a random number.

Every function names its source in ``pkg/controller/podautoscaler``. :mod:`tests.oracles.hpa` proves against the real controller
that it follows that source, with the feature gates of the release: tolerance per HPA on, scale to zero off. An HPA with
minReplicas 0 needs the latter (HPAScaleToZero), and the oracle has none such. Of its condition ScaledToZero the state keeps
what decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from lab.inputs.controller import LagController
from lab.inputs.hpa_spec import Behavior, HpaSpec, Metric, Policy, Rules, parse
from lab.model import hpa_limits, hpa_replicas
from lab.model.hpa_limits import State
from lab.model.hpa_replicas import Controller, External, MetricFailed, Observed, Pod, PodUsage, Usage, external

__all__ = [
    "DEFAULTS", "Behavior", "Condition", "Controller", "Decision", "External", "HpaSpec", "Metric", "Observed", "Pod",
    "PodUsage", "Policy", "Rules", "State", "Usage", "decide", "decide_on_lag", "external", "parse", "proposals", "settle",
    "stored",
]  # fmt: skip


DEFAULTS = Controller()
Proposals = tuple[int | None, ...]  # of each metric: the replicas before any limit, None where it failed


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition that the sync sets in the HPA's status."""

    type: str
    status: bool
    reason: str


GOT_SCALE = Condition("AbleToScale", True, "SucceededGetScale")
RESCALED = Condition("AbleToScale", True, "SucceededRescale")


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of one sync.

    ``desired`` is what the target's scale says afterwards. ``failed`` means that failed metrics kept the controller from
    deciding. ``limited`` is the reason of a true ScalingLimited. ``conditions`` are those that this sync sets; the others stay.
    """

    desired: int
    reasons: tuple[str, ...]
    proposals: Proposals = ()
    limited: str | None = None
    failed: bool = False
    conditions: tuple[Condition, ...] = ()


def decide(
    spec: HpaSpec,
    state: State,
    current_replicas: int,
    observed: Sequence[Observed],
    now: float,
    *,
    status_replicas: int | None = None,
    pods: Sequence[Pod] | None = None,
    controller: Controller = DEFAULTS,
    scaled_at: float | None = None,
) -> tuple[Decision, State]:
    """One sync at ``now`` (s; must not go back) of an HPA whose target's scale asks for ``current_replicas``.

    ``observed`` holds one value for each of ``spec.metrics``: for External the milli-units of its series (:func:`external`),
    for Resource the usage by pod, None when it can't be had. ``status_replicas`` are the replicas that exist, by default all
    asked for; ``pods`` are theirs, by default all ready, and needed for a Resource metric (else :class:`TypeError`).
    ``scaled_at`` (s) is when the scale's update was through, by default at once. The source is ``reconcileAutoscaler``.
    """
    if len(observed) != len(spec.metrics):
        raise ValueError(f"{len(observed)} observed values for {len(spec.metrics)} metrics")
    moment = hpa_limits.nanoseconds(now)
    through = moment if scaled_at is None else hpa_limits.nanoseconds(scaled_at)
    state = hpa_limits.with_first_recommendation(state, current_replicas, moment)
    if current_replicas == 0 and not state.scaled_to_zero:  # ``shouldComputeMetricsForZeroReplicas``
        conditions = (GOT_SCALE, Condition("ScalingActive", False, "ScalingDisabled"))
        return Decision(0, ("replicas are 0: scaling is disabled",), conditions=conditions), state
    if not spec.min_replicas <= current_replicas <= spec.max_replicas:
        desired = min(max(current_replicas, spec.min_replicas), spec.max_replicas)
        bound = "above maxReplicas" if current_replicas > desired else "below minReplicas"
        decision = Decision(desired, (f"{current_replicas} replicas are {bound}: {desired}",), conditions=(RESCALED,))
        return decision, stored(spec, state, current_replicas, desired, through)
    existing = current_replicas if status_replicas is None else status_replicas
    target = hpa_replicas.Target(current_replicas, existing, pods)
    log: list[str] = []
    asked = _proposals(spec, observed, target, moment, controller, log)
    return _settled(spec, state, current_replicas, asked, moment, through, controller.downscale_stabilization_s, log)


def decide_on_lag(policy: LagController, state: State, current_replicas: int, lag: int, now: float) -> tuple[Decision, State]:
    """One sync of the lab's own controller at ``now`` (s, never back) and a total ``lag`` (messages), from ``State()`` on."""
    return decide(policy.spec, state, current_replicas, [external(lag)], now)


def settle(
    spec: HpaSpec,
    state: State,
    current_replicas: int,
    proposals: Sequence[int | None],
    now: float,
    *,
    controller: Controller = DEFAULTS,
    scaled_at: float | None = None,
) -> tuple[Decision, State]:
    """:func:`decide` for known proposals: the replicas that each metric asks for, None for one that failed."""
    moment = hpa_limits.nanoseconds(now)
    through = moment if scaled_at is None else hpa_limits.nanoseconds(scaled_at)
    state = hpa_limits.with_first_recommendation(state, current_replicas, moment)
    window_s = controller.downscale_stabilization_s
    return _settled(spec, state, current_replicas, tuple(proposals), moment, through, window_s, [])


def proposals(
    spec: HpaSpec,
    replicas: int,
    observed: Sequence[Observed],
    now: float = 0,
    *,
    pods: Sequence[Pod] | None = None,
    controller: Controller = DEFAULTS,
) -> Proposals:
    """What each metric asks for when ``replicas`` are wanted and there, before any limit; None for a metric that fails."""
    target = hpa_replicas.Target(replicas, replicas, pods)
    return _proposals(spec, observed, target, hpa_limits.nanoseconds(now), controller, [])


def _settled(
    spec: HpaSpec, state: State, current: int, proposals: Proposals, now: int, through: int, window_s: int, log: list[str]
) -> tuple[Decision, State]:
    """The decision on the proposals: none while a failed metric might have asked for more, otherwise by the limits."""
    wanted = _largest(proposals)
    failing = next((metric for metric, count in zip(spec.metrics, proposals, strict=True) if count is None), None)
    if failing is not None and (wanted is None or wanted < current):
        log.append("no metric gave a number" if wanted is None else f"{wanted} is fewer, and not all metrics gave a number")
        log.append(f"stays at {current}")
        failure = Condition("ScalingActive", False, f"FailedGet{failing.source}Metric")
        return Decision(current, tuple(log), proposals, failed=True, conditions=(GOT_SCALE, failure)), state
    bounds = hpa_limits.Bounds(current, spec.min_replicas, spec.max_replicas)
    result, state = hpa_limits.normalize(state, bounds, max(0, wanted or 0), now, spec.behavior, window_s, log)
    rescaled = result.replicas != current
    if rescaled:
        state = stored(spec, state, current, result.replicas, through)
    log.append(f"{current} -> {result.replicas}" if rescaled else f"stays at {current}")
    conditions = (
        RESCALED if rescaled else Condition("AbleToScale", True, result.able),
        Condition("ScalingActive", True, "ValidMetricFound"),
        Condition("ScalingLimited", result.limited, result.reason),
    )
    limited = result.reason if result.limited else None
    return Decision(result.replicas, tuple(log), proposals, limited, conditions=conditions), state


def _proposals(
    spec: HpaSpec, observed: Sequence[Observed], target: hpa_replicas.Target, now: int, controller: Controller, log: list[str]
) -> Proposals:
    """The replicas that each metric asks for, None for one that fails."""
    up, down = (spec.behavior.up.tolerance, spec.behavior.down.tolerance) if spec.behavior else (None, None)
    default = controller.tolerance  # ``tolerancesForHpa``: the HPA's own in each direction, else the controller's
    tolerances = hpa_replicas.Tolerances(default if down is None else down, default if up is None else up)
    found: list[int | None] = []
    for metric, value in zip(spec.metrics, observed, strict=True):
        try:
            count, text = hpa_replicas.proposal(metric, value, target, tolerances, now, controller)
        except MetricFailed as failure:
            found.append(None)
            log.append(f"{metric.source} {metric.name}: {failure}")
        else:
            found.append(count)
            log.append(f"{metric.source} {metric.name}: {text}")
    return tuple(found)


def _largest(proposals: Sequence[int | None]) -> int | None:
    """The proposal that wins, None without one (``computeReplicasForMetrics``); a first one of 0 or less yields to any."""
    replicas = 0
    counts = [count for count in proposals if count is not None]
    for count in counts:
        if replicas == 0 or count > replicas:
            replicas = count
    return replicas if counts else None


def stored(spec: HpaSpec, state: State, before: int, after: int, now: int) -> State:
    """``state`` after a step at ``now`` (ns), by ``storeScaleEvent``: without a ``behavior`` it keeps no more than one to 0."""
    state = replace(state, scaled_to_zero=after == 0)
    if spec.behavior is None:
        return state
    rules = spec.behavior.up if after > before else spec.behavior.down
    return hpa_limits.with_scale_event(state, before, after, now, max(policy.period_s for policy in rules.policies))
