"""``python -m lab.programs.observer``: it looks at a consumer group from outside, and reports what changed.

What it reports of a member is what the lab's own consumer says of itself, so a record of a consumer that says nothing reads
alike: ``assigned`` and ``revoked``, as seen when the coordinator was asked. It adds ``committed``, with the ``offsets`` that
changed and the ``ends`` of these partitions, and ``elsewhere``, with topics that a member reads and that are not the trial's.
``look`` counts the times it asked: who owned what comes before what was committed, in each.

It is a process of its own: an admin client that asks about groups may end its process (librdkafka #5397 and #5040), and who
started it starts it again. A report then comes anew of each member, and of each committed offset.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from dataclasses import asdict
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from lab.errors import InputError
from lab.flags import SWITCH, Flags, whole
from lab.inputs import settings as declarations
from lab.inputs import topics
from lab.kafka.lag import TIMEOUT_S, LagReader
from lab.kafka.login import kafka_flags
from lab.kafka.membership import Member, Roster
from lab.kafka.numbering import Numbering
from lab.programs.telemetry import Reports, reporter, serve

log = logging.getLogger("lab.programs.observer")


class Observer:
    """Asks about ``group`` once at each :meth:`look`, about its members too if it ``asks``, and says what changed."""

    def __init__(
        self, bootstrap: str, group: str, on: Numbering, login: dict[str, str], reports: Reports, asks: bool = True
    ) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 2, **login})
        self._lag = LagReader(bootstrap, group, on, settings=login)
        self._group, self._on, self._say, self._asks = group, on, reports.say, asks
        self._roster, self._elsewhere = Roster(), dict[str, frozenset[str]]()
        self._committed: dict[int, int] = {}
        self._looks = 0
        self.answered = False  # whether Kafka has, once

    def look(self) -> None:
        """Ask once. Raises ``KafkaException`` when Kafka does not answer."""
        self._looks += 1  # also of a question that is answered in part
        looks = self._looks
        members = self._members() if self._asks else []
        for change in self._roster.update(members):
            row = asdict(change)
            self._say(row.pop("event"), pod=row.pop("name"), seconds=None, look=looks, **row)
        names = self._roster.names
        for member in members:
            if member.elsewhere and self._elsewhere.get(member.identity) != member.elsewhere:
                self._elsewhere[member.identity] = member.elsewhere
                self._say("elsewhere", pod=names[member.identity], topics=sorted(member.elsewhere))
        lags = self._lag.read()
        committed = {number: part.committed for number, part in lags.items() if part.committed is not None}
        if moved := {number: offset for number, offset in committed.items() if self._committed.get(number) != offset}:
            self._say("committed", offsets=moved, ends={number: lags[number].end for number in moved}, look=looks)
        self._committed = committed
        self.answered = True

    def _members(self) -> list[Member]:
        described = self._admin.describe_consumer_groups([self._group], request_timeout=TIMEOUT_S)[self._group].result()
        return [self._member(one) for one in described.members]

    def _member(self, one: Any) -> Member:
        parts = one.assignment.topic_partitions if one.assignment else []
        own = [part for part in parts if part.topic in self._on.topics]
        numbers = frozenset(self._on.number(part.topic, part.partition) for part in own)
        others = frozenset(part.topic for part in parts) - set(self._on.topics)
        return Member(one.member_id, one.client_id, numbers, others)


def main() -> int:
    """Look every ``--interval-ms`` until SIGTERM."""
    parser = Flags(prog="python -m lab.programs.observer", description=__doc__)
    kafka_flags(parser)
    parser.serving(metrics_port=9309)
    declarations.add_flags(parser, topics.Settings)
    parser.flag("group", str, "enrich", "consumer group")
    parser.flag("reports-topic", str, "reports", "topic for what it reports")
    parser.flag("interval-ms", whole(50, 60_000), 200, "time between two questions, ms")
    parser.flag("members", SWITCH, "on", "off: look at what is committed alone")
    options = parser.parse_args()
    try:
        numbering = topics.settings(options).numbering
    except InputError as error:
        parser.error(str(error))
    logging.basicConfig(level=logging.INFO)
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    who = os.environ.get("HOSTNAME", "observer")
    producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who)
    login, asks = options.kafka_settings, options.members == "on"
    observer = Observer(options.bootstrap_servers, options.group, numbering, login, reports, asks)
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, lambda: observer.answered, lambda: True)
    while not stop.wait(options.interval_ms / 1000):
        try:
            observer.look()
        except KafkaException as error:
            log.warning("the group %s could not be looked at: %s", options.group, error.args[0].str())
    producer.flush(10)
    return 0


if __name__ == "__main__":
    sys.exit(main())
