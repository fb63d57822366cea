"""Sentences on a simulated group that stands still, stops or takes pods for nothing: why it does. Pure.

Situation, ScaledObject and curve are at real time, lag in messages. A sentence is told where the curve shows its effect, and
for an activation that is not below lagThreshold.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import numpy as np

from lab.foresee import whole
from lab.foresee.curve import Curve
from lab.foresee.group import Part
from lab.foresee.scaler import Scaler
from lab.foresee.situation import Situation
from lab.foresee.variants import rules_of
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers import cron
from lab.inputs.triggers.cron import Cron
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import topic_places
from lab.model import keda, lag
from lab.model.keda import Observation

EVEN = 1.05  # times an even share, within which partitions are alike
STILL_S = 120.0  # pods come within this time where lag asks for them
SETTLED_S = 60.0  # from a window's start until its pods are asked for


def notes(here: Situation, scaled: ScaledObject, curve: Curve) -> list[str]:
    """The sentences that hold of ``curve``, which is that of ``scaled`` in ``here``."""
    unseen = Scaler(scaled, here).notes
    if scaled.modifiers:  # no trigger asks for pods by itself
        return [*unseen, *_cold(here, scaled), *_hot(here), *_composed(here, scaled, curve)]
    told = [line for one in (_activation, _standstill, _kept) for line in one(here, scaled, curve)]
    return [*unseen, *_cold(here, scaled), *_hot(here), *_in_flight(here, scaled), *told]


def in_flight(here: Situation, rate: float) -> int:
    """The messages in flight at ``rate`` messages/s."""
    return math.floor(rate * here.consumers.in_flight_s + whole.ROUNDING)


def open_windows(here: Situation, scaled: ScaledObject, at: float = 0.0) -> Iterator[tuple[Cron, float, float]]:
    """The cron triggers of ``scaled``, each with the times, s, at which its window opens and closes.

    It is the window that is open ``at`` then, and opens then, or the next one. Endless for never.
    """
    begins_at = here.profile.begins_at
    for trigger in scaled.triggers:
        if not isinstance(trigger, Cron) or begins_at is None:
            continue
        then = begins_at + timedelta(seconds=at)
        opens, closes = (_after(begins_at, when) for when in cron.due(trigger, then))
        yield trigger, at if cron.read(trigger, then).active else opens, closes


def _after(begins_at: datetime, when: datetime | None) -> float:
    return math.inf if when is None else (when - begins_at) / timedelta(seconds=1)


def _cold(here: Situation, scaled: ScaledObject) -> Iterator[str]:
    """The traffic begins with more than the pods that the simulation begins with can do."""
    rate, pods = here.profile.steps[0].rate, scaled.start if here.replicas is None else here.replicas
    if rate > pods * here.consumers.rate:
        yield (
            f"the traffic begins with {rate:,g} messages/s and the group with {pods:,} pods, its floor, where "
            f"{math.ceil(rate / here.consumers.rate):,} keep up: what comes of that is no group's that already runs"
        )


def _hot(here: Situation) -> Iterator[str]:
    """A partition gets more than its pod can do, however many pods there are."""
    rate, share = max(step.rate for step in here.profile.steps), float(here.shares.max())
    if rate * share > here.consumers.rate and share > EVEN / len(here.shares):
        yield (
            f"at {rate:,g} messages/s the hottest partition gets {rate * share:,.0f}, by zipf {here.profile.zipf:g}, "
            f"and a pod does {here.consumers.rate:,g}: its events get older than the group's, whatever the replicas"
        )


def _in_flight(here: Situation, scaled: ScaledObject) -> Iterator[str]:
    """What is in flight asks for more pods than its messages need."""
    rate = max(step.rate for step in here.profile.steps)
    needed = max(1, scaled.min_replicas, math.ceil(rate / here.consumers.rate))
    for trigger, part in _on_lag(here, scaled):
        shares = part.of(here.shares)
        flying = whole.total(shares * rate * here.consumers.in_flight_s)
        if not isinstance(trigger, Kafka) or flying <= trigger.lag_threshold:
            continue
        metric, _ = lag.capped(trigger, flying, len(shares), min(flying, len(shares)))
        asked = min(math.ceil(metric / trigger.lag_threshold), scaled.max_replicas)
        if asked > needed:
            yield (
                f"at {rate:,g} messages/s {flying:,} are in flight, more than one lagThreshold of {trigger.lag_threshold:,}: a "
                f"group that keeps up is asked for {asked:,} pods, where {needed:,} are enough"
            )
            return


def _activation(here: Situation, scaled: ScaledObject, curve: Curve) -> Iterator[str]:
    """An activation lets messages wait without a pod, or stops a group that keeps up."""
    for trigger, part in _on_lag(here, scaled):
        if not isinstance(trigger, Kafka) or (scaled.min_replicas and scaled.idle_replicas is None):
            continue
        above = f"activationLagThreshold {trigger.activation:,}"
        if trigger.activation >= trigger.lag_threshold:
            yield (
                f"{above} is not below lagThreshold {trigger.lag_threshold:,}: lag must be above it, so as many "
                f"messages wake nothing, and a group with no more of them stops after cooldownPeriod, {scaled.cooldown_s} s"
            )
        stops = [at for at, _, after in curve.changes if not after and _rate(here, at)]
        rate = _rate(here, stops[0]) if stops else 0.0
        flying = whole.total(part.of(here.shares) * rate * here.consumers.in_flight_s)
        if stops and flying <= trigger.activation:
            yield (
                f"to 0 amid traffic, {len(stops)} x: what is in flight at {rate:,g} messages/s, {flying:,}, is not above "
                f"{above}, so a group that keeps up counts as idle"
            )
        seconds, most = _asleep(curve)
        if seconds > 2 * scaled.polling_s:
            yield f"0 pods for {seconds:,.0f} s, with up to {most:,.0f} messages of lag: {above} keeps the group asleep"


def _standstill(here: Situation, scaled: ScaledObject, curve: Curve) -> Iterator[str]:
    """Lag grows and the replicas stay: each trigger is capped at the partitions that it counts."""
    found = [(trigger, part.of(here.shares)) for trigger, part in _on_lag(here, scaled)]
    capped = [
        (trigger.lag_threshold, shares) for trigger, shares in found if isinstance(trigger, Kafka) and not trigger.allow_idle
    ]
    if not capped or len(capped) < len(found):
        return
    tolerance = _tolerance(here, scaled)
    beyond = 1 + tolerance
    for replicas, seconds, waiting in _still(curve, beyond * min(threshold for threshold, _ in capped)):
        asking = [len(shares) for threshold, shares in capped if waiting * shares.sum() > threshold * replicas * beyond]
        if seconds < STILL_S or not asking or replicas >= min(scaled.max_replicas, len(here.shares)):
            continue
        most = max(asking)
        if most > replicas * beyond:
            continue
        stays = f"{replicas:,} pods stay for {seconds:,.0f} s, with up to {waiting:,.0f} messages of lag: "
        if len(found) > 1:
            yield f"{stays}the HPA takes the largest of {len(found)} triggers, none asks for more than its {most:,} partitions"
        elif most > replicas:
            yield f"{stays}KEDA asks for no more than the partitions, {_within(most, replicas, tolerance)}"
        else:
            yield f"{stays}KEDA asks for no more than the {most:,} partitions that the trigger counts"
        return


def _composed(here: Situation, scaled: ScaledObject, curve: Curve) -> Iterator[str]:
    """What a formula makes of triggers that are capped before it."""
    caps = [
        len(part.of(here.shares)) * trigger.target
        for trigger, part in _on_lag(here, scaled)
        if isinstance(trigger, Kafka) and not trigger.allow_idle
    ]
    if scaled.modifiers is None or len(caps) < len(scaled.triggers):
        return
    composed = keda.compose(scaled, [Observation(cap, True, False, 0, ()) for cap in caps]).metric
    if composed is None or curve.peak_lag <= sum(caps):
        return
    most, needed = math.ceil(composed / scaled.modifiers.target), min(scaled.max_replicas, len(here.shares))
    if scaled.modifiers.metric_type == "AverageValue" and most < needed:
        yield (
            f"each kafka trigger is capped at its partitions x lagThreshold before the formula, which is {composed:,g} at all "
            f"the caps and asks for {most:,} pods, whatever the lag"
        )


def _kept(here: Situation, scaled: ScaledObject, curve: Curve) -> Iterator[str]:
    """A time of day asks for replicas that the tolerance keeps from coming."""
    tolerance = _tolerance(here, scaled)
    for trigger, opens, closes in open_windows(here, scaled):
        wanted, last = min(trigger.replicas, scaled.max_replicas), min(closes, float(curve.t[-1]))
        if last - opens < SETTLED_S:
            continue
        there = int(curve.replicas[np.searchsorted(curve.t, last) - 1])
        if 0 < there < wanted <= there * (1 + tolerance):
            yield f"the cron trigger asks for {wanted:,} pods and {there:,} stay, {_within(wanted, there, tolerance)}"


def _tolerance(here: Situation, scaled: ScaledObject) -> float:
    """By how much a metric may be above its target without a scale-up, as a ratio."""
    up = rules_of(scaled)[0].tolerance
    return here.controller.tolerance if up is None else up


def _within(asked: int, there: int, tolerance: float) -> str:
    return f"as {asked:,} / {there:,} = {asked / there:.3g} is within the tolerance of {tolerance:g}"


def _on_lag(here: Situation, scaled: ScaledObject) -> Iterator[tuple[Kafka | PersistentLag, Part]]:
    """The triggers on lag, each with the partitions that it counts."""
    for trigger, place in zip(scaled.triggers, topic_places(scaled.triggers), strict=True):
        if isinstance(trigger, Kafka | PersistentLag):
            yield trigger, Part(place, here.topics, trigger.partitions, here.sizes)


def _rate(here: Situation, at: float) -> float:
    """The rate of arrivals at ``at``, messages/s."""
    return next((step.rate for step in reversed(here.profile.steps) if step.at <= at), 0.0)


def _still(curve: Curve, each: float) -> Iterator[tuple[int, float, float]]:
    """Each stretch without a change of the replicas: (replicas, s with a lag above ``each`` a replica, the most lag)."""
    edges = [0, *(np.flatnonzero(np.diff(curve.replicas)) + 1).tolist(), len(curve.t) - 1]
    for first, last in pairwise(edges):
        replicas, there = int(curve.replicas[first]), curve.lag[first:last]
        above = np.diff(curve.t[first : last + 1])[there > each * replicas]
        yield replicas, float(above.sum()), float(there.max(initial=0.0))


def _asleep(curve: Curve) -> tuple[float, float]:
    """The longest time without a pod while there is lag, s, and the most lag in any."""
    waits = (curve.replicas == 0) & (curve.lag >= 1)
    edges = np.flatnonzero(np.diff(np.concatenate(([0], waits.astype(int), [0]))))
    spans = [(float(curve.t[min(end, len(curve.t) - 1)] - curve.t[begin])) for begin, end in edges.reshape(-1, 2)]
    return max(spans, default=0.0), float(curve.lag[waits].max(initial=0.0))
