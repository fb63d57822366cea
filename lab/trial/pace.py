"""How fast a group's log grows, how fast it is processed, and when its lag is gone if that goes on. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from lab.kafka.lag import PartitionLag
from lab.number_format import duration

WINDOW_S = 30.0  # shorter ones show the batches of commits
DRAINING = 1.05  # a group at rest commits now more, now less than what arrives, and its lag goes nowhere


@dataclass(frozen=True)
class Rates:
    """Messages/s that arrive, and that are committed; ``left_s``: until no ``lag`` is left, None if hardly more leave."""

    lag: int
    arriving: float
    committed: float
    left_s: float | None

    def __str__(self) -> str:
        text = f"lag {self.lag:,}, in {self.arriving:,.0f}/s, out {self.committed:,.0f}/s"
        return text if self.left_s is None else f"{text}, drained in {duration(self.left_s)}"


class Pace:
    """The readings of a group's lag over the last WINDOW_S."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int, int]] = deque()

    def read(self, now: float, parts: Iterable[PartitionLag]) -> Rates:
        """Take a reading at ``now``, s of any clock that only grows; returns the rates since the oldest that is kept."""
        known = [(part.end, part.end - part.lag) for part in parts]
        end, committed = (sum(one) for one in zip(*known, strict=True)) if known else (0, 0)
        self._readings.append((now, end, committed))
        while len(self._readings) > 2 and now - self._readings[0][0] > WINDOW_S:
            self._readings.popleft()
        begun, end_then, committed_then = self._readings[0]
        length = now - begun
        arriving, out = ((end - end_then) / length, (committed - committed_then) / length) if length > 0 else (0.0, 0.0)
        lag = end - committed
        return Rates(lag, arriving, out, lag / (out - arriving) if lag > 0 and out > DRAINING * arriving else None)
