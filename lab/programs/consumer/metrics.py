"""The consumer's metrics."""

from __future__ import annotations

import threading
import time
from collections import deque

from prometheus_client import Counter, Gauge, Histogram

RATE_WINDOW_S = 1.0


class Metrics:
    """The metrics of one consumer, by the names that docs, boards and records use."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self._lock = threading.Lock()
        self.processed = Counter("messages_processed", "Messages whose receipt is durable")
        self.inflight = Gauge("inflight", "Messages taken and not yet processed")
        self.assigned = Gauge("assigned_partitions", "Partitions this member owns")
        self.rebalances = Counter("rebalances", "Rebalances this member took part in")
        self.rebalance_duration = Histogram(
            "rebalance_duration_seconds",
            "From subscribing, or from what it took first, to its assignment; not counted where neither was seen",
            buckets=(0.005, 0.01, 0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 10, 30),
        )
        self.failed = Counter("messages_failed", "Attempts at a message that failed")
        self.recovered = Counter("messages_recovered", "Messages that failed and succeeded in a retry")
        self.dead_lettered = Counter("messages_dead_lettered", "Messages given up, durable in the dead-letter topic")
        self.retrying = Gauge("retrying_partitions", "Partitions that stand still while their head is retried")
        self.commits = Counter("commits", "Offset commits", ["outcome"])
        self.batch_duration = Histogram("batch_duration_seconds", "From fetch to durable receipt")
        Gauge("consume_rate", "Messages/s processed over the last second").set_function(self.rate)

    def done(self, count: int, seconds: float) -> None:
        """Count a processed batch."""
        self.processed.inc(count)
        self.batch_duration.observe(seconds)
        with self._lock:
            self._recent.append((time.monotonic(), count))
            self._forget()

    def rate(self) -> float:
        """Return the messages/s over the last second."""
        with self._lock:
            self._forget()
            return sum(count for _, count in self._recent) / RATE_WINDOW_S

    def _forget(self) -> None:
        horizon = time.monotonic() - RATE_WINDOW_S
        while self._recent and self._recent[0][0] < horizon:
            self._recent.popleft()
