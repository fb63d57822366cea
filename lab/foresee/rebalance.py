"""How a group rebalances, by protocol: the owner of each partition, and the time without an owner. Times in s.

A round of the classic protocol ends when every member knows of it and has rejoined. An eager group stands still until then. A
cooperative group keeps working: its round revokes the partitions that must move, and another round assigns them. A KIP-848
group has no barrier: each partition that moves is revoked and assigned by itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from lab.foresee.group import NOBODY, Consumers, Ints

EAGER, WITHOUT_BARRIER = "range", "consumer"


class Rebalance:
    """The membership of one group.

    ``owner`` is its row of owners, which is changed in place. Members count from 0, and the member with the highest number
    leaves first.
    """

    def __init__(self, consumers: Consumers, owner: Ints, members: int) -> None:
        self._consumers, self._owner = consumers, owner
        self._begun = self._least = 0.0
        self._joins = 0
        self.members = members
        self.ends: float | None = None
        owner[:] = assigned(owner, members)

    @property
    def working(self) -> int:
        """Members that own a partition."""
        return int(np.count_nonzero(np.bincount(self._owner[self._owner != NOBODY])))

    def resize(self, at: float, members: int) -> None:
        """Members have joined or left: a round begins, or the current round includes them."""
        if self._consumers.balancer == EAGER:
            self._owner[:] = NOBODY
        self._owner[self._owner >= members] = NOBODY
        if self.ends is None:
            self._begin(at, self._consumers.notice_s)
        self._joins += max(0, members - self.members)
        self.members = members
        if self._consumers.balancer == WITHOUT_BARRIER:
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
    """The owner of each partition after a sticky assignment to ``members`` pods, starting from ``owners``.

    Every pod ends with floor or ceil of partitions / members, and the pods that had more keep the larger number. No more
    partitions move than must, and each that moves goes to the pod that has the fewest by then.
    """
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
