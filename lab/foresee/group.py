"""A consumer group as a fluid: backlog by partition, served by the pods that own the partitions; for many policies at once.

Arrays are policies x partitions. Within a step rates are constant, so a step may last as long as nothing happens, and 10,000
partitions cost one vector operation, not 10,000. Times in s.

A rebalance gives each partition an owner, after a time without one. A round of the classic protocol ends when every member
knows of it and has rejoined. An eager group stands still until then. A cooperative group keeps working: its round revokes the
partitions that must move, and another round assigns them. A KIP-848 group has no barrier: each partition that moves is revoked
and assigned by itself.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from lab.foresee.usage import LONG_AGO, Footprint
from lab.inputs.consumer import Balancer
from lab.inputs.starts import Nodes, Quantiles

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Consumers:
    """The pods of a workload. Times in s.

    ``rate``: messages/s that a pod processes at most. ``start_s``: from the decision until the new pods join the group, the
    median where there are ``starts``; before that pods may wait for ``nodes``, None for room for all. ``start_each_s``: the
    further delay of each next pod, one decision's after the other's, where starting pods share cores.
    ``stop_s``: from the decision until a leaving pod has left. ``notice_s``: the first round of a rebalance, until every member
    knows of it (by its heartbeat) and has rejoined. ``round_s``: a round that follows at once. ``join_each_s``: a round that
    many members join takes at least so long for each of them. ``in_flight_s``: the lag that a group shows which keeps up, as a
    time: messages in processing or not committed yet. ``footprint`` is what a pod uses, None where that is not known.
    """

    rate: float
    start_s: float
    balancer: str = Balancer.COOPERATIVE_STICKY
    start_each_s: float = 0.0
    stop_s: float = 1.0
    notice_s: float = 0.5
    round_s: float = 1.0
    join_each_s: float = 0.0
    in_flight_s: float = 0.3
    footprint: Footprint | None = None
    starts: Quantiles | None = None
    nodes: Nodes | None = None


@dataclass(frozen=True)
class Seen:
    """One group at ``now``, as its scaler sees it. Arrays are messages by partition, and not whole (:mod:`lab.foresee.whole`);
    ``joined`` are the members' times, s."""

    now: float
    lags: Floats
    processed: Floats
    backlog: Floats
    joined: Sequence[float]

    @property
    def ends(self) -> Floats:
        """The log's end by partition, messages."""
        return self.processed + self.backlog


class Group:
    """The state of as many groups as there are policies, on topics whose partitions get ``shares`` of the traffic.

    ``read_s`` is the longest time for which :meth:`lags_with` is asked, s, where that is longer than what is in flight.
    """

    def __init__(self, consumers: Consumers, shares: Floats, policies: int, read_s: float = 0.0) -> None:
        self._consumers, self._shares = consumers, shares
        size = (policies, len(shares))
        self.backlog: Floats = np.zeros(size)
        self.processed: Floats = np.zeros(size)
        self.owner: Ints = np.full(size, NOBODY, dtype=np.int64)
        self._steps: deque[tuple[float, Floats]] = deque()  # each step's seconds and throughput, the last ``_longest_s``
        self._longest_s, self._known_s = max(consumers.in_flight_s, read_s), 0.0

    @property
    def lags(self) -> Floats:
        """Lag by policy and partition, messages and parts of messages: backlog, and what is not committed yet."""
        return self.lags_with(self._consumers.in_flight_s)

    def lags_with(self, in_flight_s: float) -> Floats:
        """:attr:`lags` where what was processed in the last ``in_flight_s`` is not committed yet.

        So a new throughput is all in flight once it has lasted as long. The first step's counts as that of before the start.
        """
        flying, left = np.zeros(len(self.backlog)), in_flight_s
        for seconds, throughput in reversed(self._steps):
            flying += throughput * min(left, seconds)
            left -= seconds
            if left <= 0:
                break
        else:
            flying += self._steps[0][1] * left if self._steps else 0.0
        return self.backlog + self._shares * flying[:, None]

    def step(self, seconds: float, rate: float) -> None:
        """Let ``seconds`` pass with ``rate`` messages/s arriving. A pod shares its rate evenly among its backlogs."""
        most = self._consumers.rate * seconds
        available = self.backlog + self._shares * (rate * seconds)
        wanted = np.where(self.owner == NOBODY, 0.0, np.minimum(available, most))
        pods = int(self.owner.max()) + 2  # the last slot of each policy belongs to no pod
        slots = np.where(self.owner == NOBODY, pods - 1, self.owner) + (np.arange(len(wanted)) * pods)[:, None]
        by_pod = np.bincount(slots.ravel(), wanted.ravel(), minlength=len(wanted) * pods)
        served = wanted * np.minimum(1.0, most / np.maximum(by_pod, 1e-9))[slots]
        self.backlog = available - served
        self.processed += served
        self._remember(seconds, served.sum(axis=1) / seconds)

    def _remember(self, seconds: float, throughput: Floats) -> None:
        """Keep the ``throughput`` of each policy in the step of ``seconds`` that is over."""
        self._steps.append((seconds, throughput))
        self._known_s += seconds
        while len(self._steps) > 1 and self._known_s - self._steps[0][0] >= self._longest_s:
            self._known_s -= self._steps.popleft()[0]


