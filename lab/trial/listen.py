"""Keeps what the lab's programs report during a trial: group events, the profile's phases, the producer's tally."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from lab import clock, validation
from lab.errors import InputError
from lab.kafka.passing import PASSING
from lab.record import contract


def stamped(row: dict[str, Any]) -> dict[str, Any]:
    """The report with a time: that of its arrival where it has none."""
    return row if row.get("t") is not None else row | {"t": clock.now()}


def checked(row: dict[str, Any]) -> dict[str, Any]:
    """The report, :func:`stamped`. Raises :class:`InputError` for one of the contract that the contract refuses."""
    if row.get("event") in contract.CHANGES:
        where = f"a report of {row.get('pod')}"
        if validation.read(contract.Report, row, where).pod is None:
            raise InputError(where, "pod", None, "the name of the pod in a record on $REPORTS_TOPIC")
    return stamped(row)


class Reports:
    """What a trial under way must know of its reports. It stays small, however many there were: the record has them all.

    ``phase`` is the profile's phase that began last, "" before the first.
    """

    def __init__(self) -> None:
        self.phase = ""
        self.fault: str | None = None  # why a report could not be kept, which makes the file worthless
        self._last: dict[str, dict[str, Any]] = {}
        self._begun: dict[str, float] = {}
        self._owned: dict[str, int] = {}

    def add(self, row: dict[str, Any]) -> None:
        """Take one report."""
        self._last[row["event"]] = row
        if row["event"] == "phase":
            self.phase = str(row["phase"])
            self._begun.setdefault(self.phase, float(row["at"]))
        if "owned" in row:
            self._owned[row["pod"]] = row["owned"]

    def last(self, event: str) -> dict[str, Any] | None:
        """The newest report called ``event``; None when there is none yet."""
        return self._last.get(event)

    def begun(self, phase: str) -> float | None:
        """When the profile's ``phase`` began first, epoch s; None when it has not yet."""
        return self._begun.get(phase)

    def owned(self) -> dict[str, int]:
        """How many partitions each consumer said last that it owns."""
        return dict(self._owned)


class Listener(Reports):
    """Reads the ``topics`` of reports from their beginning into ``file`` (JSON lines) and calls ``notify`` at each.

    ``settings`` are those with which a client logs in to Kafka, if it has to.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str],
        file: Path,
        notify: Callable[[], None],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__()
        self._file = file.open("a")
        self._notify = notify
        self._given: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._stop = threading.Event()
        # What a broker no longer has is a gap, and by its default librdkafka would go on at the end of the log without a word.
        own: dict[str, Any] = {"group.id": "lab-recorder", "enable.auto.commit": False, "auto.offset.reset": "error"}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "log_level": 2, **own, **(settings or {})})
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        self._thread = threading.Thread(target=self._follow, name="reports", daemon=True)
        self._thread.start()

    def give(self, row: dict[str, Any]) -> None:
        """Take a report that came by another way than the topics."""
        self._given.put(row)

    def lose(self, why: object) -> None:
        """Keep ``why`` a report could not be kept, and let waiters know."""
        self.fault = self.fault or f"a report could not be kept: {why}"
        self._notify()

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join(timeout=10)
        self._consumer.close()
        with contextlib.suppress(OSError):  # of a full disk, which is known
            self._file.close()

    def _follow(self) -> None:
        try:
            while not self._stop.is_set():
                self._keep(self._consumer.consume(100, 0.2))
        except Exception as error:
            self.lose(error)

    def _keep(self, messages: Sequence[Message]) -> None:
        """Keep what was reported. Then raises ``KafkaException`` for an error that does not pass: a gap may follow."""
        errors = [error for message in messages if (error := message.error()) is not None]
        told = [json.loads(message.value() or b"{}") for message in messages if message.error() is None]
        rows = [checked(row) for row in (*told, *(self._given.get() for _ in range(self._given.qsize())))]
        if rows:
            for row in rows:
                self.add(row)
            self._file.writelines(json.dumps(row) + "\n" for row in rows)
            self._file.flush()
            self._notify()
        for error in errors:
            if error.code() not in PASSING:
                raise KafkaException(error)
