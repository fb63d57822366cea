"""Brokers of a trial's own: how many, how often they keep its topic, and the events that kill and start them. Pure.

A trial without this input runs on the cluster's one broker. With it the trial starts its brokers and ends them: a broker that
is lost for good must not be lost for the next trial.
"""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import InputError
from lab.inputs.events import Context, Event

LEADER, COORDINATOR = ROLES = ("leader", "coordinator")
KEPT, LOST = DISKS = ("kept", "lost")
LEAST, MOST = 3, 5  # a majority of three survives one; each takes 0.4 GB of memory on one machine


@dataclass(frozen=True)
class Brokers:
    """``count`` nodes, each a broker and a controller; the trial's topic has ``replication`` copies of each partition.

    A write with acks=all is acknowledged when ``min_insync`` copies have it. The lab's own topics (receipts, reports, dead
    letters) and the group's offsets always have three copies, two of them in sync: what they say of the trial must not be lost.
    """

    count: int = 3
    replication: int = 3
    min_insync: int = 2

    def check(self, where: object = "trial") -> None:
        """Raise :class:`InputError` for the first field that Kafka, or one machine, would refuse."""
        for name, least, most in (
            ("count", LEAST, MOST),
            ("replication", 1, self.count),
            ("min_insync", 1, self.replication),
        ):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InputError(where, f"brokers.{name}", value, f"{least} to {most}")

    @property
    def spare(self) -> int:
        """How many may be down while the others still agree: the controllers need a majority."""
        return (self.count - 1) // 2


@dataclass(frozen=True)
class KillBroker(Event):
    """SIGKILL a broker: the leader of most of the topic's partitions, or the coordinator of the group.

    With ``disk`` "lost" its copies of the topic's partitions are deleted too, as if a new disk took the place of the old one.
    Without a :class:`StartBrokers` in a later phase the broker is lost for good.
    """

    role: str = LEADER
    disk: str = KEPT

    def refusal(self, context: Context) -> str:
        """A trial has brokers of its own, and a majority of them goes on."""
        if context.brokers is None:
            return "a trial with brokers of its own: brokers=Brokers()"
        if self.role not in ROLES or self.disk not in DISKS:
            return f"role {' or '.join(ROLES)}, disk {' or '.join(DISKS)}"
        if down(context.earlier) >= context.brokers.spare:
            return (
                f"at most {context.brokers.spare} of {context.brokers.count} brokers down: StartBrokers() in an earlier phase"
            )
        return ""


@dataclass(frozen=True)
class StartBrokers(Event):
    """Start every broker that was killed, and wait until each copy of each partition is in sync again."""

    def refusal(self, context: Context) -> str:
        """There must be something to start."""
        return "" if down(context.earlier) else "a KillBroker in an earlier phase"


def down(events: tuple[Event, ...]) -> int:
    """How many brokers are down after ``events``."""
    count = 0
    for event in events:
        count = 0 if isinstance(event, StartBrokers) else count + isinstance(event, KillBroker)
    return count
