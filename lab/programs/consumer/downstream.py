"""The downstream store: a simulated write takes time, and then receipts or dead letters are made durable."""

from __future__ import annotations

import json
import socket
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import methodcaller

from confluent_kafka import KafkaError, Producer

from lab.inputs.consumer import SLACK_S, Cost
from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason
from lab.programs.consumer.retries import Consumed

STORE_S = 10.0  # until the shared store takes a connection
LOOK_S = 0.2  # how often a wait for the shared store looks whether it is given up


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


def summarize(messages: Iterable[Consumed], cost: Cost, pod: str) -> tuple[float, list[Receipt]]:
    """Return the total processing time of ``messages``, ms, and their receipts. They are in order of offset by partition."""
    total = 0.0
    receipts: dict[int, Receipt] = {}
    for partition, messages_in_row in groupby(messages, methodcaller("partition")):
        row = list(messages_in_row)
        values = [message.value() for message in row]
        total += cost.total(event.seqs(values))
        receipt = receipts.get(partition)
        if receipt is None:
            receipt = receipts[partition] = Receipt(pod, partition, row[0].offset(), 0)
        receipt.last = row[-1].offset()
        receipt.count += len(row)
        receipt.checksum += sum(map(event.check, values))
    return total, list(receipts.values())


_BLOCK = bytes(65_536)  # the input of the computation: zlib lets other threads run while it works on so many bytes


class NotDurable(RuntimeError):
    """A write was not acknowledged. Its messages are neither processed nor dead, and their offsets must not be committed."""


class Slots:
    """``concurrency`` slots that are busy for the batch's processing time.

    A batch that comes within :data:`lab.inputs.consumer.SLACK_S` counts from the end of the one before, so a saturated pod
    processes concurrency / process-ms messages. ``burn_percent`` of the time is spent computing on one core.
    """

    def __init__(self, concurrency: int, burn_percent: int = 0) -> None:
        self._concurrency, self._burn = concurrency, burn_percent / 100
        self._free_at = 0.0

    def work(self, cost_ms: float, abandon: threading.Event) -> bool:
        """Take as long as ``cost_ms`` of processing. Returns False when ``abandon`` was set before the end."""
        now = time.monotonic()
        begin = self._free_at if now - self._free_at <= SLACK_S else now
        length = cost_ms / 1000 / self._concurrency
        self._free_at = begin + length
        computed = time.thread_time() + length * self._burn
        while self._burn and time.thread_time() < computed:
            if abandon.is_set():
                return False
            zlib.crc32(_BLOCK)
        remaining = self._free_at - time.monotonic()
        return remaining <= 0 or not abandon.wait(remaining)  # the simulated write itself


class SharedSlots:
    """The slots of a store that all pods share, at ``address``, which works for those that have its ``token``.

    An ``OSError`` means that it is not there (docs/decisions/21).
    """

    def __init__(self, concurrency: int, address: str, token: str) -> None:
        self._concurrency, self._address, self._token = concurrency, address, token.encode()
        self._store: socket.socket | None = None

    def work(self, cost_ms: float, abandon: threading.Event) -> bool:
        """Take as long as the store takes for ``cost_ms`` of processing. Returns False when ``abandon`` was set before."""
        if self._store is None:
            host, _, port = self._address.rpartition(":")
            self._store = socket.create_connection((host, int(port)), timeout=STORE_S)
            self._store.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._store.settimeout(LOOK_S)
        self._store.sendall(b"%s %.6f\n" % (self._token, cost_ms / 1000 / self._concurrency))
        while not abandon.is_set():
            try:
                answer = self._store.recv(1)
            except TimeoutError:
                continue
            if not answer:
                raise ConnectionError(f"the store at {self._address} has closed the connection")
            return True
        self._store.close()  # so the store forgets a write that waits
        self._store = None
        return False


class Store:
    """Writes to the topics ``receipts``, ``dead_letters`` and ``output``, idempotent and with acks=all.

    ``durable`` is called with the receipts of a batch once they are acknowledged, batch by batch, in their order. A call that
    waits raises :class:`NotDurable` when a write was refused or not acknowledged in time.
    """

    def __init__(
        self,
        producer: Producer,
        receipts: str,
        dead_letters: str,
        output: str,
        durable: Callable[[Sequence[Receipt]], None],
        timeout_s: float = 30.0,
    ) -> None:
        self._producer, self._receipts, self._dead_letters, self._output = producer, receipts, dead_letters, output
        self._durable, self._timeout = durable, timeout_s
        self._error: KafkaError | None = None

    def write(self, receipts: Sequence[Receipt]) -> None:
        """Send the ``receipts`` of a batch, and don't wait: the batches of one fetch are processed while they travel."""
        done = partial(self._batch_delivered, receipts)
        for receipt in receipts:
            # One key is one partition, and an idempotent producer keeps its order. So the last one's acknowledgement is the
            # batch's.
            on_delivery = done if receipt is receipts[-1] else self._delivered
            self._producer.produce(self._receipts, key=receipt.pod, value=json.dumps(vars(receipt)), on_delivery=on_delivery)
        self._producer.poll(0)

    def emit(self, messages: Sequence[Consumed], processed: float) -> None:
        """Send ``messages`` to the output topic, each to its partition's number, and wait until they are durable.

        ``processed`` is the time at which their processing ended, epoch s. Receipts are written after this: a message that has
        one was emitted. Raises :class:`NotDurable`.
        """
        for message in messages:
            value = event.emitted(message.value(), message.partition(), message.offset(), processed)
            self._producer.produce(
                self._output, key=message.key(), value=value, partition=message.partition(), on_delivery=self._delivered
            )
        self.settle()

    def bury(self, message: Consumed, reason: Reason) -> None:
        """Make ``message`` a durable dead letter, with its key and value unchanged and ``reason`` in its headers."""
        headers: list[tuple[str, str | bytes | None]] = [*deadletter.stamped(message.headers(), reason)]
        self._producer.produce(
            self._dead_letters, key=message.key(), value=message.value(), headers=headers, on_delivery=self._delivered
        )
        self.settle()

    def settle(self) -> None:
        """Wait until everything that was written is durable."""
        if self._producer.flush(self._timeout) > 0:
            raise NotDurable(f"no acknowledgement within {self._timeout:g} s")
        if self._error is not None:
            raise NotDurable(self._error.str())

    def _delivered(self, error: KafkaError | None, _message: object) -> None:
        self._error = error or self._error

    def _batch_delivered(self, receipts: Sequence[Receipt], error: KafkaError | None, _message: object) -> None:
        self._error = error or self._error
        if self._error is None:
            self._durable(receipts)
