"""The HPA controller's memory of one HPA between two syncs, in its own form: lists whose old entries are overwritten.

Times are whole nanoseconds, because the controller compares its clock exactly.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar

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
    """The memory of one HPA. A new HPA's is ``State()``; every decision returns the next one."""

    recommendations: tuple[Recommendation, ...] = ()
    ups: tuple[ScaleEvent, ...] = ()
    downs: tuple[ScaleEvent, ...] = ()


def nanoseconds(seconds: float) -> int:
    """``seconds`` on the controller's clock."""
    return round(seconds * 1e9)


def begun(state: State, replicas: int, now: int) -> State:
    """The first sync recommends the current replicas (``recordInitialRecommendation``)."""
    return state if state.recommendations else replace(state, recommendations=(Recommendation(replicas, now),))


def recommended(state: State, recommendation: Recommendation, free: int | None) -> State:
    """``state`` with ``recommendation`` in the slot ``free``, or at the end when there is none."""
    return replace(state, recommendations=_stored(state.recommendations, recommendation, free))


def scaled(state: State, before: int, after: int, now: int, longest_s: int) -> State:
    """``state`` with the change from ``before`` to ``after`` replicas (``storeScaleEvent``, ``markScaleEventsOutdated``).

    ``longest_s`` is the longest period of that direction's policies, s; older events give their slot away.
    """
    cutoff = now - longest_s * 10**9
    events = state.ups if after > before else state.downs
    marked = tuple(replace(event, outdated=True) if event.at < cutoff else event for event in events)
    free = max((index for index, event in enumerate(marked) if event.outdated), default=None)
    marked = _stored(marked, ScaleEvent(abs(after - before), now), free)
    return replace(state, ups=marked) if after > before else replace(state, downs=marked)


def changed(events: Iterable[ScaleEvent], now: int, period_s: int) -> int:
    """The change of replicas within the last ``period_s`` seconds (``getReplicasChangePerPeriod``)."""
    cutoff = now - period_s * 10**9
    return sum(event.change for event in events if event.at > cutoff)


def _stored(entries: tuple[Entry, ...], entry: Entry, free: int | None) -> tuple[Entry, ...]:
    return (*entries, entry) if free is None else (*entries[:free], entry, *entries[free + 1 :])
