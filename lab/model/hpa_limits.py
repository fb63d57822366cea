"""The limits between an HPA's proposals and its decision: windows, policies, minReplicas and maxReplicas.

The source is ``pkg/controller/podautoscaler/horizontal.go`` of Kubernetes 1.36. An HPA with a ``behavior`` and one without take
different ways: without one a step up ends at max(2 x replicas, 4) at most, and only the window limits a step down.
:class:`State` is the controller's memory of one HPA between two syncs, in its own form: lists whose old entries are
overwritten. Times in it are whole nanoseconds, because the controller compares its clock exactly.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

from lab.inputs.hpa_spec import Behavior, Policy, Rules

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The replicas the metrics asked for at ``at`` (ns), before any limit."""

    replicas: int
    at: int


@dataclass(frozen=True, slots=True)
class ScaleEvent:
    """A change of replicas (absolute) that the controller made at ``at`` (ns); ``outdated`` means its slot is free."""

    change: int
    at: int
    outdated: bool = False


@dataclass(frozen=True, slots=True)
class State:
    """The memory of one HPA; a new one's is ``State()``. ``scaled_to_zero``: its last step was its own, to 0."""

    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()
    scaled_to_zero: bool = False


def nanoseconds(seconds: float) -> int:
    """``seconds`` on the controller's clock."""
    return round(seconds * 1e9)


def with_first_recommendation(state: State, replicas: int, now: int) -> State:
    """The first sync recommends the current replicas (``recordInitialRecommendation``)."""
    return state if state.recommendations else replace(state, recommendations=(Recommendation(replicas, now),))


def with_recommendation(state: State, replicas: int, now: int, free: int | None) -> State:
    """``state`` with the recommendation in the slot ``free``, or at the end when there is none."""
    return replace(state, recommendations=_stored(state.recommendations, Recommendation(replicas, now), free))


def with_scale_event(state: State, before: int, after: int, now: int, longest_s: int) -> State:
    """``state`` with the change (``storeScaleEvent``, ``markScaleEventsOutdated``); an older event gives its slot away."""
    cutoff = now - longest_s * 10**9
    events = state.ups if after > before else state.downs
    marked = tuple(replace(event, outdated=True) if event.at < cutoff else event for event in events)
    free = max((index for index, event in enumerate(marked) if event.outdated), default=None)
    marked = _stored(marked, ScaleEvent(abs(after - before), now), free)
    return replace(state, ups=marked) if after > before else replace(state, downs=marked)


def change_within(events: Iterable[ScaleEvent], now: int, period_s: int) -> int:
    """The change of replicas within the last ``period_s`` seconds (``getReplicasChangePerPeriod``)."""
    cutoff = now - period_s * 10**9
    return sum(event.change for event in events if event.at > cutoff)


def _stored(entries: tuple[Entry, ...], entry: Entry, free: int | None) -> tuple[Entry, ...]:
    return (*entries, entry) if free is None else (*entries[:free], entry, *entries[free + 1 :])


UP_FACTOR = 2.0  # scaleUpLimitFactor
UP_LEAST = 4.0  # scaleUpLimitMinimum


@dataclass(frozen=True)
class Bounds:
    """The current replicas, and the least and most that are allowed."""

    current: int
    least: int
    most: int


@dataclass(frozen=True)
class Limited:
    """A proposal after its limits: replicas, the reason of the condition AbleToScale, and that of ScalingLimited."""

    replicas: int
    able: str
    limited: bool
    reason: str


def normalize(
    state: State, bounds: Bounds, proposed: int, now: int, behavior: Behavior | None, window_s: int, log: list[str]
) -> tuple[Limited, State]:
    """``proposed`` after windows and limits at ``now`` (ns); ``window_s`` is the controller's own window down.
    ``normalizeDesiredReplicas``, or ``normalizeDesiredReplicasWithBehaviors`` when there is a ``behavior``."""
    if behavior is None:
        steady, state = _steady_down(state, proposed, now, window_s)
        able = "ScaleDownStabilized"
        replicas, reason = _within_rules(bounds, steady)
    else:
        steady, state = _steady(state, bounds.current, proposed, now, behavior, window_s)
        able = "ScaleUpStabilized" if proposed >= bounds.current else "ScaleDownStabilized"
        replicas, reason = _within_policies(state, bounds, steady, now, behavior, log)
    if steady != proposed:
        log.append(f"{able}: {proposed} -> {steady}, of the recommendations in the window")
    if replicas != steady:
        log.append(f"{reason}: {steady} -> {replicas}")
    return Limited(replicas, able if steady != proposed else "ReadyForNewScale", replicas != steady, reason), state


