"""The downstream store: a simulated write that takes time, receipts that are made durable, and so are dead letters."""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections.abc import Sequence

from confluent_kafka import KafkaError, Producer

from lab.kafka import deadletter
from lab.kafka.deadletter import Reason
from lab.programs.consumer.batch import Receipt
from lab.programs.consumer.retries import Consumed
from lab.spec.consumer import SLACK_S

_BLOCK = bytes(65_536)  # what is computed on: large enough that zlib lets other threads run


class NotDurable(RuntimeError):
    """A write was not acknowledged: what it is about is neither processed nor dead, and must not be committed."""


class Slots:
    """``concurrency`` slots that are busy for the batch's processing time.

    While receipts are acknowledged and the next batch is fetched, a pod with work to do would keep its slots busy; so when
    the next batch comes within :data:`lab.spec.consumer.SLACK_S` its time is counted from the end of the last one. A saturated
    pod then processes concurrency / process-ms. Of that time ``burn_percent`` is spent computing, on one core; the rest waits
    for the store.
    """

    def __init__(self, concurrency: int, burn_percent: int = 0) -> None:
        self._concurrency, self._burn = concurrency, burn_percent / 100
        self._free_at = 0.0

    def work(self, cost_ms: float, abandon: threading.Event | None = None) -> bool:
        """Take the time ``cost_ms`` of processing takes; False when ``abandon`` was set before it was over."""
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
    """Use ``seconds`` of this thread's CPU time; False when ``abandon`` was set before."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        if abandon.is_set():
            return False
        zlib.crc32(_BLOCK)
    return True


class Store:
    """Writes with acks=all, idempotent, to the topics ``receipts`` and ``dead_letters``; returns when it is durable.

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
        """Make ``message`` a durable dead letter: its key and value as they were, and why it is one."""
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
