"""The delays between the attempts at one message. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MOST_DELAYS = 20
MOST_DELAY_MS = 600_000


@dataclass(frozen=True)
class Backoff:
    """Delays between attempts, ms: the first after the first failure. There are as many retries as delays."""

    delays_ms: tuple[float, ...]
    jitter: float = 0.0  # a delay is drawn from (1 - jitter, 1 + jitter) times its length

    @staticmethod
    def parse(text: str) -> Backoff:
        """From ``1000,2000,4000``. Raises ``ValueError`` for no delay, more than 20, or one outside 0 to 600,000 ms."""
        delays = tuple(float(delay) for delay in text.split(","))
        if len(delays) > MOST_DELAYS or not all(0 <= delay <= MOST_DELAY_MS for delay in delays):
            raise ValueError(text)
        return Backoff(delays)

    def __str__(self) -> str:
        return ",".join(f"{delay:g}" for delay in self.delays_ms)

    def compressed(self, time: float) -> Backoff:
        """The same with every delay divided by ``time``."""
        return Backoff(tuple(delay / time for delay in self.delays_ms), self.jitter)

    def after_s(self, attempts: int, drawn: float) -> float:
        """The delay after ``attempts`` failures, s; the last one for ever after. ``drawn`` is from [-1, 1)."""
        return self.delays_ms[min(attempts, len(self.delays_ms)) - 1] / 1000 * (1 + self.jitter * drawn)