class Rebalance:
    """The membership of one group, whose row ``owner`` is changed in place. The member with the highest number leaves."""

    def __init__(self, consumers: Consumers, owner: Ints, members: int) -> None:
        self._consumers, self._owner = consumers, owner
        self._balancer = Balancer(consumers.balancer)
        self._begun = self._least = 0.0
        self._joins = 0
        self.joined = [LONG_AGO] * members
        self.ends: float | None = None
        owner[:] = assigned(owner, members)

    @property
    def members(self) -> int:
        """How many there are."""
        return len(self.joined)

    @property
    def working(self) -> int:
        """Members that own a partition."""
        return int(np.count_nonzero(np.bincount(self._owner[self._owner != NOBODY])))

    def resize(self, at: float, members: int) -> None:
        """Members have joined or left: a round begins, or the current round includes them."""
        if self._balancer.eager:
            self._owner[:] = NOBODY
        self._owner[self._owner >= members] = NOBODY
        if self.ends is None:
            self._begin(at, self._consumers.notice_s)
        came = max(0, members - self.members)
        self._joins += came
        self.joined = [*self.joined[:members], *([at] * came)]
        if not self._balancer.barrier:
            self._revoke(assigned(self._owner, members))
        self.ends = self._begun + max(self._least, self._joins * self._consumers.join_each_s)

    def round(self, at: float) -> None:
        """The round ends at ``at``: free partitions are assigned, and those that must move are revoked for the next round."""
        target = assigned(self._owner, self.members)
        free = self._owner == NOBODY
        revoked = self._revoke(target)
        self._owner[free] = target[free]
        self.ends = None
        if revoked:
            self._begin(at, self._consumers.round_s)
            self.ends = at + self._least

    def _begin(self, at: float, least: float) -> None:
        self._begun, self._least, self._joins = at, least, 0

    def _revoke(self, target: Ints) -> bool:
        moving = (self._owner != NOBODY) & (self._owner != target)
        self._owner[moving] = NOBODY
        return bool(moving.any())


def assigned(owners: Ints, members: int) -> Ints:
    """The owner of each partition after a sticky assignment to ``members`` pods, starting from ``owners``. Every pod ends with
    floor or ceil of partitions / members. No more move than must, each to the pod with the fewest."""
    partitions = len(owners)
    if members <= 0:
        return np.full(partitions, NOBODY, dtype=np.int64)
    kept = np.where((owners >= 0) & (owners < members), owners, members)
    quota = np.full(members, partitions // members, dtype=np.int64)
    had = np.bincount(kept, minlength=members + 1)
    quota[np.argsort(-had[:members], kind="stable")[: partitions % members]] += 1
    order = np.argsort(kept, kind="stable")
    ranked = kept[order]
    place = np.arange(partitions) - (np.cumsum(had) - had)[ranked]
    stays: npt.NDArray[np.bool_] = np.zeros(partitions, dtype=bool)
    stays[order] = (ranked < members) & (place < quota[np.minimum(ranked, members - 1)])
    keeps = np.bincount(owners[stays], minlength=members)
    wants = quota - keeps
    takes = np.repeat(np.arange(members), wants)
    level = np.arange(len(takes)) - (np.cumsum(wants) - wants)[takes] + keeps[takes]
    after = owners.copy()
    after[~stays] = takes[np.lexsort((takes, level))]
    return after


@dataclass(frozen=True)
class Part:
    """The partitions of the topic at ``place`` of ``topics``, or of all (None); ``only`` by number, None for all of them. The
    topics have ``sizes`` partitions; () for as many on each."""

    place: int | None = None
    topics: int = 1
    only: frozenset[int] | None = None
    sizes: tuple[int, ...] = ()

    def numbers(self, partitions: int) -> Ints:
        """Their numbers in a group that has so many ``partitions`` on all of its topics."""
        return _numbers(self, partitions)

    def of(self, values: Floats) -> Floats:
        """Those of the ``values`` by partition that count."""
        whole = self.only is None and (self.place is None or self.topics == 1)
        return values if whole else values[self.numbers(len(values))]


@functools.lru_cache(maxsize=64)
def _numbers(part: Part, partitions: int) -> Ints:
    sizes = part.sizes or (partitions // part.topics,) * part.topics
    first, each = (0, partitions) if part.place is None else (sum(sizes[: part.place]), sizes[part.place])
    own = range(each) if part.only is None else (number for number in sorted(part.only) if number < each)
    return np.fromiter(own, np.int64) + first
