"""A member of the consumer group: it subscribes, fetches, commits processed offsets, follows rebalances and leaves."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from lab.inputs.consumer import STATIC, STOCK, Balancer, Settings
from lab.inputs.settings import client
from lab.kafka.passing import PASSING, QUIET
from lab.programs.consumer.retries import Consumed, Numbered

log = logging.getLogger("lab.programs.consumer")

MARK_S = 10.0  # until Kafka says what is committed; some ms on a quiet machine
# A commit without offsets is no error.
_HARMLESS = {KafkaError._NO_OFFSET}
# A process takes 31 MB instead of 60. With the default back-off of 1 s, a small queue would cap the rate. A fetch as small as
# the queue, which librdkafka would choose, lets a backlog's first partitions starve the others (docs/decisions/19).
LEAN: dict[str, Any] = {
    "fetch.wait.max.ms": 100,
    "queued.max.messages.kbytes": 4096,
    "fetch.queue.backoff.ms": 20,
    "fetch.max.bytes": 50 * 2**20,
}


def configuration(settings: Settings) -> dict[str, Any]:
    """Return librdkafka's settings for the balancer and the commit mode. A stock client has hardly any other."""
    stock = settings.client_settings == STOCK
    common: dict[str, Any] = client(settings) | {
        "bootstrap.servers": settings.bootstrap_servers,
        "group.id": settings.group,
        "client.id": settings.client_id,
        "enable.auto.commit": settings.commit == "auto",
        **({"group.instance.id": settings.client_id} if settings.membership == STATIC else {}),
        **({} if stock else LEAN),
        **settings.kafka_settings,
    }
    if settings.commit == "auto":
        common["auto.commit.interval.ms"] = max(1, settings.commit_interval_ms)
    if settings.balancer == Balancer.CONSUMER:
        return common | {"group.protocol": "consumer"}
    times = {"heartbeat.interval.ms": settings.heartbeat_ms, "session.timeout.ms": settings.session_timeout_ms}
    return common | {"partition.assignment.strategy": settings.balancer, **({} if stock else times)}


