"""What waits for another attempt. Pure bookkeeping: the caller hands in messages and times, and does what it is told.

A partition whose head failed stands still until the head is through: it succeeded, or it is a dead letter. What was fetched
behind the head waits behind it, so order within a partition is kept, and no offset is committed past a message that is
neither processed nor dead. Other partitions know nothing of it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.kafka import event
from lab.spec.failures import Backoff, Failures


class Consumed(Protocol):
    """What is asked of a message. Of one that was consumed none is missing, which confluent_kafka's own types don't say."""

    def partition(self) -> Any: ...  # noqa: D102
    def offset(self) -> Any: ...  # noqa: D102
    def key(self) -> Any: ...  # noqa: D102
    def value(self) -> Any: ...  # noqa: D102
    def headers(self) -> Any: ...  # noqa: D102


@dataclass(frozen=True)
class Failed:
    """An attempt that failed: the ``attempts`` so far, when the first failed (epoch s), and the delay until the next, s.

    ``retry_in_s`` is None when there is no next: the message is a dead letter.
    """

    attempts: int
    first_failure: float
    retry_in_s: float | None


@dataclass
class Stall:
    """A partition that stands still: what waits, its head first; ``due`` is when the head may be tried again, monotonic s."""

    waiting: list[Consumed]
    attempts: int = 0
    first_failure: float = 0.0
    due: float = float("inf")


@dataclass
class Attempted:
    """A batch's messages by what becomes of them; ``recovered`` are those in ``good`` that failed before, with how often."""

    good: list[Consumed] = field(default_factory=list)
    bad: list[Consumed] = field(default_factory=list)
    recovered: list[tuple[Consumed, int]] = field(default_factory=list)


class Retries:
    """The partitions that stand still, and how often their heads were tried."""

    def __init__(self, failures: Failures, backoff: Backoff, dead_letters: bool) -> None:
        self._failures, self._backoff, self._dead_letters = failures, backoff, dead_letters
        self._stalls: dict[int, Stall] = {}
        self._again: dict[int, Stall] = {}  # those whose time has come, by partition: their heads are being tried

    @property
    def stalled(self) -> frozenset[int]:
        """The partitions that stand still."""
        return frozenset(self._stalls)

    def wait_s(self, now: float, most: float) -> float:
        """How long to wait for messages, at ``most``, so that no head is late."""
        return max(0.0, min([most, *(stall.due - now for stall in self._stalls.values())]))

    def take(self, fetched: Sequence[Consumed], now: float) -> Sequence[Consumed]:
        """What may be tried at ``now``, in order of offset: what waits on partitions whose time has come, and of ``fetched``
        what belongs to partitions that don't stand still; the rest of it waits as well."""
        if not self._stalls:
            return fetched
        ready: list[Consumed] = []
        for partition in [number for number, stall in self._stalls.items() if stall.due <= now]:
            stall = self._again[partition] = self._stalls.pop(partition)
            ready += stall.waiting
        for message in fetched:
            standing = self._stalls.get(message.partition())
            (ready if standing is None else standing.waiting).append(message)
        return ready

    def attempt(self, batch: Sequence[Consumed]) -> Attempted:
        """What becomes of each message of ``batch``. What lies behind one that fails, in its partition, waits."""
        if not self._failures.any:
            return Attempted(good=list(batch))
        found: Attempted = Attempted()
        for message in batch:
            partition, offset = message.partition(), message.offset()
            if standing := self._stalls.get(partition):
                standing.waiting.append(message)
                continue
            before = self._again.pop(partition, None)
            tried = before if before and before.waiting[0].offset() == offset else Stall([])
            if self._failures.fails(partition, offset, seq_of(message), tried.attempts + 1):
                self._stalls[partition] = Stall([message], tried.attempts, tried.first_failure)
                found.bad.append(message)
                continue
            found.good.append(message)
            if tried.attempts:
                found.recovered.append((message, tried.attempts))
        return found

    def failed(self, message: Consumed, now: float, wall: float) -> Failed:
        """Count the failure of ``message``, which :meth:`attempt` called bad; ``now`` is monotonic s, ``wall`` epoch s."""
        stall = self._stalls[message.partition()]
        stall.attempts += 1
        stall.first_failure = stall.first_failure or wall
        if self._dead_letters and stall.attempts > len(self._backoff.delays_ms):
            return Failed(stall.attempts, stall.first_failure, None)
        delay = self._backoff.after_s(stall.attempts, self._failures.jitter(seq_of(message), stall.attempts))
        stall.due = now + delay
        return Failed(stall.attempts, stall.first_failure, delay)

    def buried(self, message: Consumed, now: float) -> None:
        """``message`` is a dead letter, durably: what waits behind it is due."""
        behind = self._stalls.pop(message.partition()).waiting[1:]
        if behind:
            self._stalls[message.partition()] = Stall(behind, due=now)

    def forget(self, partitions: Collection[int]) -> None:
        """``partitions`` are another member's now, which begins with their heads anew: none was committed."""
        for partition in partitions:
            self._stalls.pop(partition, None)
            self._again.pop(partition, None)


def seq_of(message: Consumed) -> int:
    """The seq of the event in ``message``."""
    return int(event.HEADER.unpack_from(message.value())[1])