def _steady_down(state: State, proposed: int, now: int, window_s: int) -> tuple[int, State]:
    """The largest recommendation of the window (``stabilizeRecommendation``); its edge counts."""
    cutoff = now - window_s * 10**9
    largest, free = proposed, None
    for index, entry in enumerate(state.recommendations):
        if entry.at < cutoff:
            free = index
        else:
            largest = max(largest, entry.replicas)
    return largest, with_recommendation(state, proposed, now, free)


def _steady(state: State, current: int, proposed: int, now: int, behavior: Behavior, window_s: int) -> tuple[int, State]:
    """``current``, raised to the smallest recommendation of the window up, then lowered to the largest of the window down.
    ``stabilizeRecommendationWithBehaviors``; the windows' edges don't count."""
    up_cutoff = now - (behavior.up.window_s or 0) * 10**9
    down_cutoff = now - (window_s if behavior.down.window_s is None else behavior.down.window_s) * 10**9
    up = down = proposed
    free = None
    rising = up_cutoff < now  # else none is in the window up
    for index, entry in enumerate(state.recommendations):  # the hot loop of a simulation
        at = entry.at
        if rising and at > up_cutoff and entry.replicas < up:
            up = entry.replicas
        if at > down_cutoff:
            if entry.replicas > down:
                down = entry.replicas
        elif at < up_cutoff and at < down_cutoff:
            free = index
    return min(max(current, up), down), with_recommendation(state, proposed, now, free)


def _within_rules(bounds: Bounds, desired: int) -> tuple[int, str]:
    """Without a ``behavior`` (``convertDesiredReplicasWithRules``, ``calculateScaleUpLimit``)."""
    limit = int(max(UP_FACTOR * bounds.current, UP_LEAST))
    most, reason = (limit, "ScaleUpLimit") if bounds.most > limit else (bounds.most, "TooManyReplicas")
    if desired < bounds.least:
        return bounds.least, "TooFewReplicas"
    return (most, reason) if desired > most else (desired, "DesiredWithinRange")


def _within_policies(
    state: State, bounds: Bounds, desired: int, now: int, behavior: Behavior, log: list[str]
) -> tuple[int, str]:
    """With a ``behavior`` (``convertDesiredReplicasWithBehaviorRate``)."""
    if desired > bounds.current:
        limit = max(bounds.current, _limit(state, bounds.current, now, behavior.up, True, log))
        most, reason = (limit, "ScaleUpLimit") if bounds.most > limit else (bounds.most, "TooManyReplicas")
        if desired > most:
            return most, reason
    elif desired < bounds.current:
        limit = min(bounds.current, _limit(state, bounds.current, now, behavior.down, False, log))
        least, reason = (limit, "ScaleDownLimit") if bounds.least < limit else (bounds.least, "TooFewReplicas")
        if desired < least:
            return least, reason
    return desired, "DesiredWithinRange"


def _limit(state: State, current: int, now: int, rules: Rules, upward: bool, log: list[str]) -> int:
    """The furthest replicas that the policies allow now.

    ``calculateScaleUpLimitWithScalingRules``, ``calculateScaleDownLimitWithBehaviors``: each policy counts from its own period.
    """
    name = "scaleUp" if upward else "scaleDown"
    if rules.select == "Disabled":
        log.append(f"{name} is Disabled: stays at {current}")
        return current
    reach, texts = [], []
    for policy in rules.policies:
        start = current - change_within(state.ups, now, policy.period_s) + change_within(state.downs, now, policy.period_s)
        reach.append(_reach(policy, start, upward))
        texts.append(f"{policy.type} {policy.value} per {policy.period_s} s from {start} -> {reach[-1]}")
    farthest, nearest = (max, min) if upward else (min, max)
    chosen = farthest(reach) if rules.select == "Max" else nearest(reach)
    log.append(f"{name} {rules.select} of {', '.join(texts)}: {chosen}")
    return chosen


def _reach(policy: Policy, start: int, upward: bool) -> int:
    """The replicas after one policy's full step from ``start``: percent up is rounded up, percent down towards zero."""
    if policy.type == "Pods":
        return start + policy.value if upward else start - policy.value
    if upward:
        return math.ceil(float(start) * (1 + float(policy.value) / 100))
    return int(float(start) * (1 - float(policy.value) / 100))
