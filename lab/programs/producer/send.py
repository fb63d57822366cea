"""Sends the events of a profile in an open loop, and tallies the fate of each."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from confluent_kafka import KafkaError, Producer

from lab.inputs.keys import partitions_of
from lab.inputs.producer import DELIVERY_S
from lab.inputs.profile import Profile
from lab.kafka import event
from lab.kafka.numbering import Numbering, numbering

log = logging.getLogger("lab.programs.producer")

_LAYOUT = np.dtype([("entity_id", ">u8"), ("seq", ">u8"), ("ts", ">i8"), ("payload", f"V{event.PAYLOAD}")])
TICK_S = 0.005
MOST_AT_ONCE = 2_000
PAYLOADS_AT_ONCE = 4_096  # a megabyte
# After these errors the broker may have written the event although no acknowledgement came back. They are counted apart.
_UNKNOWN = {
    KafkaError._MSG_TIMED_OUT,
    KafkaError._PURGE_INFLIGHT,
    KafkaError._TIMED_OUT,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    KafkaError._TRANSPORT,
}


Ids = Callable[[int], npt.NDArray[np.uint64]]  # the entities of the next so many events
Contents = Callable[[int], bytes | npt.NDArray[np.void]]  # the payload of the next so many: one of all, or one for each


@dataclass
class Tally:
    """The events by fate (acknowledged, failed for certain, unknown), and how late they were sent."""

    sent: int = 0
    acked: int = 0
    failed: int = 0
    unknown: int = 0
    late_p50_ms: float = 0.0
    late_p99_ms: float = 0.0
    late_max_ms: float = 0.0
    completed: bool = False
    late_ms: list[float] = field(default_factory=list, repr=False)  # by tick: from its oldest event's due time until it is sent
    tick_events: list[int] = field(default_factory=list, repr=False)

    @property
    def whole(self) -> bool:
        """Whether the profile was replayed to its end, and every event was acknowledged."""
        return self.completed and self.acked == self.sent

    def delivered(self, error: KafkaError | None, _message: object) -> None:
        """Count one event. The client calls this exactly once for each."""
        if error is None:  # no more than this where all goes well: it is called once an event
            self.acked += 1
        else:
            became = fate(error)
            setattr(self, became, getattr(self, became) + 1)

    def summary(self) -> dict[str, Any]:
        """Return the counts, and the percentiles of the lateness over events, ms: after a stall a few ticks send thousands."""
        if self.late_ms:
            late = np.percentile(self.late_ms, [50, 99, 100], weights=self.tick_events, method="inverted_cdf")
            self.late_p50_ms, self.late_p99_ms, self.late_max_ms = late.round(3).tolist()
        return {key: value for key, value in vars(self).items() if key not in ("late_ms", "tick_events")}


class Payloads:
    """The payloads of the events, by the seed alone; the last ``random_bytes`` of each are its own, the others all events'."""

    def __init__(self, seed: int, random_bytes: int = 0) -> None:
        self._common, self._own = random.Random(seed).randbytes(event.PAYLOAD), random_bytes
        self._random = np.random.default_rng([seed, 1])
        self._drawn = np.empty(0, dtype=f"V{event.PAYLOAD}")

    def take(self, count: int) -> bytes | npt.NDArray[np.void]:
        """The payload of the next ``count`` events: one of all, or one for each."""
        if not self._own:
            return self._common
        while len(self._drawn) < count:
            block = np.tile(np.frombuffer(self._common, dtype=np.uint8), (PAYLOADS_AT_ONCE, 1))
            block[:, event.PAYLOAD - self._own :] = self._random.integers(0, 256, (PAYLOADS_AT_ONCE, self._own), dtype=np.uint8)
            self._drawn = np.concatenate((self._drawn, block.view(f"V{event.PAYLOAD}").ravel()))
        taken, self._drawn = self._drawn[:count], self._drawn[count:]
        return taken


def fate(error: KafkaError | None) -> str:
    """Return the fate of an event by its delivery callback: acked, failed (for certain) or unknown."""
    if error is None:
        return "acked"
    return "unknown" if error.code() in _UNKNOWN else "failed"


