"""One simulated policy: curves over time, and how late the group is. Times in s from the profile's start.

Lateness is the age of the oldest unprocessed event. Events are taken in the order of their arrival. With A(t) arrived by t and
lag(t) of them unprocessed, the oldest unprocessed event arrived when A passed A(t) - lag(t), and its age is
t - A^-1(A(t) - lag(t)). Rates are constant between the points of a curve, so A and A - lag are straight there and nothing is
rounded to a grid. It is the age of the whole group, of all partitions together; the hottest partition's may be higher.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lab.foresee.group import Floats, Ints
from lab.inputs.profile import Profile
from lab.inputs.scale import Scale
from lab.judge.aggregate import count_flips


@dataclass(frozen=True)
class Change:
    """A decision that changed the replicas asked for, and its reasons."""

    at: float
    before: int
    after: int
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class Curve:
    """Points in order of time: total lag (messages), replicas asked for, and pods at work, from each point on."""

    t: Floats
    lag: Floats
    replicas: Ints
    working: Ints
    log: tuple[Change, ...] = ()

    @property
    def changes(self) -> list[tuple[float, int, int]]:
        """(time, before, after) of every change of the replicas asked for."""
        at = np.flatnonzero(np.diff(self.replicas)) + 1
        return [(float(self.t[one]), int(self.replicas[one - 1]), int(self.replicas[one])) for one in at]

    @property
    def flips(self) -> int:
        """Scale-downs followed by a scale-up."""
        return count_flips(after > before for _, before, after in self.changes)

    @property
    def peak_lag(self) -> float:
        """The highest total lag, messages."""
        return float(self.lag.max())

    @property
    def pod_minutes(self) -> float:
        """Replicas asked for, over time."""
        return float((self.replicas[:-1] * np.diff(self.t)).sum() / 60)

    def at_real_time(self, scale: Scale) -> Curve:
        """What this curve, simulated at ``scale``, stands for: times as long, and messages as many."""
        log = tuple(replace(one, at=one.at * scale.time) for one in self.log)
        return replace(self, t=self.t * scale.time, lag=self.lag / scale.lag, log=log)

    def back_at(self, lag: float, begin: float = 0.0) -> float | None:
        """The first time from ``begin`` on at which total lag is at or below ``lag``; None if there is none."""
        later = self.t > begin
        t = np.concatenate(([begin], self.t[later]))
        values = np.concatenate(([np.interp(begin, self.t, self.lag)], self.lag[later]))
        below = np.flatnonzero(values <= lag)
        if not len(below):
            return None
        at = int(below[0])
        if at == 0:
            return begin
        return float(np.interp(lag, [values[at], values[at - 1]], [t[at], t[at - 1]]))

    def working_from(self, pods: int, begin: float = 0.0) -> float | None:
        """The first time from ``begin`` on at which at least ``pods`` pods are at work; None if there is none."""
        found = np.flatnonzero((self.t >= begin) & (self.working >= pods))
        return float(self.t[found[0]]) if len(found) else None


NOISE = 1e-6  # events: a smaller difference is a rounding of float64


class Arrivals:
    """The arrivals of a profile's events over time, and the inverse. The last step's rate goes on for ``tail_s``.

    A ``backlog`` of events counts as having arrived at 0 s.
    """

    def __init__(self, profile: Profile, tail_s: float = 0.0, backlog: float = 0.0) -> None:
        self.edges: Floats = np.array([*(step.at for step in profile.steps), profile.duration + tail_s])
        self.rates: Floats = np.array([step.rate for step in profile.steps])
        self.counts: Floats = backlog + np.concatenate(([0.0], np.cumsum(self.rates * np.diff(self.edges))))

    def by(self, times: Floats) -> Floats:
        """The events that have arrived by each of ``times``; none before 0."""
        return np.interp(times, self.edges, self.counts, left=0.0)

    def left(self, counts: Floats) -> Floats:
        """The first time with more than each of ``counts`` events, which may lack a rounding; else the end."""
        early = counts + NOISE < self.counts[0]  # of the backlog
        whole = self.counts[np.maximum(0, np.searchsorted(self.counts, counts + NOISE, side="right") - 1)]
        counts = np.maximum(counts, whole)
        step = np.searchsorted(self.counts, counts, side="right") - 1
        return np.where(early, self.edges[0], np.where(step >= len(self.rates), self.edges[-1], self._within(step, counts)))

    def reached(self, counts: Floats) -> Floats:
        """The first time with as many as each of ``counts`` events: before a pause, not after it."""
        return self._within(np.searchsorted(self.counts, counts, side="left") - 1, counts)

    def _within(self, step: Ints, counts: Floats) -> Floats:
        inside = np.clip(step, 0, len(self.rates) - 1)
        rates = self.rates[inside]
        missing = np.maximum(0.0, counts - self.counts[inside])
        found: Floats = self.edges[inside] + np.divide(missing, rates, out=np.zeros_like(counts), where=rates > 0)
        return found


def late(curve: Curve, arrivals: Arrivals, objective_s: float) -> float:
    """The seconds in which the oldest unprocessed event is older than ``objective_s``.

    At t it is when fewer events are processed than had arrived by t - objective_s; both are straight between their corners.
    """
    corners = np.append(arrivals.edges + objective_s, objective_s - NOISE)  # a backlog is late all at once
    begin, end = curve.t[0], curve.t[-1]
    times = np.union1d(curve.t, corners[(corners > begin) & (corners < end)])
    over = arrivals.by(times - objective_s) - np.interp(times, curve.t, _processed(curve, arrivals)) - NOISE
    part = np.maximum(over[:-1], 0) + np.maximum(over[1:], 0)
    whole = np.abs(over[:-1]) + np.abs(over[1:])
    return float((np.diff(times) * np.divide(part, whole, out=np.zeros_like(part), where=whole > 0)).sum())


def ages(curve: Curve, arrivals: Arrivals) -> tuple[Floats, Floats]:
    """(times, age of the oldest unprocessed event in s), at the curve's points and the corners between them."""
    times, counts = _corners(curve, arrivals)
    waits = counts < arrivals.by(times) - NOISE  # a count within a rounding of all arrivals is all of them
    return times, np.where(waits, np.maximum(0.0, times - arrivals.left(counts)), 0.0)


