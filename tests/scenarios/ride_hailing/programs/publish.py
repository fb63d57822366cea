"""Produces single events for an asyncio service and says of each what became of it, after its delivery callback."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping

from confluent_kafka import KafkaError, KafkaException, Producer

from lab.programs.producer.send import configuration, fate
from tests.scenarios.ride_hailing.programs.message import Message

ACKED, FAILED, UNKNOWN = "acked", "failed", "unknown"


class Publisher:
    """A producer with acks=all, idempotent; made and used within one event loop. Callbacks come from a thread of its own."""

    def __init__(self, bootstrap: str, topic: str, who: str, settings: Mapping[str, str] | None = None) -> None:
        self._topic = topic
        self._loop = asyncio.get_running_loop()
        self._producer = Producer(configuration(bootstrap, who, settings))
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, name="delivery", daemon=True)
        self._thread.start()

    async def publish(self, message: Message) -> str:
        """What became of ``message``: ACKED, FAILED for certain, or UNKNOWN (the broker may have it)."""
        told: asyncio.Future[str] = self._loop.create_future()

        def settle(what: str) -> None:
            if not told.done():  # its request may have been given up
                told.set_result(what)

        def delivered(error: KafkaError | None, _message: object) -> None:
            self._loop.call_soon_threadsafe(settle, fate(error))

        try:
            self._producer.produce(self._topic, message.value, message.key, on_delivery=delivered)
        except (BufferError, KafkaException):
            return FAILED  # refused by the client: it never left
        return await told

    def close(self, timeout_s: float = 10.0) -> int:
        """Wait for what is under way; returns how many events are still without an answer."""
        left = int(self._producer.flush(timeout_s))
        self._stop.set()
        self._thread.join(timeout=5)
        return left

    def _poll(self) -> None:
        while not self._stop.is_set():
            self._producer.poll(0.1)
