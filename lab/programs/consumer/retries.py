"""The messages that wait for another attempt. Pure: the caller hands in messages and times.

A partition whose head failed stands still until the head has succeeded or is a dead letter. Messages fetched behind the head
wait behind it. So order within a partition holds, and no offset is committed past a message that is neither processed nor
dead. Other partitions go on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from lab.inputs.failures import Backoff, Failures
from lab.kafka import event


class Consumed(Protocol):
    """A consumed message. It has every field, which confluent_kafka's own types don't say."""

    def partition(self) -> Any: ...  # noqa: D102
    def offset(self) -> Any: ...  # noqa: D102
    def key(self) -> Any: ...  # noqa: D102
    def value(self) -> Any: ...  # noqa: D102
    def headers(self) -> Any: ...  # noqa: D102


class Numbered:
    """A message of one of several topics. Its partition is the trial's number for it, and not Kafka's own."""

    def __init__(self, message: Consumed, number: int) -> None:
        self.partition = lambda: number
        self.offset, self.key, self.value, self.headers = message.offset, message.key, message.value, message.headers


@dataclass(frozen=True)
class Failed:
    """``attempts`` so far, the ``first_failure`` (epoch s), and the delay until the next; None for a dead letter."""

    attempts: int
    first_failure: float
    retry_in_s: float | None


@dataclass
class Stall:
    """A partition that stands still. ``waiting`` begins with its head, which is tried again at ``due`` (monotonic s)."""

    waiting: list[Consumed]
    attempts: int = 0
    first_failure: float = 0.0
    due: float = float("inf")


@dataclass
class Attempted:
    """A batch's messages by outcome. ``recovered``: those in ``good`` that failed before, each with its failures."""

    good: list[Consumed] = field(default_factory=list)
    bad: list[Consumed] = field(default_factory=list)
    recovered: list[tuple[Consumed, int]] = field(default_factory=list)


class Retries:
    """The partitions that stand still, and the number of attempts at their heads."""

    def __init__(self, failures: Failures, backoff: Backoff, dead_letters: bool) -> None:
        self._failures, self._backoff, self._dead_letters = failures, backoff, dead_letters
        self._stalls: dict[int, Stall] = {}
        self._again: dict[int, Stall] = {}  # by partition: stalls that are due, whose heads are being tried

    @property
    def stalled(self) -> frozenset[int]:
        """The partitions that stand still."""
        return frozenset(self._stalls)

    def wait_s(self, now: float, most: float) -> float:
        """Return the wait for messages, s, at ``most``, that makes no head late."""
        return max(0.0, min([most, *(stall.due - now for stall in self._stalls.values())]))

    def take(self, fetched: Sequence[Consumed], now: float) -> Sequence[Consumed]:
        """Return the messages to try at ``now``, in order of offset by partition: those due, and ``fetched`` ones that need not
        wait."""
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
        """Return the outcome of each message of ``batch``. Messages behind a failed one wait in its partition."""
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
        """Count the failure of ``message``, which :meth:`attempt` called bad. ``now`` is monotonic s, ``wall`` epoch s."""
        stall = self._stalls[message.partition()]
        stall.attempts += 1
        stall.first_failure = stall.first_failure or wall
        if self._dead_letters and stall.attempts > len(self._backoff.delays_ms):
            return Failed(stall.attempts, stall.first_failure, None)
        delay = self._backoff.after_s(stall.attempts, self._failures.jitter(seq_of(message), stall.attempts))
        stall.due = now + delay
        return Failed(stall.attempts, stall.first_failure, delay)

    def buried(self, message: Consumed, now: float) -> None:
        """Note that ``message`` is a durable dead letter. The messages that wait behind it are due."""
        behind = self._stalls.pop(message.partition()).waiting[1:]
        if behind:
            self._stalls[message.partition()] = Stall(behind, due=now)

    def forget(self, partitions: Collection[int]) -> None:
        """Drop ``partitions``, which another member owns now. It begins with their heads anew, because none was committed."""
        for partition in partitions:
            self._stalls.pop(partition, None)
            self._again.pop(partition, None)


def seq_of(message: Consumed) -> int:
    """Return the seq of the event in ``message``."""
    return int(event.HEADER.unpack_from(message.value())[1])