def worst_age(curve: Curve, arrivals: Arrivals) -> float:
    """The highest age that an unprocessed event reaches, s: at a corner just before it, for the next may be much younger."""
    times, counts = _corners(curve, arrivals)
    rises = np.flatnonzero(np.diff(counts) > NOISE) + 1
    before = times[rises] - arrivals.reached(np.maximum(0.0, counts[rises] - NOISE))  # on the near side of a pause
    return float(max(0.0, ages(curve, arrivals)[1].max(), before.max(initial=0.0)))


def _corners(curve: Curve, arrivals: Arrivals) -> tuple[Floats, Floats]:
    """The points at which the age may have a corner, maybe its peak: (times, events processed by then).

    Those are the curve's own, and where what is processed passes the count of a step's edge between two of them.
    """
    t, done, counts = curve.t, _processed(curve, arrivals), arrivals.counts
    found = [t]
    first = np.searchsorted(counts, np.minimum(done[:-1], done[1:]), side="right")
    last = np.searchsorted(counts, np.maximum(done[:-1], done[1:]), side="left")
    for at in np.flatnonzero(last > first):
        part = (counts[first[at] : last[at]] - done[at]) / (done[at + 1] - done[at])
        found.append(t[at] + part * (t[at + 1] - t[at]))
    times = np.unique(np.concatenate(found))
    return times, np.interp(times, t, done)


def _processed(curve: Curve, arrivals: Arrivals) -> Floats:
    """A(t) - lag(t) at the curve's points. It is never below 0, because lag in flight may be counted before its arrival."""
    return np.maximum(0.0, arrivals.by(curve.t) - curve.lag)
