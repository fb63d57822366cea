"""The downstream store: a simulated write that takes time, and receipts that are made durable."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence

from confluent_kafka import KafkaError, Producer

from lab.consumer.batch import Receipt


class ReceiptLost(RuntimeError):
    """A receipt was not acknowledged: the batch is not processed, and must not be committed."""


class Slots:
    """``concurrency`` slots that are busy for the batch's processing time.

    While receipts are acknowledged and the next batch is fetched, a pod with work to do would keep its slots busy; so when
    the next batch comes within ``SLACK_S`` its time is counted from the end of the last one. A saturated pod then processes
    concurrency / process-ms.
    """

    SLACK_S = 0.02

    def __init__(self, concurrency: int) -> None:
        self._concurrency = concurrency
        self._free_at = 0.0

    def work(self, cost_ms: float, abandon: threading.Event | None = None) -> bool:
        """Take the time ``cost_ms`` of processing takes; False when ``abandon`` was set before it was over."""
        now = time.monotonic()
        begin = self._free_at if now - self._free_at <= self.SLACK_S else now
        self._free_at = begin + cost_ms / 1000 / self._concurrency
        remaining = self._free_at - now
        if remaining <= 0:
            return True
        return not (abandon or threading.Event()).wait(remaining)  # the simulated write itself


class Receipts:
    """Writes receipts to their topic with acks=all, idempotent; returns when they are durable."""

    def __init__(self, producer: Producer, topic: str, timeout_s: float = 30.0) -> None:
        self._producer, self._topic, self._timeout = producer, topic, timeout_s
        self._error: KafkaError | None = None

    def write(self, receipts: Sequence[Receipt]) -> None:
        """Make ``receipts`` durable. Raises :class:`ReceiptLost` when one was refused or not acknowledged in time."""
        for receipt in receipts:
            self._producer.produce(
                self._topic, key=receipt.pod, value=json.dumps(receipt.to_dict()), on_delivery=self._delivered
            )
        if self._producer.flush(self._timeout) > 0:
            raise ReceiptLost(f"no acknowledgement within {self._timeout:g} s")
        if self._error is not None:
            raise ReceiptLost(self._error.str())

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._error = error or self._error
