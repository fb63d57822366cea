"""One simulated policy: curves over time, and figures read from them. Times in s from the profile's start."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from lab.foresee.group import Floats, Ints


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
        return flips(after > before for _, before, after in self.changes)

    @property
    def peak_lag(self) -> float:
        """The highest total lag, messages."""
        return float(self.lag.max())

    @property
    def pod_minutes(self) -> float:
        """Replicas asked for, over time."""
        return float((self.replicas[:-1] * np.diff(self.t)).sum() / 60)

    def back_at(self, lag: float, begin: float = 0.0) -> float | None:
        """The first time from ``begin`` on at which total lag is at or below ``lag``; None if there is none."""
        t, values = self._from(begin)
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

    def _from(self, begin: float) -> tuple[Floats, Floats]:
        """Times and lag from ``begin`` on, with a point at ``begin``."""
        later = self.t > begin
        t = np.concatenate(([begin], self.t[later]))
        return t, np.concatenate(([np.interp(begin, self.t, self.lag)], self.lag[later]))


def flips(ups: Iterable[bool]) -> int:
    """How many of a sequence of changes, each up or not, are a scale-up after a scale-down."""
    return sum(later and not earlier for earlier, later in pairwise(ups))
