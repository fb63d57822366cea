"""The outcomes of simulated variants (cost, lateness, flips), their front, and the one that is recommended, with reasons."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.foresee import variants
from lab.foresee.curve import late, worst_age
from lab.foresee.simulate import simulate_many
from lab.foresee.situation import Situation
from lab.foresee.variants import HEADROOM, Variant, computed_threshold
from lab.inputs.scaledobject import ScaledObject


@dataclass(frozen=True)
class Outcome:
    """Times in s, lag in messages. ``late_s``: how long the group is behind by more than the objective."""

    variant: Variant
    late_s: float
    pod_minutes: float
    flips: int
    worst_age_s: float
    peak_lag: float
    most_replicas: int
    scale_events: int


def outcomes(situation: Situation, variants: Sequence[Variant], objective_s: float) -> list[Outcome]:
    """Simulate ``variants`` in one pass, which rounds the events between syncs; one alone is simulated exactly."""
    arrivals = situation.arrivals
    return [
        Outcome(
            variant=variant,
            late_s=late(curve, arrivals, objective_s),
            pod_minutes=curve.pod_minutes,
            flips=curve.flips,
            worst_age_s=worst_age(curve, arrivals),
            peak_lag=curve.peak_lag,
            most_replicas=int(curve.replicas.max()),
            scale_events=len(curve.changes),
        )
        for variant, curve in zip(variants, simulate_many(situation, [one.scaled for one in variants]), strict=True)
    ]


def outcome(situation: Situation, variant: Variant, objective_s: float) -> Outcome:
    """Simulate ``variant`` alone, exactly."""
    return outcomes(situation, [variant], objective_s)[0]


def steady(found: Sequence[Outcome]) -> list[Outcome]:
    """The outcomes with the fewest flips: none, unless each of them flips."""
    fewest = min(one.flips for one in found)
    return [one for one in found if one.flips == fewest]


def front(found: Iterable[Outcome]) -> list[Outcome]:
    """The outcomes that no other beats, by rising pod-minutes; of equal ones the outcome with the fewest changed fields."""
    best: list[Outcome] = []
    for one in sorted(found, key=lambda one: (one.pod_minutes, one.late_s, len(one.variant.changes))):
        if not best or one.late_s < best[-1].late_s:
            best.append(one)
    return best


AS_LATE, LEAST_S = 0.05, 1.0  # variants within 5 % or 1 s of the lowest lateness count as equally late
AS_DEAR = 0.05  # variants within 5 % of the lowest pod-minutes count as equally dear: the error of a prediction
SHORT = 40  # variants that are simulated again, alone: many at once are rounded, which ranks them but does not time them


@dataclass(frozen=True)
class Reason:
    """A changed field, its old and its new value, and the outcome of the recommendation with the old value."""

    field: str
    before: str
    after: str
    why: str

    def __str__(self) -> str:
        return f"{self.field} {self.before} -> {self.after}: {self.why}"


@dataclass(frozen=True)
class Recommendation:
    """The given and the recommended outcome, the ``front`` of the equally steady ones, and why: as a whole and by change."""

    given: Outcome
    chosen: Outcome
    front: tuple[Outcome, ...]
    why: str
    reasons: tuple[Reason, ...]


def tolerance(best_s: float) -> float:
    """The seconds above ``best_s`` that still count as equally late."""
    return max(AS_LATE * best_s, LEAST_S)


def ordered(found: Sequence[Outcome]) -> list[Outcome]:
    """The steadiest variants with the least lateness, best first: the cheapest, and of equally dear ones the fewest changes."""
    calm = steady(found)
    best = min(one.late_s for one in calm)
    as_late = [one for one in calm if one.late_s <= best + tolerance(best)]
    as_late.sort(key=lambda one: (one.pod_minutes, len(one.variant.changes), one.late_s))
    cheap = _dearest(as_late)
    equal = [one for one in as_late if one.pod_minutes <= cheap]
    dearer = as_late[len(equal) :]
    return sorted(equal, key=lambda one: (len(one.variant.changes), one.pod_minutes, one.late_s)) + dearer


def shortlist(found: Sequence[Outcome]) -> list[Variant]:
    """The variants worth simulating alone: the best first, then the front, at most SHORT in all."""
    best, along = ordered(found)[: SHORT // 2], front(steady(found))
    apart = max(1, math.ceil(len(along) / (SHORT - len(best))))
    chosen = {id(one.variant): one.variant for one in (*best, *along[::apart])}
    return list(chosen.values())


def recommend(situation: Situation, scaled: ScaledObject, found: Sequence[Outcome], objective_s: float) -> Recommendation:
    """Choose among ``found``, the outcomes of many, and say why. Each change that brings nothing is undone."""
    given = outcome(situation, variants.with_changes(scaled, {}), objective_s)
    alone = [given, *(outcome(situation, one, objective_s) for one in shortlist(found) if one.changes)]
    least = min(one.late_s for one in steady(alone))
    chosen, without = _needed(situation, scaled, ordered(alone), objective_s)
    calm = steady([*alone, chosen])
    flipping = f"; all flip, {chosen.flips} times at least" if chosen.flips else ""
    why = (
        f"behind by more than {objective_s:g} s for {chosen.late_s:.1f} s, where the least of {len(found):,} policies is "
        f"{least:.1f} s and {tolerance(least):.1f} s more count as the same; of those the cheapest, to {AS_DEAR:.0%} of the "
        f"pod-minutes, and then the one with the fewest changes{flipping}"
    )
    reasons = _reasons(situation, scaled, chosen, without, objective_s)
    return Recommendation(given, chosen, tuple(front(calm)), why, reasons)


def _dearest(found: Iterable[Outcome]) -> float:
    """The most pod-minutes that still count as equally cheap."""
    return min(one.pod_minutes for one in found) * (1 + AS_DEAR)


def _needed(
    situation: Situation, scaled: ScaledObject, best: Sequence[Outcome], objective_s: float
) -> tuple[Outcome, dict[str, Outcome]]:
    """The first of ``best`` without changes that bring nothing within its tolerances, and its outcome without each other."""
    chosen, dearest = best[0], _dearest(best)
    least = min(one.late_s for one in best)
    while True:
        without, changes = {}, chosen.variant.changes
        for field in changes:
            rest = {name: value for name, value in changes.items() if name != field}
            without[field] = outcome(situation, variants.with_changes(scaled, rest), objective_s)
        as_good = [one for one in without.values() if one.flips <= best[0].flips and one.pod_minutes <= dearest]
        idle = [one for one in as_good if one.late_s <= least + tolerance(least)]
        if not idle:
            return chosen, without
        chosen = min(idle, key=lambda one: (one.pod_minutes, one.late_s))


def _reasons(
    situation: Situation, scaled: ScaledObject, chosen: Outcome, without: dict[str, Outcome], objective_s: float
) -> tuple[Reason, ...]:
    given = variants.in_force(scaled)
    found = []
    for field, value in chosen.variant.changes.items():
        why = f"with {variants.text_of(given[field])} {_difference(without[field], chosen)}"
        if field == variants.SECONDS:
            why += f" (objective x 0.75 = {objective_s:g} s x 0.75 = {objective_s * HEADROOM:g} s)"
        if field == variants.THRESHOLD:
            rate = situation.consumers.rate
            factors = f"{rate:g}/s x {objective_s:g} s x 0.75 = {computed_threshold(rate, objective_s)}"
            why += f" (rate of a pod x objective x 0.75 = {factors})"
        found.append(Reason(field, variants.text_of(given[field]), variants.text_of(value), why))
    return tuple(found)


def _difference(one: Outcome, chosen: Outcome) -> str:
    """The difference of ``one`` from ``chosen``, in words."""
    parts = []
    if one.flips != chosen.flips:
        parts.append(f"flips are {one.flips} instead of {chosen.flips}")
    later, dearer = one.late_s - chosen.late_s, one.pod_minutes - chosen.pod_minutes
    if abs(later) >= 0.05:
        parts.append(f"the group is behind for {abs(later):.1f} s {'more' if later > 0 else 'less'}")
    if abs(dearer) >= 0.05:
        parts.append(f"it takes {abs(dearer):.1f} pod-minutes {'more' if dearer > 0 else 'fewer'}")
    return ", ".join(parts) or "nothing is different"
