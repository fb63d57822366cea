"""``python -m lab.consumer``: consume, process, make the receipt durable, commit; on SIGTERM drain and leave."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time

from confluent_kafka import Message, Producer

from lab.consumer.batch import summarize
from lab.consumer.downstream import Receipts, Slots
from lab.consumer.member import Member
from lab.consumer.metrics import Metrics, serve
from lab.consumer.settings import Settings, flags, settings
from lab.reports import Reports, process_started

log = logging.getLogger("lab.consumer")


class Program:
    """The consumer's one loop, and the state its probes and signals share."""

    def __init__(self, chosen: Settings) -> None:
        self._settings = chosen
        self._metrics = Metrics()
        self._producer = Producer(
            {
                "bootstrap.servers": chosen.bootstrap_servers,
                "client.id": chosen.client_id,
                "acks": "all",
                "enable.idempotence": True,
                "linger.ms": 0,
                "delivery.timeout.ms": 30_000,
            }
        )
        self._reports = Reports(self._producer, chosen.reports_topic, chosen.client_id)
        self._receipts = Receipts(self._producer, chosen.receipts_topic)
        self._member = Member(chosen, self._say)
        self._member.on_rebalanced = self._rebalanced
        self._member.on_commit = lambda good: self._metrics.commits.labels("ok" if good else "failed").inc()
        self._slots = Slots(chosen.concurrency)
        self._stopping = threading.Event()
        self._abandon = threading.Event()
        self._subscribed = False
        self._alive_at = time.monotonic()
        self._drained_by = 0.0

    def _say(self, event: str, **fields: object) -> None:
        self._reports.say(event, **fields)
        self._producer.poll(0)

    def _rebalanced(self, owned: int, seconds: float) -> None:
        self._metrics.assigned.set(owned)
        if seconds > 0:
            self._metrics.rebalances.inc()
            self._metrics.rebalance_duration.observe(seconds)

    def healthy(self) -> bool:
        """Whether the loop has turned within the last minute, or is in a batch that takes that long."""
        return time.monotonic() - self._alive_at < 60 + self._settings.process_ms.high / 1000

    def terminate(self, *_: object) -> None:
        """SIGTERM with drain on: stop polling; give up work in flight only after the drain timeout."""
        self._stopping.set()
        self._drained_by = time.monotonic() + self._settings.drain_timeout_s
        timer = threading.Timer(self._settings.drain_timeout_s, self._abandon.set)
        timer.daemon = True
        timer.start()

    def ready(self) -> bool:
        """Whether the member has asked to join the group and is not leaving it."""
        return self._subscribed

    def run(self) -> None:
        """Consume until told to stop."""
        self._say("started", created=process_started())
        if not self._settings.join:
            self._stand_by()
            return
        self._member.subscribe()
        self._subscribed = True
        self._say("subscribed")
        abandoned = False
        while not self._stopping.is_set() and not abandoned:
            self._alive_at = time.monotonic()
            messages = self._member.fetch(self._settings.poll_size, self._settings.batch_ms / 1000)
            size = self._settings.batch_size
            abandoned = not all(self._process(messages[at : at + size]) for at in range(0, len(messages), size))
            self._member.commit_if_due()
        self._subscribed = False
        self._say("draining", abandoned=abandoned)
        committed = self._member.leave(max(1.0, self._drained_by - time.monotonic()))
        self._say("left", committed=committed)
        self._producer.flush(10)

    def _stand_by(self) -> None:
        """Be there, ready and idle, until told to stop: the control for what a starting pod costs its neighbours."""
        self._subscribed = True
        while not self._stopping.wait(1.0):
            self._alive_at = time.monotonic()
        self._producer.flush(10)

    def _process(self, messages: list[Message]) -> bool:
        """Process one batch. False when the drain timeout gave it up: no receipt, no commit, someone else's work now."""
        started, begun = time.time(), time.monotonic()
        self._metrics.inflight.set(len(messages))
        rows = ((message.partition(), message.offset(), message.value()) for message in messages)
        cost_ms, receipts = summarize(rows, self._settings.process_ms, self._settings.client_id)  # type: ignore[arg-type]
        if not self._slots.work(cost_ms, self._abandon):
            return False
        ended = time.time()
        for receipt in receipts:
            receipt.start, receipt.end = started, ended
        self._receipts.write(receipts)
        for receipt in receipts:
            self._member.processed(receipt.partition, receipt.last)
        self._metrics.inflight.set(0)
        self._metrics.done(len(messages), time.monotonic() - begun)
        return True


def main() -> int:
    """Run the consumer; exit 0 after an orderly leave."""
    parser = flags()
    chosen = settings(parser.parse_args())
    logging.basicConfig(level=os.environ.get("LOG_LEVEL", "INFO"), format="%(asctime)s %(message)s")
    program = Program(chosen)
    if chosen.drain:
        signal.signal(signal.SIGTERM, program.terminate)
        signal.signal(signal.SIGINT, program.terminate)
    else:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # as a consumer without a handler: dies where it stands
    with parser.listening(chosen.metrics_port):
        serve(chosen.pod_ip, chosen.metrics_port, program.ready, program.healthy)
    program.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
