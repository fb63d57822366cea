"""The outcomes of simulated variants (cost, lateness, flips), their front, and the one that is recommended, with reasons.

A variant is chosen by its worst over the points of the HPA's sync: what holds at one of them alone is luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from itertools import islice
from typing import Any

from lab.foresee import variants
from lab.foresee.curve import late, worst_age
from lab.foresee.simulate import simulate_many
from lab.foresee.situation import Situation, points
from lab.foresee.variants import HEADROOM, Changes, Variant, computed_threshold
from lab.inputs.scaledobject import ScaledObject

Each = Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]]  # map, or that of a pool of processes


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


FIGURES = tuple(field.name for field in fields(Outcome) if field.name != "variant")


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


def worst(found: Sequence[Outcome]) -> Outcome:
    """The greatest of each figure over outcomes of one variant."""
    return replace(found[0], **{name: max(getattr(one, name) for one in found) for name in FIGURES})


def worst_outcome(situation: Situation, variant: Variant, objective_s: float) -> Outcome:
    """The worst of ``variant`` over the points of the HPA's sync, simulated alone, exactly."""
    return worst([outcome(point, variant, objective_s) for point in points(situation)])


def at_worst(situation: Situation, found: Sequence[Outcome], objective_s: float, each: Each = map) -> list[Outcome]:
    """``found``, which are of the first point of the HPA's sync, at their worst over all points: a pass for each other one."""
    one_pass = partial(outcomes, variants=[one.variant for one in found], objective_s=objective_s)
    others = each(one_pass, islice(points(situation), 1, None))
    return [worst(one) for one in zip(found, *others, strict=True)]


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
LIKELY = 80  # variants that are simulated at the other points too
SHORT = 20  # of them that are simulated again, alone: many at once are rounded, which ranks them but does not time them


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
    """The given and the recommended outcome, the ``front`` of the equally steady ones, and why: as a whole and by change.

    Outcomes are the worst over the points of the HPA's sync. ``others`` are further variants as steady, the simplest first.
    """

    given: Outcome
    chosen: Outcome
    front: tuple[Outcome, ...]
    why: str
    reasons: tuple[Reason, ...]
    others: tuple[Variant, ...]


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


def likely(found: Sequence[Outcome]) -> list[Outcome]:
    """The steady ones of ``found`` that may be the best at their worst: the best, single changes, and some of each kind."""
    best, calm = ordered(found), steady(found)
    single = [one for one in calm if len(one.variant.changes) <= 1]
    part = LIKELY // 4
    chosen = (*best[:part], *single[:part], *_some(best, part), *_some(front(calm), part))
    return list({id(one.variant): one for one in chosen}.values())


def shortlist(found: Sequence[Outcome]) -> list[Variant]:
    """The variants worth simulating alone: the best first, then the front, at most SHORT in all."""
    best = ordered(found)[: SHORT // 2]
    chosen = {id(one.variant): one.variant for one in (*best, *_some(front(steady(found)), SHORT - len(best)))}
    return list(chosen.values())


def _some(found: Sequence[Outcome], most: int) -> Sequence[Outcome]:
    """At most so many of ``found``, evenly spread."""
    return found[:: max(1, math.ceil(len(found) / most))]


def recommend(
    situation: Situation, scaled: ScaledObject, found: Sequence[Outcome], objective_s: float, each: Each = map
) -> Recommendation:
    """Choose among ``found``, the outcomes of many at the first point of the HPA's sync, by their worst over all, and say why.

    Each change that brings nothing is undone. ``each`` is a map, maybe over processes.
    """

    def alone(tried: Iterable[Variant]) -> list[Outcome]:
        return list(each(partial(worst_outcome, situation, objective_s=objective_s), tried))

    several = at_worst(situation, likely(found), objective_s, each)
    short = [one for one in shortlist(several) if one.changes]
    given, *others = alone([variants.with_changes(scaled, {}), *short])
    tried = [given, *others]
    least = min(one.late_s for one in steady(tried))
    chosen, without = _needed(scaled, ordered(tried), alone)
    flipping = f"; all flip, {chosen.flips} times at least" if chosen.flips else ""
    why = (
        f"behind by more than {objective_s:g} s for {chosen.late_s:.1f} s, where the least of {len(found):,} policies is "
        f"{least:.1f} s and {tolerance(least):.1f} s more count as the same; of those the cheapest, to {AS_DEAR:.0%} of the "
        f"pod-minutes, and then the one with the fewest changes{flipping}"
    )
    reasons = _reasons(situation, scaled, chosen, without, objective_s)
    single = sorted((one for one in steady(several) if len(one.variant.changes) == 1), key=lambda one: one.pod_minutes)
    further = (*(one.variant for one in single), *(one for one in short if len(one.changes) > 1))
    along = tuple(front(steady([*tried, chosen])))
    return Recommendation(given, chosen, along, why, reasons, further)


def instead(
    advice: Recommendation,
    variant: Variant,
    why: str,
    situation: Situation,
    scaled: ScaledObject,
    objective_s: float,
    each: Each = map,
) -> Recommendation:
    """``advice`` with ``variant`` in the place of the recommended one, for the reason ``why``."""
    tried = [variant, *_undone(scaled, variant.changes)]
    chosen, *others = each(partial(worst_outcome, situation, objective_s=objective_s), tried)
    without = dict(zip(variant.changes, others, strict=True))
    return replace(advice, chosen=chosen, why=why, reasons=_reasons(situation, scaled, chosen, without, objective_s))


def _dearest(found: Iterable[Outcome]) -> float:
    """The most pod-minutes that still count as equally cheap."""
    return min(one.pod_minutes for one in found) * (1 + AS_DEAR)


def _needed(
    scaled: ScaledObject, best: Sequence[Outcome], alone: Callable[[Iterable[Variant]], list[Outcome]]
) -> tuple[Outcome, dict[str, Outcome]]:
    """The first of ``best`` without changes that bring nothing within its tolerances, and its outcome without each other."""
    chosen, dearest = best[0], _dearest(best)
    least = min(one.late_s for one in best)
    while True:
        changes = chosen.variant.changes
        without = dict(zip(changes, alone(_undone(scaled, changes)), strict=True))
        as_good = [one for one in without.values() if one.flips <= best[0].flips and one.pod_minutes <= dearest]
        idle = [one for one in as_good if one.late_s <= least + tolerance(least)]
        if not idle:
            return chosen, without
        chosen = min(idle, key=lambda one: (one.pod_minutes, one.late_s))


def _undone(scaled: ScaledObject, changes: Changes) -> Iterator[Variant]:
    """``scaled`` with all of ``changes`` but one, for each of them."""
    for field in changes:
        yield variants.with_changes(scaled, {name: value for name, value in changes.items() if name != field})


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
