"""What is in flight: taken by a pod and not committed yet, so that it counts as lag. As a time: x the rate it is messages.

By Little's law the messages in flight are the rate of arrivals x the time from a message's arrival to its commit. A pod takes
a poll's work, processes it and then commits, at most once in a commit interval. So a message waits for its poll's end, and then
from nothing to a whole interval: half of one on average. Pods that started together commit together: lag swings. Pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from lab.inputs.workload import Workload

CLIENTS_COMMIT_S = 5.0  # auto.commit.interval.ms as Kafka's own client and librdkafka have it


@dataclass(frozen=True)
class InFlight:
    """The traffic that is in flight, s: ``least_s`` just after a commit, ``most_s`` just before, ``mean_s`` over time."""

    commit_s: float
    poll_s: float = 0.0

    @classmethod
    def of(cls, workload: Workload, time: float = 1.0) -> Self:
        """That of pods of ``workload`` where a scale divides times by ``time``: a poll's work is not divided."""
        return cls(workload.commit_interval_at(time), max(workload.poll_ms, workload.batch_ms) / 1000)

    @property
    def least_s(self) -> float:
        """Just after a commit."""
        return self.poll_s

    @property
    def mean_s(self) -> float:
        """Over time."""
        return self.commit_s / 2 + self.poll_s

    @property
    def most_s(self) -> float:
        """Just before a commit."""
        return self.commit_s + self.poll_s
