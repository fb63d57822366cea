"""How a client finds the pods of a service where there are no Services, and shows that it is one of the trial's.

Each pod says its URL on the reports topic. It works for as many pods as there are and as they come and go
(docs/decisions/03-pods-are-processes-on-loopback.md).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from lab.errors import LabFault
from lab.flags import Flags

LISTENING, LEAVING = "listening", "leaving"
LOOK_S = 0.25  # how often a client looks for what was said


def token_flag(parser: Flags) -> None:
    """Add the flag that the services and their clients have in common."""

    def some(text: str) -> str:
        if not text:
            raise ValueError(text)
        return text

    parser.flag("service-token", some, None, "what each request to a service has as its bearer token (RFC 6750)", "any text")


def bearer(token: str) -> dict[str, str]:
    """The header by which a request shows ``token``."""
    return {"Authorization": f"Bearer {token}"}


class Known:
    """The URLs of one service's pods, from their reports in order: pure."""

    def __init__(self, service: str) -> None:
        self._service = service
        self._urls: dict[str, str] = {}

    def take(self, row: Mapping[str, Any]) -> None:
        """Take in one report."""
        if row.get("event") == LISTENING and row.get("service") == self._service:
            self._urls[row["pod"]] = row["url"]
        elif row.get("event") == LEAVING:
            self._urls.pop(row.get("pod", ""), None)

    @property
    def urls(self) -> list[str]:
        """Where its pods listen, in order of their names."""
        return [self._urls[pod] for pod in sorted(self._urls)]


class Follower:
    """Keeps a :class:`Known` for each of ``services`` up to date from the reports topic, when asked to.

    ``settings`` are those with which a client logs in to Kafka, if it has to.
    """

    def __init__(
        self, bootstrap: str, topic: str, services: tuple[str, ...], settings: Mapping[str, str] | None = None
    ) -> None:
        self.known = {name: Known(name) for name in services}
        own: dict[str, Any] = {"group.id": "lab-addresses", "enable.auto.commit": False, "log_level": 2}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, **own, **(settings or {})})
        self._consumer.assign([TopicPartition(topic, 0, 0)])

    def follow(self, timeout_s: float = 0.0) -> None:
        """Take in what has been said since; waits up to ``timeout_s`` for it."""
        for message in self._consumer.consume(500, timeout_s):
            if message.error() is None:
                row = json.loads(message.value() or b"{}")
                for known in self.known.values():
                    known.take(row)

    def find(self, deadline_s: float) -> None:
        """Wait until each service has said where one of its pods listens. Raises :class:`LabFault` with those that have not."""
        end = time.monotonic() + deadline_s
        while missing := [name for name, known in self.known.items() if not known.urls]:
            if time.monotonic() > end:
                raise LabFault(f"no pod of {', '.join(missing)} has said where it listens: not within {deadline_s:g} s")
            self.follow(0.2)

    def close(self) -> None:
        """Stop following."""
        self._consumer.close()
