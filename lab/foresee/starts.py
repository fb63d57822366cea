"""When the pods of one simulated group are ready, each at its own time. Times in s from the start.

Times are drawn by strata, so that no seed is needed: each next pod takes the quantile one golden section further on, so any few
in a row are spread evenly over all quantiles. ``draw`` is the share (0 to 1) that the first takes. Nodes are filled one after
the other, and emptied from the last: what is left on half-empty nodes is moved together, as Cluster Autoscaler does.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

from lab.foresee.group import Consumers
from lab.foresee.whole import GOLDEN
from lab.inputs.starts import Quantiles

DRAWS = (0.5, 0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9)  # shares that the first pod takes; the first of them is shown


def draws(consumers: Consumers) -> tuple[float, ...]:
    """The draws that tell how much luck there is in the starts of ``consumers``: one where all are alike."""
    vary = (consumers.starts and consumers.starts.vary) or (consumers.nodes and consumers.nodes.arrives.vary)
    return DRAWS if vary else DRAWS[:1]


def drawn(times: Quantiles, first: float) -> Iterator[float]:
    """One time after the other, endlessly, from the share ``first`` on."""
    if not times.vary:
        return itertools.repeat(times.median)
    return (times.at((first + number * GOLDEN) % 1.0) for number in itertools.count())


class Starts:
    """The pods of a group that begins with ``pods``, which are at work and have a place."""

    def __init__(self, consumers: Consumers, draw: float, pods: int) -> None:
        self._is, self._nodes = consumers, consumers.nodes
        self._each = drawn(consumers.starts or Quantiles(((0.5, consumers.start_s),)), draw)
        self._free = -math.inf  # when the cores that starting pods share are free
        self._arrivals: list[float] = []  # of each node that was asked for
        self._unneeded: list[float] = []  # since when each is empty; infinity for one with a pod
        if self._nodes:
            self._arrives = drawn(self._nodes.arrives, draw)
            self._fit(-math.inf, pods)

    def scale(self, now: float, before: int, after: int) -> list[float]:
        """When each pod is ready that a decision at ``now`` from ``before`` to ``after`` pods adds, in order of time."""
        self._fit(now, after)
        more = range(before, after)
        self._free = max(now, self._free) + len(more) * self._is.start_each_s
        return sorted(max(self._free, self._placed(number)) + next(self._each) for number in more)

    def _fit(self, now: float, pods: int) -> None:
        """Nodes that ``pods`` need are asked for, and those that were empty for long have gone."""
        if not self._nodes:
            return
        while self._unneeded and now - self._unneeded[-1] >= self._nodes.unneeded_s:
            self._unneeded.pop()
            self._arrivals.pop()
        needed = max(0, math.ceil((pods - self._nodes.room) / self._nodes.pods))
        self._arrivals += [now + next(self._arrives) for _ in range(needed - len(self._arrivals))]
        since = [min(now, at) for at in self._unneeded[needed:]]
        self._unneeded = [math.inf] * needed + since

    def _placed(self, number: int) -> float:
        """When there is room for the pod of this ``number``, from 0."""
        if not self._nodes or number < self._nodes.room:
            return -math.inf
        return self._arrivals[(number - self._nodes.room) // self._nodes.pods]