class Member:
    """Wraps a Consumer. ``say(event, **fields)`` is told of every change of assignment.

    ``on_rebalanced`` gets the length of each rebalance that ends, in seconds: from subscribing, or from what it took first from
    this member, to its assignment; None where neither was seen.
    """

    def __init__(self, settings: Settings, say: Callable[..., None]) -> None:
        self._settings, self._say = settings, say
        self._numbering = settings.numbering
        self._eager = Balancer(settings.balancer).eager
        self._consumer = Consumer(configuration(settings) | {"on_commit": self._committed})
        self._owned: set[int] = set()
        self._held: set[int] = set()
        self._processed: dict[int, int] = {}
        self._uncommitted = False
        self._leaving = False
        self._last_commit = self._asked = 0.0
        self._rebalance_began: float | None = None
        self.on_owned: Callable[[int], None] = lambda owned: None
        self.on_rebalanced: Callable[[float | None], None] = lambda seconds: None
        self.on_commit: Callable[[bool], None] = lambda good: None
        self.on_gone: Callable[[Collection[int]], None] = lambda partitions: None

    def subscribe(self) -> None:
        """Join the group."""
        self._rebalance_began = time.monotonic()
        topics = list(self._numbering.topics)
        gone = {"on_revoke": partial(self._gone, "revoked"), "on_lost": partial(self._gone, "lost")}
        self._consumer.subscribe(topics, on_assign=self._assigned, **gone)

    def fetch(self, count: int, timeout_s: float) -> Sequence[Consumed]:
        """Return up to ``count`` messages within ``timeout_s``, and serve rebalances meanwhile. Raises what can not pass."""
        messages = self._consumer.consume(count, timeout_s)
        good = [message for message in messages if message.error() is None]
        if len(good) < len(messages):
            for error in filter(None, [message.error() for message in messages]):
                if error.code() not in PASSING:
                    raise KafkaException(error)
                if error.code() not in QUIET:
                    log.warning("the consumer goes on after: %s", error.str())
        if self._numbering.single:
            return good
        number: Callable[..., int] = self._numbering.number
        return [Numbered(message, number(message.topic(), message.partition())) for message in good]

    def processed(self, partition: int, last: int) -> None:
        """Note that every message of ``partition`` up to offset ``last`` has its receipt."""
        if partition in self._owned:
            self._processed[partition] = last + 1
            self._uncommitted = True

    def hold(self, partitions: Collection[int]) -> None:
        """Pause ``partitions``, and resume every other partition that was paused."""
        if not partitions and not self._held:
            return
        wanted = self._owned.intersection(partitions)
        if begin := wanted - self._held:
            self._consumer.pause([self._place(partition) for partition in begin])
        if end := self._held - wanted:
            self._consumer.resume([self._place(partition) for partition in end])
            self._wake(sorted(end))  # without this, a resumed partition's next receipt came after 0.5 s (median of 2,249)
        self._held = wanted

    def marks(self, partitions: Collection[int]) -> list[tuple[int, int, str | None]]:
        """Partition, offset and metadata of what the group committed in ``partitions``; nothing where Kafka does not say."""
        if not partitions:
            return []
        try:
            found = self._consumer.committed([self._place(one) for one in partitions], MARK_S)
        except KafkaException as error:
            log.warning("what is committed is not known: %s", error.args[0].str())
            return []
        return [(self._number(one), one.offset, one.metadata) for one in found if one.error is None]

    def mark(self, marks: Mapping[int, tuple[int, str]]) -> None:
        """Commit an offset with metadata in each partition of ``marks``, other processed ones without, and wait."""
        done = {partition: (offset, "") for partition, offset in self._processed.items()}
        parts = [self._place(partition, *committed) for partition, committed in (done | dict(marks)).items()]
        try:
            self._consumer.commit(offsets=parts, asynchronous=False)
        except KafkaException as error:
            log.warning("not marked: %s", error.args[0].str())

    def commit_if_due(self) -> None:
        """Commit processed offsets when the commit interval has passed, without waiting for the answer."""
        now = time.monotonic()
        if self._uncommitted and now - self._last_commit >= self._settings.commit_interval_ms / 1000:
            self._last_commit = now
            self._uncommitted = False
            self._commit(list(self._processed), wait=False)

    def leave(self, deadline_s: float) -> bool:
        """Commit the processed offsets and leave the group. Returns False when ``deadline_s`` passed without the commit.

        Kafka refuses a commit during a rebalance. The member takes no more messages and stays until the rebalance is through.
        """
        end = time.monotonic() + deadline_s
        self._leaving = True
        self._consumer.pause([self._place(partition) for partition in self._owned])
        while not (safe := self._commit(list(self._processed), wait=True)) and time.monotonic() < end:
            self._consumer.poll(0.05)  # serves the rebalance; every partition is paused
        if safe:
            self._processed.clear()
            self._say("committed")
        if not self._owned and self._settings.membership != STATIC:  # a static member stays one until its session is over
            # close() alone sends no LeaveGroup for a member without partitions (docs/upstream). A new member has none between
            # the two rounds of a rebalance, and the others would wait for it until its session is over.
            self._consumer.unsubscribe()
        self._consumer.close()
        return safe

    def _commit(self, partitions: Sequence[int], wait: bool) -> bool:
        """Commit the processed offsets of ``partitions``. Returns False when ``wait`` is set and the commit was refused."""
        if self._settings.commit == "auto":
            return True
        offsets = [
            self._place(partition, self._processed[partition]) for partition in partitions if partition in self._processed
        ]
        if not offsets:
            return True
        self._asked = time.monotonic()
        if not wait:
            self._consumer.commit(offsets=offsets, asynchronous=True)
            return True
        try:
            self._consumer.commit(offsets=offsets, asynchronous=False)
        except KafkaException as error:
            return self._committed(error.args[0], offsets)
        return self._committed(None, offsets)

    def _committed(self, error: KafkaError | None, offsets: list[TopicPartition]) -> bool:
        good = error is None or error.code() in _HARMLESS
        self.on_commit(good)
        if error is not None and not good:
            # The offset is not lost. The next commit of a kept partition carries it, and a revoked one is committed again.
            self._uncommitted = True
            taken = {"partitions": sorted(map(self._number, offsets)), "seconds": time.monotonic() - self._asked}
            self._say("commit_failed", error=error.str(), **taken)
        return good

    def _assigned(self, consumer: Consumer, parts: list[TopicPartition]) -> None:
        kept = sorted(self._owned)
        if self._eager:
            consumer.assign(parts)
        else:
            consumer.incremental_assign(parts)
            self._wake(kept)
        self._owned |= set(map(self._number, parts))
        if self._leaving:
            consumer.pause(parts)
        elif self._settings.partition_warmup_ms:  # the simulated load of each partition's state: nothing is processed meanwhile
            threading.Event().wait(len(parts) * self._settings.partition_warmup_ms / 1000)
        # A rebalance that took nothing from this member first shows by its end: nobody can tell when it began.
        began, self._rebalance_began = self._rebalance_began, None
        self._tell("assigned", parts, began)
        self.on_rebalanced(None if began is None else time.monotonic() - began)

    def _gone(self, event: str, consumer: Consumer, parts: list[TopicPartition]) -> None:
        """Forget ``parts``, which are "revoked" or "lost": their next owner begins at the committed offsets."""
        began = time.monotonic()
        self._rebalance_began = self._rebalance_began or began
        gone = list(map(self._number, parts))
        if event == "revoked":
            self._commit(gone, wait=True)  # without this, 17,000 to 21,000 messages are processed twice at every step
        if held := self._held.intersection(gone):  # a paused partition must not come back paused
            self._consumer.resume([self._place(partition) for partition in sorted(held)])
        self._held -= held
        self._owned.difference_update(gone)
        for partition in gone:
            self._processed.pop(partition, None)
        self.on_gone(gone)
        if self._eager:
            consumer.unassign()
        else:
            consumer.incremental_unassign(parts)
            self._wake(sorted(self._owned))
        self._tell(event, parts, began)

    def _wake(self, kept: Sequence[int]) -> None:
        """Ask each leader of partitions that were resumed, so that its broker thread looks at the fetchers again.

        librdkafka wakes no thread when it resumes partitions after an incremental rebalance (docs/upstream). The cure also
        needs a low fetch.queue.backoff.ms. One broker leads all partitions; of several a dead leader is not waited for.
        """
        if self._settings.wake != "on":
            return
        several = "," in self._settings.bootstrap_servers
        for partition in kept if several else kept[:1]:
            part = self._place(partition)
            try:
                self._consumer.get_watermark_offsets(part, timeout=0.1 if several else 1, cached=False)
            except KafkaException as error:
                log.warning("waking the fetchers: %s", error.args[0].str())

    def _tell(self, event: str, parts: list[TopicPartition], began: float | None) -> None:
        partitions = sorted(map(self._number, parts))
        seconds = None if began is None else time.monotonic() - began
        self._say(event, partitions=partitions, owned=len(self._owned), seconds=seconds)
        self.on_owned(len(self._owned))

    def _place(self, number: int, *committed: Any) -> TopicPartition:
        """Partition ``number`` as Kafka knows it, with an offset and metadata where they are ``committed``."""
        return TopicPartition(*self._numbering.place(number), *committed)

    def _number(self, part: TopicPartition) -> int:
        return self._numbering.number(part.topic, part.partition)
