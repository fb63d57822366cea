"""The downstream store: a simulated write takes time, and then receipts or dead letters are made durable.

A receipt is summed up from the messages of a batch, by pure arithmetic.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from confluent_kafka import KafkaError, Producer

from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason
from lab.programs.consumer.retries import Consumed
from lab.spec.consumer import SLACK_S, Cost


@dataclass
class Receipt:
    """The downstream store's record of a batch, one for each partition in it. Times are epoch seconds."""

    pod: str
    partition: int
    first: int
    last: int
    count: int = 0
    checksum: int = 0
    start: float = 0.0
    end: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the receipt as it goes over the wire."""
        return asdict(self)


def summarize(messages: Iterable[tuple[int, int, bytes]], cost: Cost, pod: str) -> tuple[float, list[Receipt]]:
    """Return the total processing time in ms and the receipts of ``messages``: (partition, offset, value), by offset."""
    total = 0.0
    receipts: dict[int, Receipt] = {}
    unpack, check, of = event.HEADER.unpack_from, event.check, cost.of
    for partition, offset, value in messages:
        _, seq, _ = unpack(value)
        total += of(seq)
        receipt = receipts.get(partition)
        if receipt is None:
            receipt = receipts[partition] = Receipt(pod, partition, offset, offset)
        receipt.last = offset
        receipt.count += 1
        receipt.checksum += check(value)
    return total, list(receipts.values())


_BLOCK = bytes(65_536)  # the input of the computation: zlib lets other threads run while it works on so many bytes


class NotDurable(RuntimeError):
    """A write was not acknowledged. Its messages are neither processed nor dead, and their offsets must not be committed."""


class Slots:
    """``concurrency`` slots that are busy for the batch's processing time.

    A pod with work to do keeps its slots busy while receipts are acknowledged and the next batch is fetched. So the time of
    a batch that comes within :data:`lab.spec.consumer.SLACK_S` is counted from the end of the batch before it. A saturated
    pod then processes concurrency / process-ms messages. Of the time, ``burn_percent`` is spent computing on one core, and
    the rest waits for the store.
    """

    def __init__(self, concurrency: int, burn_percent: int = 0) -> None:
        self._concurrency, self._burn = concurrency, burn_percent / 100
        self._free_at = 0.0

    def work(self, cost_ms: float, abandon: threading.Event | None = None) -> bool:
        """Take as long as ``cost_ms`` of processing. Returns False when ``abandon`` was set before the end."""
        now = time.monotonic()
        begin = self._free_at if now - self._free_at <= SLACK_S else now
        length = cost_ms / 1000 / self._concurrency
        self._free_at = begin + length
        given_up = abandon or threading.Event()
        if self._burn and not _compute(length * self._burn, given_up):
            return False
        remaining = self._free_at - time.monotonic()
        if remaining <= 0:
            return True
        return not given_up.wait(remaining)  # the simulated write itself


def _compute(seconds: float, abandon: threading.Event) -> bool:
    """Use ``seconds`` of this thread's CPU time. Returns False when ``abandon`` was set before the end."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        if abandon.is_set():
            return False
        zlib.crc32(_BLOCK)
    return True


class Store:
    """Writes to the topics ``receipts`` and ``dead_letters``, idempotent and with acks=all. A call returns when its write is
    durable.

    Raises :class:`NotDurable` when a write was refused or not acknowledged in time.
    """

    def __init__(self, producer: Producer, receipts: str, dead_letters: str, timeout_s: float = 30.0) -> None:
        self._producer, self._receipts, self._dead_letters, self._timeout = producer, receipts, dead_letters, timeout_s
        self._error: KafkaError | None = None

    def write(self, receipts: Sequence[Receipt]) -> None:
        """Make ``receipts`` durable."""
        for receipt in receipts:
            self._producer.produce(
                self._receipts, key=receipt.pod, value=json.dumps(receipt.to_dict()), on_delivery=self._delivered
            )
        self._settle()

    def bury(self, message: Consumed, reason: Reason) -> None:
        """Make ``message`` a durable dead letter, with its key and value unchanged and ``reason`` in its headers."""
        headers: list[tuple[str, str | bytes | None]] = [*deadletter.stamped(message.headers(), reason)]
        self._producer.produce(
            self._dead_letters, key=message.key(), value=message.value(), headers=headers, on_delivery=self._delivered
        )
        self._settle()

    def _settle(self) -> None:
        if self._producer.flush(self._timeout) > 0:
            raise NotDurable(f"no acknowledgement within {self._timeout:g} s")
        if self._error is not None:
            raise NotDurable(self._error.str())

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._error = error or self._error
