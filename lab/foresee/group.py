"""A consumer group as a fluid: backlog by partition, served by the pods that own the partitions; for many policies at once.

Arrays are policies x partitions. Within a step rates are constant, so a step may last as long as nothing happens, and 10,000
partitions cost one vector operation, not 10,000. :mod:`lab.foresee.rebalance` says how a group rebalances.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
NOBODY = -1


@dataclass(frozen=True)
class Consumers:
    """The pods of a workload. Times in s.

    ``rate``: messages/s that a pod processes at most. ``start_s``: from the decision until the new pods join the group;
    ``start_each_s``: the further delay of each next pod, one decision's after the other's, where starting pods share cores.
    ``stop_s``: from the decision until a leaving pod has left. ``notice_s``: the first round of a rebalance, until every member
    knows of it (by its heartbeat) and has rejoined. ``round_s``: a round that follows at once. ``join_each_s``: a round that
    many members join takes at least so long for each of them. ``in_flight_s``: the lag that a group shows which keeps up, as a
    time: messages in processing or not committed yet.
    """

    rate: float
    start_s: float
    balancer: str = "cooperative-sticky"
    start_each_s: float = 0.0
    stop_s: float = 1.0
    notice_s: float = 0.5
    round_s: float = 1.0
    join_each_s: float = 0.0
    in_flight_s: float = 0.3


class Group:
    """The state of as many groups as there are policies, on topics whose partitions get ``shares`` of the traffic."""

    def __init__(self, consumers: Consumers, shares: Floats, policies: int) -> None:
        self._consumers, self._shares = consumers, shares
        size = (policies, len(shares))
        self.backlog: Floats = np.zeros(size)
        self.processed: Floats = np.zeros(size)
        self.owner: Ints = np.full(size, NOBODY, dtype=np.int64)
        self._throughput: Floats = np.zeros(policies)

    @property
    def lags(self) -> Floats:
        """Lag by policy and partition, messages, as committed offsets show it: backlog and messages in flight."""
        flying = self._shares * (self._throughput * self._consumers.in_flight_s)[:, None]
        return np.floor(self.backlog + flying)

    def ends(self, policy: int) -> Floats:
        """The log's end by partition in the group of one policy, messages."""
        ends: Floats = np.floor(self.processed[policy] + self.backlog[policy])
        return ends

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
        self._throughput = served.sum(axis=1) / seconds
