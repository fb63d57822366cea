"""Keeps what the lab's programs report during a trial: group events, the profile's phases, the producer's tally."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition


class Listener:
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
        self._file = file.open("a")
        self._notify = notify
        self._stop = threading.Event()
        self.events: list[dict[str, Any]] = []
        own: dict[str, Any] = {"group.id": "lab-recorder", "enable.auto.commit": False, "log_level": 2}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **own, **(settings or {})})
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in topics])
        self._thread = threading.Thread(target=self._follow, name="reports", daemon=True)
        self._thread.start()

    def last(self, event: str, **fields: object) -> dict[str, Any] | None:
        """The newest report called ``event`` with these fields; None when there is none yet."""
        return next(
            (row for row in reversed(self.events) if row["event"] == event and all(row.get(k) == v for k, v in fields.items())),
            None,
        )

    def begun(self, phase: str) -> float | None:
        """When the profile's ``phase`` began first, epoch s; None when it has not yet."""
        rows = (row for row in self.events if row["event"] == "phase" and row["phase"] == phase)
        return next((float(row["at"]) for row in rows), None)

    def owned(self) -> dict[str, int]:
        """How many partitions each consumer said last that it owns."""
        return {row["pod"]: row["owned"] for row in self.events if "owned" in row}

    def close(self) -> None:
        """Stop listening."""
        self._stop.set()
        self._thread.join(timeout=10)
        self._consumer.close()
        self._file.close()

    def _follow(self) -> None:
        while not self._stop.is_set():
            messages = self._consumer.consume(100, 0.2)
            rows = [json.loads(message.value() or b"{}") for message in messages if message.error() is None]
            if rows:
                self.events.extend(rows)
                self._file.writelines(json.dumps(row) + "\n" for row in rows)
                self._file.flush()
                self._notify()