def configuration(bootstrap: str, client_id: str, settings: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return librdkafka's settings: idempotent, acks=all, Java's default partitioner. ``settings`` log in."""
    return {
        "bootstrap.servers": bootstrap,
        "client.id": client_id,
        "acks": "all",
        "enable.idempotence": True,
        "partitioner": "murmur2_random",
        "linger.ms": 5,
        "batch.num.messages": 10_000,
        "queue.buffering.max.messages": 1_000_000,
        "delivery.timeout.ms": DELIVERY_S * 1000,
        # A partition added under load gets its share within a second. With the stock five minutes a trial would not see it.
        "topic.metadata.refresh.interval.ms": 1_000,
        **(settings or {}),
    }


def replay(
    producer: Producer,
    topics: str | Numbering,
    profile: Profile,
    entities: Ids,
    payloads: Contents,
    stop: threading.Event,
    started: Callable[[str, float], None],
    tally: Tally,
    start: float,
) -> None:
    """Send every event of ``profile`` at its time. A late event is sent as soon as possible, and none is skipped.

    ``started(phase, at)`` is called when a phase begins, with its due time (epoch s, like ``start``). It returns at the
    profile's end, or when ``stop`` is set. Raises ``RuntimeError`` when the client refuses an event.
    """
    zero = time.monotonic() + (start - time.time())  # the profile's start on the monotonic clock, which never jumps
    clock = time.monotonic
    phases, placed = profile.phases(), numbering(topics)
    while not stop.is_set() and ((now := clock() - zero) < profile.duration or tally.sent < profile.total):
        while phases and phases[0][0] <= now:
            at, _, phase = phases.pop(0)
            started(phase, start + at)
        due = min(profile.due(now) if now >= 0 else 0, tally.sent + MOST_AT_ONCE)
        if due > tally.sent:
            times = profile.times(tally.sent, due)
            stamps = ((start + times) * 1e9).astype(np.int64)
            ids = entities(due - tally.sent)
            tally.late_ms.append((now - float(times[0])) * 1000)
            tally.tick_events.append(due - tally.sent)
            keys, values = encode(ids, tally.sent, stamps, payloads(due - tally.sent))
            events: list[dict[str, Any]] = [{"key": key, "value": value} for key, value in zip(keys, values, strict=True)]
            for topic, messages in _by_topic(placed, ids, events):
                _hand_over(producer, topic, messages, tally)
            tally.sent = due
        producer.poll(0)
        if due < tally.sent + MOST_AT_ONCE:
            stop.wait(max(0.0, TICK_S - (clock() - zero - now)))  # the pace of the open loop itself
    tally.completed = tally.sent == profile.total
    while (left := producer.flush(10)) > 0:
        log.info("waiting for %d acknowledgements", left)


def encode(
    ids: npt.NDArray[np.uint64], first: int, stamps: npt.NDArray[np.int64], payload: bytes | npt.NDArray[np.void]
) -> tuple[list[bytes], list[bytes]]:
    """Return keys and values as :func:`lab.kafka.event.encode` makes them: seqs from ``first``, ``stamps`` in ns."""
    events = np.empty(len(ids), dtype=_LAYOUT)
    events["entity_id"], events["seq"], events["ts"] = ids, np.arange(first, first + len(ids)), stamps
    events["payload"] = np.void(payload) if isinstance(payload, bytes) else payload
    return ids.astype(">u8").view(f"V{event.KEY.size}").tolist(), events.view(f"V{event.SIZE}").tolist()


def _hand_over(producer: Producer, topic: str, waiting: list[dict[str, Any]], tally: Tally) -> None:
    """Give the client the ``waiting`` messages. It takes some of them later where its queue is full."""
    while producer.produce_batch(topic, waiting, on_delivery=tally.delivered) < len(waiting):
        waiting = [message for message in waiting if "_error" in message]
        for message in waiting:
            error = message.pop("_error")
            if error.code() != KafkaError._QUEUE_FULL:
                raise RuntimeError(f"the client refused an event: {error}")
        producer.poll(0.05)


def _by_topic(
    topics: Numbering, ids: npt.NDArray[np.uint64], events: list[dict[str, Any]]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield each topic with its ``events``; of several, the partition is that of the same number on a single topic."""
    if topics.single:
        yield topics.topics[0], events
        return
    placed: dict[str, list[dict[str, Any]]] = {}
    for number, one in zip(partitions_of(ids, topics.count).tolist(), events, strict=True):
        topic, one["partition"] = topics.place(number)
        placed.setdefault(topic, []).append(one)
    yield from placed.items()
