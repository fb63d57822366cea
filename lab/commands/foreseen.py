"""What a simulation says: figures, and the objectives it holds or breaches. Pure. Times in s, real; lag in messages."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lab.commands.situation import Question
from lab.errors import NoData, known
from lab.foresee.curve import Curve
from lab.foresee.lateness import Arrivals, late, worst_age
from lab.foresee.sources import only
from lab.judge import objective
from lab.judge.claim import Verdict
from lab.judge.objective import Objective
from lab.spec.profile import BASELINE, RELIEF
from lab.spec.triggers.external import PersistentLag


@dataclass(frozen=True)
class Foreseen:
    """Each of FIGURES by name; None is no data, and ``missing`` says why."""

    figures: dict[str, float | None]
    missing: dict[str, str]


def foreseen(question: Question, curve: Curve) -> Foreseen:
    """Read the figures off ``curve``."""
    figures: dict[str, float | None] = {}
    missing: dict[str, str] = {}
    for name, figure in FIGURES.items():
        try:
            figures[name] = figure(question, curve)
        except NoData as nothing:
            figures[name], missing[name] = None, str(nothing)
    return Foreseen(figures, missing)


def verdicts(question: Question, found: Foreseen) -> list[Verdict]:
    """The objectives that a simulation can be held to, each with its verdict."""
    oldest = Objective("age of the oldest event at worst", "<=", question.objective_s, "s", "what --objective-s asks for")
    judged = (
        (objective.REACTION_REAL, "reaction_s"),
        (oldest, "worst_age_s"),
        (objective.FLIPS, "flips"),
        (objective.BASELINE, "above_floor_at_baseline"),
        (objective.FLOOR, "above_floor_at_end"),
        (objective.BEYOND, "beyond_partitions"),
    )
    return [one.judge(found.figures[name], found.missing.get(name, "")) for one, name in judged]


def _spike(question: Question) -> float:
    """When the traffic first left its baseline, s."""
    phases = question.situation.profile.phases()
    found = next((start for start, _, phase in phases if phase != BASELINE), 0.0)
    if not found:
        raise NoData(f"the profile has no phase {BASELINE} that something follows")
    return found


def _reaction(question: Question, curve: Curve) -> float:
    """Seconds from the spike's start until one more pod is at work than before it."""
    spike = _spike(question)
    reacted = curve.working_from(int(curve.working[curve.t <= spike][-1]) + 1, spike)
    if reacted is None:
        raise NoData("no more pods were ever at work than before")
    return reacted - spike


def _drain(question: Question, curve: Curve) -> float:
    """Seconds from the last phase, drain or lull, until lag is at one lagThreshold."""
    begin, _, phase = question.situation.profile.phases()[-1]
    if phase not in RELIEF:
        raise NoData(f"the profile does not end in a phase {' or '.join(RELIEF)}")
    back = curve.back_at(_threshold(question), begin)
    if back is None:
        raise NoData("lag never came back to one lagThreshold")
    return back - begin


def _threshold(question: Question) -> int:
    """One lagThreshold, messages."""
    trigger = only(question.scaled)
    if isinstance(trigger, PersistentLag) and trigger.settings.rule.ages:
        raise NoData("lagSeconds is no lag in messages that a drain could end at")
    return known(question.scaled.lag_threshold, "lagThreshold in the policy")


def _above_floor_at_baseline(question: Question, curve: Curve) -> int:
    spike = _spike(question)
    rate = max(step.rate for step in question.situation.profile.steps if step.at < spike)
    return int(curve.replicas[curve.t < spike].max()) - _floor(question, rate)


def _above_floor_at_end(question: Question, curve: Curve) -> int:
    return int(curve.replicas[-1]) - _floor(question, question.situation.profile.steps[-1].rate)


def _floor(question: Question, rate: float) -> int:
    """minReplicaCount, where so many pods take ``rate`` messages/s: else a group that stands above it is right to."""
    floor = question.scaled.min_replicas
    if rate > floor * question.situation.consumers.rate:
        raise NoData(f"the floor of {floor} can't take {rate:g} messages/s")
    return floor


def _arrivals(question: Question) -> Arrivals:
    return Arrivals(question.situation.profile, question.situation.tail_s)


def _ups(curve: Curve) -> int:
    return sum(after > before for _, before, after in curve.changes)


FIGURES: dict[str, Callable[[Question, Curve], float]] = {
    "reaction_s": _reaction,
    "peak_lag": lambda question, curve: curve.peak_lag,
    "late_s": lambda question, curve: late(curve, _arrivals(question), question.objective_s),
    "worst_age_s": lambda question, curve: worst_age(curve, _arrivals(question)),
    "drain_s": _drain,
    "flips": lambda question, curve: curve.flips,
    "scale_ups": lambda question, curve: _ups(curve),
    "scale_downs": lambda question, curve: len(curve.changes) - _ups(curve),
    "pod_minutes": lambda question, curve: curve.pod_minutes,
    "most_replicas": lambda question, curve: int(curve.replicas.max()),
    "above_floor_at_baseline": _above_floor_at_baseline,
    "above_floor_at_end": _above_floor_at_end,
    "beyond_partitions": lambda question, curve: max(0, int(curve.replicas.max()) - len(question.situation.shares)),
}
