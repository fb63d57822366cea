"""What was seen of a consumer that was taken through its life."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from lab.inputs.clients import Demand

# The stages, in order. What is waited for in each:
JOIN = "one member owns all partitions"
COMMIT = "each partition has a commit"
SHARE = "three members own all partitions"
LEAVE = "one member owns all partitions again"  # two were sent SIGTERM
FINISH = "all is committed"  # nothing more came
TAKE_OVER = "another member owns all partitions"  # the one was killed, and a new one started
RECOVER = "all is committed again"
AT_REST = (JOIN, SHARE, LEAVE)  # stages after which what members report is compared with what is seen
LEAST = 0.001  # of CPU: the kernel counts it in steps of 10 ms

Owned = Mapping[str, frozenset[int]]  # partitions by pod


@dataclass(frozen=True)
class Wait:
    """How long it took, s; None where it was not so within ``limit_s``."""

    seconds: float | None
    limit_s: float


@dataclass(frozen=True)
class Stop:
    """A process that was sent SIGTERM: it ended after ``seconds`` with ``code``; both None where it did not in its grace."""

    seconds: float | None
    code: int | None


class Used(NamedTuple):
    """CPU, s, that processes had used ``at`` a time, monotonic s, and the bytes that they had resident."""

    at: float
    cpu_s: float
    resident: int


def demand(joined: Used | None, later: Used | None) -> Demand | None:
    """What a pod takes, by what it had used when it had ``joined`` and ``later``; None where either is not known."""
    if joined is None or later is None:
        return None
    at_work = (later.cpu_s - joined.cpu_s) / (later.at - joined.at)
    return Demand(max(at_work, LEAST), later.resident, joined.resident, max(joined.cpu_s, LEAST), start_more_s=0.0)


@dataclass
class Seen:
    """The life of a consumer of ``group`` on ``partitions`` of ``topic``, from ``began`` to ``over`` (epoch s).

    ``waits`` has each stage that was tried. ``left`` is how many messages of a partition were not committed when FINISH or
    RECOVER was given up. ``stops`` are those of processes that were sent SIGTERM, whose grace was ``grace_s``.

    ``groups`` are other groups that had members, ``elsewhere`` other topics that its members read, ``strangers`` the names of
    members that are no pod's. ``ended`` says which process ended by itself, and how; ``last_words`` is the last line that any
    wrote. ``commits`` are (time, offset) of each partition while messages came, ``committed`` the offsets when all was over.
    ``told`` has what its ``reports`` say that each pod owned after each stage of AT_REST. ``ahead`` are (partition, committed
    offset, offset that receipts had come to) where more was committed than had a receipt. ``checks`` are the CRC-32 of what was
    sent, by partition and offset. Kafka asked for a ``login``, or did not. One was ``killed`` then, epoch s. ``demand`` is what
    one takes with a share of the traffic, None where it was not seen.
    """

    group: str
    topic: str
    partitions: int
    grace_s: float
    began: float = 0.0
    over: float = 0.0
    waits: dict[str, Wait] = field(default_factory=dict)
    left: dict[str, dict[int, int]] = field(default_factory=dict)
    stops: list[Stop] = field(default_factory=list)
    groups: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    strangers: tuple[str, ...] = ()
    ended: str = ""
    last_words: str = ""
    commits: dict[int, list[tuple[float, int]]] = field(default_factory=dict)
    committed: dict[int, int] = field(default_factory=dict)
    reports: int = 0
    bad_report: str = ""
    told: dict[str, Owned] = field(default_factory=dict)
    receipts: list[dict[str, Any]] = field(default_factory=list)
    bad_receipt: str = ""
    ahead: list[tuple[int, int, int]] = field(default_factory=list)
    checks: dict[tuple[int, int], int] = field(default_factory=dict)
    login: bool = False
    killed: float = math.inf
    demand: Demand | None = None

    def took(self, stage: str) -> float | None:
        """How long ``stage`` took, s; None where it was not reached or not tried."""
        return self.waits[stage].seconds if stage in self.waits else None
