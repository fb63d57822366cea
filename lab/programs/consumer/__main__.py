"""``python -m lab.programs.consumer``: the consumer's program. On SIGTERM it drains and leaves the group."""

from __future__ import annotations

import gc
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Collection, Iterator, Sequence

from confluent_kafka import Producer

from lab import clock
from lab.errors import InputError
from lab.inputs.consumer import FAIL, Settings, cores, flags, settings
from lab.kafka import deadletter
from lab.kafka.deadletter import Reason
from lab.programs.consumer.deaths import Deaths, Unit
from lab.programs.consumer.downstream import Receipt, SharedSlots, Slots, Store, summarize
from lab.programs.consumer.member import Member
from lab.programs.consumer.metrics import Metrics
from lab.programs.consumer.poison import strike
from lab.programs.consumer.retries import Consumed, Retries, seq_of
from lab.programs.telemetry import Reports, process_started, serve

COLLECT_AFTER = 100_000  # objects; a fetch of the largest pods has some 10,000


class Program:
    """The consumer's one loop, and the state that its probes and signals share."""

    def __init__(self, chosen: Settings) -> None:
        self._settings = chosen
        self._metrics = Metrics()
        self._producer = Producer(
            {
                "bootstrap.servers": chosen.bootstrap_servers,
                "client.id": chosen.client_id,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 5,  # receipts of one fetch share requests; a flush doesn't linger
                "delivery.timeout.ms": 30_000,
                **chosen.kafka_settings,
            }
        )
        self._say = Reports(self._producer, chosen.reports_topic, chosen.client_id).say
        topics = chosen.receipts_topic, chosen.dlq_topic, chosen.output_topic
        self._store = Store(self._producer, *topics, self._processed)
        self._retries = Retries(chosen.failures, chosen.backoff, chosen.dlq == "on")
        self._deaths = Deaths(chosen.most_deaths) if chosen.most_deaths else None
        self._poison = chosen.failures if chosen.poison_mode != FAIL else None
        self._member = Member(chosen, self._say)
        self._member.on_owned = self._metrics.assigned.set
        self._member.on_rebalanced = self._rebalanced
        self._member.on_commit = lambda good: self._metrics.commits.labels("ok" if good else "failed").inc()
        self._member.on_gone = self._forget
        self._slots: Slots | SharedSlots = (
            SharedSlots(chosen.concurrency, chosen.store_address, chosen.store_token)
            if chosen.store_slots
            else Slots(chosen.concurrency, chosen.burn)
        )
        self._stopping = threading.Event()
        self._abandon = threading.Event()
        self._subscribed = False
        self._alive_at = time.monotonic()
        self._drained_by = 0.0
        self._signalled: float | None = None

    def _rebalanced(self, seconds: float | None) -> None:
        self._metrics.rebalances.inc()
        if seconds is not None:
            self._metrics.rebalance_duration.observe(seconds)

    def _forget(self, partitions: Collection[int]) -> None:
        self._retries.forget(partitions)
        if self._deaths is not None:
            self._deaths.forget(partitions)

    def healthy(self) -> bool:
        """Return whether the loop has turned within half of ``liveness_s``. A message that takes longer extends the limit."""
        return time.monotonic() - self._alive_at < self._settings.liveness_s / 2 + self._settings.cost.high / 1000

    def terminate(self, *_: object) -> None:
        """Begin the drain on SIGTERM: polling stops, and work in flight is given up only after the drain timeout."""
        self._signalled = self._signalled or clock.now()
        self._stopping.set()
        self._drained_by = time.monotonic() + self._settings.drain_timeout
        timer = threading.Timer(self._settings.drain_timeout, self._abandon.set)
        timer.daemon = True
        timer.start()

    def ready(self) -> bool:
        """Return whether the member has asked to join the group and is not leaving it."""
        return self._subscribed

    def run(self) -> None:
        """Consume until SIGTERM, and then drain and leave."""
        created = process_started()
        self._say("started", created=created)
        self._start_up(created + self._settings.start_s)
        if self._settings.join == "off":
            self._stand_by()
            return
        if not self._stopping.is_set():
            self._member.subscribe()
            self._subscribed = True
            self._say("subscribed")
        abandoned = False
        poll_size, wait_s = self._settings.poll_size, self._settings.batch_ms / 1000
        while not self._stopping.is_set() and not abandoned:
            self._alive_at = time.monotonic()
            fetched = self._member.fetch(poll_size, self._retries.wait_s(self._alive_at, wait_s))
            messages = self._retries.take(fetched, time.monotonic())
            abandoned = not all(self._work(unit) for unit in self._units(messages))
            if messages:
                self._store.settle()
            self._member.hold(self._retries.stalled)
            self._metrics.retrying.set(len(self._retries.stalled))
            self._member.commit_if_due()
        self._subscribed = False
        self._say("draining", abandoned=abandoned, signalled=self._signalled)
        committed = self._member.leave(max(1.0, self._drained_by - time.monotonic()))
        self._say("left", committed=committed)
        self._producer.flush(10)

    def _start_up(self, until: float) -> None:
        """Be alive and not ready until ``until``, epoch seconds, or until told to stop: the cold start that is declared."""
        while (left_s := until - clock.now()) > 0 and not self._stopping.wait(min(left_s, 1.0)):
            self._alive_at = time.monotonic()

    def _stand_by(self) -> None:
        """Stay ready and idle until SIGTERM. Such a pod is the control for the cost of a starting pod to its neighbours."""
        self._subscribed = True
        while not self._stopping.wait(1.0):
            self._alive_at = time.monotonic()
        self._producer.flush(10)

    def _units(self, messages: Sequence[Consumed]) -> Iterator[Unit]:
        """Yield ``messages`` as they are to be taken; where deaths are counted, each unit is marked before."""
        if self._deaths is None:
            yield Unit(messages)
            return
        for partition, offset, metadata in self._member.marks(self._deaths.unknown(messages)):
            self._deaths.learn(partition, offset, metadata)
        for unit in self._deaths.units(messages):
            self._store.settle()
            self._member.mark({partition: (offset, str(mark)) for partition, (offset, mark) in unit.marks.items()})
            yield unit

    def _work(self, unit: Unit) -> bool:
        """Process a unit batch by batch, or bury what is not to be tried. Returns False like :meth:`_process`."""
        size = self._settings.batch_size
        if unit.dead:
            (message,) = unit.messages
            self._bury(message, f"{unit.deaths} consumers died with it", unit.deaths, clock.now())
            return True
        return all(self._process(unit.messages[at : at + size]) for at in range(0, len(unit.messages), size))

    def _process(self, messages: Sequence[Consumed]) -> bool:
        """Process one batch. Returns False when the drain timeout gave it up: it then has no receipt and no commit."""
        started, self._alive_at = clock.now(), time.monotonic()  # of several batches each may take its time
        self._metrics.inflight.set(len(messages))
        if self._poison is not None:
            strike(messages, self._poison, self._settings.poison_mode)
        tried = self._retries.attempt(messages)
        cost = self._settings.cost
        cost_ms, receipts = summarize(tried.good, cost, self._settings.client_id)
        cost_ms += cost.total([seq_of(message) for message in tried.bad])
        if not self._slots.work(cost_ms, self._abandon):
            return False
        ended = clock.now()
        for receipt in receipts:
            receipt.start, receipt.end = started, ended
        if self._settings.emit == "on":
            self._store.emit(tried.good, ended)
        self._store.write(receipts)
        if tried.recovered or tried.bad:
            self._store.settle()  # what is said of a message, and a dead letter, come after the receipts before them
        for message, attempts in tried.recovered:
            self._metrics.recovered.inc()
            self._say("recovered", partition=message.partition(), offset=message.offset(), attempts=attempts + 1)
        for message in tried.bad:
            self._fail(message)
        self._metrics.inflight.set(0)
        return True

    def _processed(self, receipts: Sequence[Receipt]) -> None:
        """Note that the ``receipts`` of a batch are durable."""
        for receipt in receipts:
            self._member.processed(receipt.partition, receipt.last)
        self._metrics.done(sum(receipt.count for receipt in receipts), clock.now() - receipts[0].start)

    def _fail(self, message: Consumed) -> None:
        """Let a message that failed wait for its next attempt, or bury it as a durable dead letter and commit past it."""
        partition, offset = message.partition(), message.offset()
        failed = self._retries.failed(message, time.monotonic(), clock.now())
        self._metrics.failed.inc()
        self._say("failed", partition=partition, offset=offset, attempts=failed.attempts, retry_in_s=failed.retry_in_s)
        if failed.retry_in_s is None:
            error = f"processing failed, as injected: {failed.attempts} attempts"
            self._bury(message, error, failed.attempts, failed.first_failure)
            self._retries.buried(message, time.monotonic())

    def _bury(self, message: Consumed, error: str, attempts: int, first_failure: float) -> None:
        """Make ``message`` a durable dead letter, and commit past it. ``first_failure`` is in epoch s."""
        partition, offset = message.partition(), message.offset()
        replays = deadletter.replays(message.headers())
        topic, there = self._settings.numbering.place(partition)
        self._store.bury(message, Reason(error, attempts, topic, there, offset, first_failure, clock.now(), replays))
        self._member.processed(partition, offset)
        self._metrics.dead_lettered.inc()
        self._say("dead_lettered", partition=partition, offset=offset, attempts=attempts)


