"""The messages of a rehearsal: the lab's events or samples of a user's own, a few a second, to each partition in turn.

Samples are a file of JSON lines. A line is an object with ``value``, and a ``key`` if it has one: text is taken as it is,
anything else as JSON. ``value_base64`` and ``key_base64`` are bytes, as of Avro in the framing of a schema registry. Any other
line is a value as it stands.
"""

from __future__ import annotations

import base64
import itertools
import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import KafkaError, Message, Producer

from lab import clock
from lab.errors import InputError, Unusable
from lab.kafka import event

RATE = 60.0  # messages/s: a consumer that takes 15 ms for one, one at a time, keeps up
FLUSH_S = 10.0
MOST = 100_000  # lines of samples
_FIELDS = {"key", "key_base64", "value", "value_base64"}
_PAYLOAD = bytes(event.PAYLOAD)

Pair = tuple[bytes | None, bytes]  # key and value


class Traffic:
    """Sends ``samples`` to ``topic`` again and again, or without any the lab's events, between :meth:`start` and :meth:`stop`.

    ``login`` has the settings of a client that logs in. ``checks`` has the CRC-32 of each message that the broker has, by
    partition and offset.
    """

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, samples: Sequence[Pair] = (), login: Mapping[str, str] | None = None
    ) -> None:
        own: dict[str, Any] = {"acks": "all", "linger.ms": 5, "log_level": 2, **(login or {})}
        self._producer = Producer({"bootstrap.servers": bootstrap, **own})
        self._topic, self._partitions = topic, itertools.cycle(range(partitions))
        self._pairs: Iterator[Pair] = itertools.cycle(samples) if samples else map(_event, itertools.count())
        self._halt = threading.Event()
        self._thread: threading.Thread | None = None
        self.checks: dict[tuple[int, int], int] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to send, or go on."""
        self._halt = threading.Event()
        self._thread = threading.Thread(target=self._send, args=(self._halt,), name="traffic", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Send no more. All that was sent is at the broker when this returns."""
        if self._thread is not None:
            self._halt.set()
            self._thread.join()
            self._thread = None
            self._producer.flush(FLUSH_S)

    def _send(self, halt: threading.Event) -> None:
        while not halt.wait(1 / RATE):
            key, value = next(self._pairs)
            partition = next(self._partitions)
            self._producer.produce(self._topic, key=key, value=value, partition=partition, on_delivery=self._delivered)
            self._producer.poll(0)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        partition, offset = message.partition(), message.offset()
        if error is None and partition is not None and offset is not None:
            self.checks[partition, offset] = event.check(message.value() or b"")


def _event(seq: int) -> Pair:
    return event.KEY.pack(seq), event.encode(seq, seq, round(clock.now() * 1e9), _PAYLOAD)


def load(file: Path) -> tuple[Pair, ...]:
    """Key and value of each line of ``file``. Raises :class:`InputError` for one that can't be used."""
    try:
        lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise Unusable(file, f"it can't be read: {error}") from None
    if not 1 <= len(lines) <= MOST:
        raise InputError(file, "lines", len(lines), f"1 to {MOST:,}")
    return tuple(pair(line, f"{file}:{number}") for number, line in enumerate(lines, 1))


def pair(line: str, where: object) -> Pair:
    """Key and value of one ``line``, which stands at ``where``. Raises :class:`InputError`."""
    try:
        row = json.loads(line)
    except ValueError:
        row = None
    if not isinstance(row, dict) or not row.keys() & {"value", "value_base64"} or row.keys() - _FIELDS:
        return None, line.encode()
    return _bytes(row, "key", where), _bytes(row, "value", where) or b""


def _bytes(row: dict[str, Any], field: str, where: object) -> bytes | None:
    if (coded := row.get(f"{field}_base64")) is not None:
        try:
            return base64.b64decode(coded, validate=True)
        except (ValueError, TypeError):
            raise InputError(where, f"{field}_base64", coded, "base64") from None
    if (value := row.get(field)) is None:
        return None
    return value.encode() if isinstance(value, str) else json.dumps(value).encode()
