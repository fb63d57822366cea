"""Another ScaledObject than the live one, on what the live HPA saw: its metrics, and the closed loop that it would make. Pure.

Lag is in messages, times are in s. An HPA's status has what KEDA answered, which may be less than the lag: KEDA caps it at one
lagThreshold for each partition. Where the live cap acts, the lag is hidden.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, pairwise

import numpy as np

from lab.errors import InputError
from lab.foresee import live_hpa, sync
from lab.foresee.curve import Curve, worst_age
from lab.foresee.group import Consumers
from lab.foresee.simulate import simulate
from lab.foresee.situation import Situation
from lab.foresee.situation import points as at_points
from lab.inputs.profile import BASELINE, Profile, Step
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import APACHE, KAFKA, Kafka
from lab.inputs.triggers.parsing import Trigger
from lab.judge.aggregate import count_flips
from lab.model import hpa, lag
from lab.model.hpa import Controller

# What may differ between two triggers on the same source, by type: of any other type all is the same.
_KAFKAS = {"lagThreshold", "activationLagThreshold", "allowIdleConsumers", "bootstrapServers", "bootstrapServersFromEnv"}
_OWN = {KAFKA: _KAFKAS, APACHE: _KAFKAS, "prometheus": {"threshold", "activationThreshold"}}
LACKS_S = 60.0  # of a measured traffic, at either end: a scrape or two
RANGE_S = 86_400.0  # simulated at each point of a sync, no longer: in a longer time bursts come at all of them anyway
LIVE, SIMULATED, CANDIDATE = "live, as it was", "live, simulated", "candidate, simulated"
SEEN = "a trigger that the live ScaledObject has too, but for its thresholds: its metric is all that the live HPA saw"


class Comparison:
    """The metrics of ``scaled`` out of those of the live one."""

    def __init__(self, live: ScaledObject, scaled: ScaledObject, partitions: int | None) -> None:
        """Raises :class:`InputError` for a trigger whose metric the live HPA did not see, and where ``partitions`` lack."""
        self.scaled, self.spec = scaled, sync.hpa_of(scaled)
        if any(metric.source != "External" for metric in self.spec.metrics):
            allowed = "no cpu or memory: the proposal depends on each pod's use, which no status has"
            raise InputError(scaled.where, "spec.triggers", sync.kinds(scaled), allowed)
        self._pairs: list[tuple[int, Trigger, Trigger, int | None]] = []
        if live.modifiers or scaled.modifiers:
            _check_formula(live, scaled)
            return
        sources = [_source(live, place) for place in range(len(live.triggers))]
        for place, wanted in enumerate(scaled.triggers):
            source = _source(scaled, place)
            if source not in sources:
                raise InputError(scaled.where, f"spec.triggers[{place}]", source[0], SEEN)
            there = sources.index(source)
            count = live_hpa.counted(wanted, partitions)
            _check_cap(live.triggers[there], wanted, count, scaled.where)
            self._pairs.append((there, live.triggers[there], wanted, count))

    def observed(self, values: Sequence[hpa.Observed]) -> tuple[list[hpa.Observed], bool]:
        """What the HPA of the candidate is given where the live one was given ``values``, and whether a cap hid some lag."""
        if not self._pairs:
            return list(values), False
        found: list[hpa.Observed] = []
        hidden = False
        for there, live, wanted, partitions in self._pairs:
            value = values[there]
            milli = _answer(live, wanted, value[0], partitions) if isinstance(value, tuple) else None
            found.append(None if milli is None else (milli,))
            hidden = hidden or (milli is None and value is not None)
        return found, hidden


def _check_formula(live: ScaledObject, scaled: ScaledObject) -> None:
    one, other = (each.modifiers.formula if each.modifiers else None for each in (live, scaled))
    if one != other or live.content["spec"]["triggers"] != scaled.content["spec"]["triggers"]:
        allowed = f"the live one, {one!r} with the same triggers: the live HPA saw what it composes"
        raise InputError(scaled.where, "spec.advanced.scalingModifiers.formula", other, allowed)


def _source(scaled: ScaledObject, place: int) -> tuple[str, dict[str, str]]:
    """The type of a trigger, and what of its metadata says where its metric comes from."""
    trigger = scaled.content["spec"]["triggers"][place]
    own = _OWN.get(trigger["type"], set())
    return str(trigger["type"]), {name: value for name, value in trigger["metadata"].items() if name not in own}


def _alike(live: Kafka, wanted: Kafka) -> bool:
    """Whether KEDA caps the lag of both in the same way."""
    return (live.lag_threshold, live.allow_idle) == (wanted.lag_threshold, wanted.allow_idle)


def _check_cap(live: Trigger, wanted: Trigger, partitions: int | None, where: str) -> None:
    if not isinstance(live, Kafka) or not isinstance(wanted, Kafka) or _alike(live, wanted):
        return
    for name, on in (("limitToPartitionsWithLag", live.limit_to_lagging), ("ensureEvenDistributionOfPartitions", live.even)):
        if on:
            raise InputError(where, name, "true", "the live lagThreshold with it: what KEDA answers then hides the lag")
    if partitions is None and (live_hpa.capped(live) or live_hpa.capped(wanted)):
        raise InputError("command line", "--partitions", None, "the partitions of the topic: KEDA caps the lag by them")


def _answer(live: Trigger, wanted: Trigger, milli: int, partitions: int | None) -> int | None:
    """What KEDA answers ``wanted`` where it answered ``milli`` to ``live``; None where that is hidden."""
    if not isinstance(live, Kafka) or not isinstance(wanted, Kafka) or _alike(live, wanted):
        return milli
    messages, most = milli // 1000, partitions or 0
    if live_hpa.capped(live) and messages == most * live.lag_threshold:  # the lag is as much, or more
        surely = live_hpa.capped(wanted) and messages >= (most + 1) * wanted.lag_threshold
        return most * wanted.lag_threshold * 1000 if surely else None
    return lag.capped(wanted, messages, most, most)[0] * 1000


@dataclass(frozen=True)
class Point:
    """What is known of the group from ``t`` on: its lag, the replicas asked for, and the pods that are ready."""

    t: float
    lag: float
    replicas: int
    ready: int


@dataclass(frozen=True)
class Cost:
    """What a group costs and how far behind it is; ``worst_age_s`` is its oldest event's age, None where that isn't known."""

    pod_minutes: float
    flips: int
    peak_lag: float
    worst_age_s: float | None


@dataclass(frozen=True)
class Range:
    """The least and the most of what a policy costs over the points of a sync at which its traffic may come."""

    pod_minutes: tuple[float, float]
    flips: tuple[int, int]


@dataclass(frozen=True)
class Closed:
    """The closed loop: ``live`` is what the group did, ``simulated`` what the model makes of the same ScaledObject.

    Their difference is the known error: ``pod_minutes_error`` and ``peak_lag_error`` relative, ``flips_error`` a number.
    ``candidate`` is what the model makes of the candidate, None without one. The traffic is as it was ``measured``, or worked
    out from the lag, from ``lowest_rate`` to ``highest_rate`` messages/s.

    ``simulated`` and ``candidate`` have their syncs when the live one had its own. A candidate that is deployed has its own at
    other times, as its commits: ``simulated_range`` and ``candidate_range`` tell how much hangs on it. None beyond a day.
    """

    measured: bool
    lowest_rate: float
    highest_rate: float
    live: Cost
    simulated: Cost
    candidate: Cost | None
    pod_minutes_error: float
    flips_error: int
    peak_lag_error: float
    simulated_range: Range | None = None
    candidate_range: Range | None = None


def traffic(points: Sequence[Point], until: float, pods: Consumers) -> Profile:
    """The arrivals that make the lag of ``points``, up to ``until``: what came more, and what the pods processed meanwhile.

    Pods that are ready process ``pods.rate`` each while there is more lag than what is in flight then. With less the group
    keeps up: its lag is what is in flight, and so tells the rate.
    """
    ends = [*points[1:], Point(until, points[-1].lag, 0, 0)]
    steps = []
    for one, other in zip(points, ends, strict=True):
        most = one.ready * pods.rate
        if other.t <= one.t:
            continue
        if other.lag <= most * pods.in_flight_s:
            rate = max(0.0, other.lag / pods.in_flight_s)
        else:
            rate = max(0.0, (other.lag - one.lag) / (other.t - one.t) + most)
        steps.append(Step(one.t - points[0].t, rate, BASELINE))
    return Profile(tuple(steps), until - points[0].t)


def part(seen: Profile, begin: float, until: float) -> Profile | None:
    """``seen`` from ``begin`` to ``until``, epoch s; None where it has no time of day, or lacks more than :data:`LACKS_S`."""
    if seen.begins_at is None:
        return None
    first = seen.begins_at.timestamp()
    if first > begin + LACKS_S or first + seen.duration < until - LACKS_S:
        return None
    ends = [*(one.at for one in seen.steps[1:]), seen.duration]
    steps = [
        Step(max(0.0, first + one.at - begin), one.rate, BASELINE)
        for one, end in zip(seen.steps, ends, strict=True)
        if first + end > begin and first + one.at < until
    ]
    return Profile((Step(0.0, steps[0].rate, BASELINE), *steps[1:]), until - begin)


@dataclass(frozen=True)
class Loop:
    """The model's play of ``policies``, the live one first, from the first of ``points`` until epoch s ``until``.

    The traffic is that of ``situation``. ``curves`` are by SIMULATED and CANDIDATE, in s from the first of ``points``.
    """

    policies: Sequence[ScaledObject]
    points: Sequence[Point]
    until: float
    situation: Situation
    measured: bool
    curves: Mapping[str, Curve]

    @property
    def live(self) -> Curve:
        """What the group did, as far as its syncs saw it, in s from the first of them."""
        seen = [*self.points, replace(self.points[-1], t=self.until)]
        t, lag = (np.array([getattr(one, name) for one in seen], dtype=float) for name in ("t", "lag"))
        replicas, ready = (np.array([getattr(one, name) for one in seen], dtype=int) for name in ("replicas", "ready"))
        return Curve(t - t[0], lag, replicas, ready)

    @property
    def closed(self) -> Closed:
        """What each costs, and how far the play of the live one is from what the group did."""
        rates = [step.rate for step in self.situation.profile.steps]
        known = _known(self.points, self.until)
        played = zip(self.policies, self.curves.values(), strict=True)
        (simulated, its_range), *others = [_outcome(self.situation, *both) for both in played]
        return Closed(
            measured=self.measured,
            lowest_rate=min(rates),
            highest_rate=max(rates),
            live=known,
            simulated=simulated,
            candidate=others[0][0] if others else None,
            pod_minutes_error=simulated.pod_minutes / known.pod_minutes - 1 if known.pod_minutes else 0.0,
            flips_error=simulated.flips - known.flips,
            peak_lag_error=simulated.peak_lag / known.peak_lag - 1 if known.peak_lag else 0.0,
            simulated_range=its_range,
            candidate_range=others[0][1] if others else None,
        )


def play(
    policies: Sequence[ScaledObject],
    points: Sequence[Point],
    until: float,
    pods: Consumers,
    partitions: int,
    sync_s: float,
    controller: Controller,
    measured: Profile | None = None,
) -> Loop:
    """The closed loop of the live ScaledObject, and of a candidate where there is one, on the traffic that was ``measured``.

    It begins with the first of ``points``. None: what their lag tells. Raises :class:`InputError` for what is not simulated.
    """
    profile = measured or traffic(points, until, pods)
    situation = Situation(
        profile,
        np.full(partitions, 1 / partitions),
        pods,
        sync_s=sync_s,
        controller=controller,
        backlog=max(0.0, points[0].lag - profile.steps[0].rate * pods.in_flight_s),
        replicas=points[0].replicas,
        swing=(0.0, 2 * pods.in_flight_s),  # of pods that commit together, from just after a commit to just before
    )
    curves = dict(zip((SIMULATED, CANDIDATE), (simulate(situation, one) for one in policies), strict=False))
    return Loop(policies, points, until, situation, measured is not None, curves)


def _outcome(situation: Situation, scaled: ScaledObject, curve: Curve) -> tuple[Cost, Range | None]:
    cost = Cost(curve.pod_minutes, curve.flips, curve.peak_lag, worst_age(curve, situation.arrivals))
    if situation.end > RANGE_S:
        return cost, None
    curves = [curve, *(simulate(one, scaled) for one in islice(at_points(situation), 1, None))]
    minutes, flips = [one.pod_minutes for one in curves], [one.flips for one in curves]
    return cost, Range((min(minutes), max(minutes)), (min(flips), max(flips)))


def _known(points: Sequence[Point], until: float) -> Cost:
    """What the group did."""
    ends = [*(one.t for one in points[1:]), until]
    minutes = sum(one.replicas * (end - one.t) for one, end in zip(points, ends, strict=True)) / 60
    ups = [other.replicas > one.replicas for one, other in pairwise(points) if one.replicas != other.replicas]
    return Cost(minutes, count_flips(ups), max(one.lag for one in points), None)
