"""Brokers of a trial's own, started and ended with it: one that is lost for good must not be lost for the next trial. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import InputError

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
        for name, least, most in (("count", LEAST, MOST), ("replication", 1, self.count), ("min_insync", 1, self.replication)):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
                raise InputError(where, f"brokers.{name}", value, f"{least} to {most}")

    @property
    def spare(self) -> int:
        """How many may be down while the others still agree: the controllers need a majority."""
        return (self.count - 1) // 2
