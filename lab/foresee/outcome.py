"""The outcome of one simulated variant: its cost, how late and how restless it is; and the front of all variants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from lab.foresee.curve import Curve
from lab.foresee.fields import Variant
from lab.foresee.lateness import Arrivals, late, worst_age
from lab.foresee.simulate import Situation, simulate, simulate_many


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

    def beats(self, other: Outcome) -> bool:
        """Whether it is no later and no dearer than the other, and not equal in both: Pareto's dominance."""
        ours, theirs = (self.late_s, self.pod_minutes), (other.late_s, other.pod_minutes)
        return ours != theirs and ours[0] <= theirs[0] and ours[1] <= theirs[1]


def outcomes(situation: Situation, variants: Sequence[Variant], objective_s: float) -> list[Outcome]:
    """Simulate ``variants`` in one pass, which rounds the events between syncs."""
    arrivals = Arrivals(situation.profile, situation.tail_s)
    curves = simulate_many(situation, [variant.scaled for variant in variants])
    return [_outcome(variant, curve, arrivals, objective_s) for variant, curve in zip(variants, curves, strict=True)]


def outcome(situation: Situation, variant: Variant, objective_s: float) -> Outcome:
    """Simulate ``variant`` alone, exactly."""
    arrivals = Arrivals(situation.profile, situation.tail_s)
    return _outcome(variant, simulate(situation, variant.scaled), arrivals, objective_s)


def _outcome(variant: Variant, curve: Curve, arrivals: Arrivals, objective_s: float) -> Outcome:
    return Outcome(
        variant=variant,
        late_s=late(curve, arrivals, objective_s),
        pod_minutes=curve.pod_minutes,
        flips=curve.flips,
        worst_age_s=worst_age(curve, arrivals),
        peak_lag=curve.peak_lag,
        most_replicas=int(curve.replicas.max()),
        scale_events=len(curve.changes),
    )


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
