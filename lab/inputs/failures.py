"""Failures that are injected, and the delays between the attempts at one message. Pure.

An attempt's failure is a function of (seed, seq), or of one named offset: the same function says which messages must be dead
letters. It takes numbers, or numpy arrays of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

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


_MASK = 0xFFFFFFFFFFFFFFFF
_STEP = 0x9E3779B97F4A7C15
_SHARES = 2.0**53  # what a double holds exactly

Word = Any  # an int below 2^64, or a numpy array of uint64, which multiplies modulo 2^64 by itself


def mixed(word: Word) -> Word:
    """64 well mixed bits of each 64-bit word. Source: the finalizer of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014)."""
    bits = (word ^ word >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return bits ^ bits >> 31


@dataclass(frozen=True)
class Place:
    """One message: a partition and an offset in it."""

    partition: int
    offset: int

    @staticmethod
    def parse(text: str) -> Place | None:
        """From ``3:1000``; None from "". Raises ``ValueError`` for anything else."""
        if not text:
            return None
        partition, _, offset = text.partition(":")
        if not (partition.isdecimal() and offset.isdecimal()):
            raise ValueError(text)
        return Place(int(partition), int(offset))


@dataclass(frozen=True)
class Failures:
    """What fails: shares of all messages (0 to 1) that fail at first and that never succeed, and one message by its place. A
    transient failure lasts for 1 to ``retries`` attempts, each number as likely, so the last retry succeeds at the latest."""

    seed: int = 0
    fail_rate: float = 0.0
    poison_rate: float = 0.0
    poison: Place | None = None
    retries: int = 3

    @property
    def any(self) -> bool:
        """Whether anything is injected at all."""
        return bool(self.fail_rate or self.poison_rate or self.poison)

    def never(self, partition: Any, offset: Any, seq: Word) -> Any:
        """Whether no attempt at the message succeeds: a poison message."""
        drawn = self._drawn(seq) < self.poison_rate * _SHARES
        if self.poison is None:
            return drawn
        return drawn | (partition == self.poison.partition) & (offset == self.poison.offset)

    def transient(self, seq: Word) -> Any:
        """How many attempts at the message fail before one succeeds, if it is no poison message; 0 for most."""
        drawn = self._drawn(seq)
        hit = (drawn >= self.poison_rate * _SHARES) & (drawn < (self.poison_rate + self.fail_rate) * _SHARES)
        return hit * (1 + mixed(self._word(seq) ^ _STEP) % self.retries)

    def fails(self, partition: int, offset: int, seq: int, attempt: int) -> bool:
        """Whether attempt number ``attempt`` (from 1) at the message fails."""
        return bool(self.never(partition, offset, seq)) or attempt <= self.transient(seq)

    def jitter(self, seq: int, attempt: int) -> float:
        """A number from [-1, 1) for the delay after ``attempt``."""
        return float(mixed((self._word(seq) + attempt * _STEP) & _MASK) / 2.0**63 - 1)

    def _word(self, seq: Word) -> Word:
        """The message's own random word, of this seed."""
        return mixed((seq + self.seed * _STEP % 2**64) * _STEP & _MASK)

    def _drawn(self, seq: Word) -> Word:
        """Of it, the 53 bits that decide what kind of message it is."""
        return self._word(seq) >> 11