def pin(wanted: Collection[int]) -> None:
    """Let this process, and the threads that it starts from now on, run on the cores ``wanted`` alone; none: on all as before.

    Raises :class:`InputError` for one that this process does not have.
    """
    if not wanted:
        return
    there = os.sched_getaffinity(0)
    if absent := set(wanted) - there:
        raise InputError("command line", "--cpus", min(absent), f"the cores of this process, {sorted(there)}")
    os.sched_setaffinity(0, wanted)


def main() -> int:
    """Run the consumer. The exit code is 0 after an orderly leave."""
    parser = flags()
    try:
        chosen = settings(parser.parse_args())
        _ = chosen.numbering  # raises for several topics without topic_partitions
        pin(cores(chosen.cpus))
    except InputError as error:
        parser.error(str(error))
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"), format="%(asctime)s %(message)s")
    program = Program(chosen)
    if chosen.drain == "on":
        signal.signal(signal.SIGTERM, program.terminate)
        signal.signal(signal.SIGINT, program.terminate)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # a consumer without a handler dies where it stands
    with parser.listening(chosen.metrics_port):
        serve(chosen.pod_ip, chosen.metrics_port, program.ready, program.healthy)
    # The loop makes no cycles. The collector would walk through the messages of every fetch and find nothing, for an eighth of
    # the CPU; it still runs when so many objects stay.
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER)
    program.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
