"""What a consumer wrote, and what was seen of its group from outside, read while it is rehearsed."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from lab import validation
from lab.conformance.seen import Owned, Seen
from lab.errors import InputError
from lab.kafka.lag import LagReader
from lab.record import contract

ANSWER_S = 5.0
GONE_S = 10.0
LOOK_S = 0.05


class Outputs:
    """Reads the topics of ``reports``, of ``receipts``, and of what the observer ``watched`` into ``seen``.

    It compares what is committed with the receipts all the while: it asks for offsets first, and then reads all receipts.
    ``login`` has the settings of a client that logs in, none where Kafka does not ask for it.
    """

    def __init__(self, bootstrap: str, seen: Seen, reports: str, receipts: str, watched: str, login: Mapping[str, str]) -> None:
        self._seen, self._receipts = seen, receipts
        self._take: dict[str, Callable[[Any], None]] = {
            reports: self._report,
            receipts: self._receipt,
            watched: self._watch,
        }
        own: dict[str, Any] = {"group.id": "lab-conformance", "enable.auto.commit": False, "log_level": 2, **login}
        self._consumer = Consumer({"bootstrap.servers": bootstrap, "fetch.wait.max.ms": 20, **own})
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in self._take])
        self._lag = LagReader(bootstrap, seen.group, seen.topic, settings=login)
        self._owned: dict[str, frozenset[int]] = {}
        self._elsewhere: set[str] = set()
        self._rows: list[dict[str, Any]] = []  # reports, as they came
        self._covered: dict[int, int] = {}
        self._at = dict.fromkeys(self._take, 0)  # what comes next in each topic
        self._stop = threading.Event()
        self.traffic = False  # messages come
        self._thread = threading.Thread(target=self._follow, name="outputs", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._stop.set()
        self._thread.join(GONE_S)
        self._consumer.close()

    @property
    def owned(self) -> Owned:
        """The partitions of each member that has some, as they were seen from outside."""
        return {name: held for name, held in dict(self._owned).items() if held}

    @property
    def elsewhere(self) -> tuple[str, ...]:
        """Topics that members read, and that are not the rehearsal's."""
        return tuple(sorted(self._elsewhere))

    def told(self, logs: Mapping[str, Path]) -> tuple[Owned, int, str]:
        """What each pod of ``logs`` owns by its reports, how many reports there are, and what is wrong with a bad one."""
        owned: dict[str, frozenset[int]] = {}
        rows = [*self._rows, *(row | {"pod": pod} for pod, log in logs.items() for row in _lines(log))]
        wrong = ""
        for row in rows:
            try:
                report: contract.Report = validation.read(contract.Report, row, "a report")
            except InputError as error:
                wrong = wrong or str(error)
                continue
            before = owned.get(report.pod or "", frozenset())
            gone = report.event != contract.ASSIGNED
            now = owned[report.pod or ""] = before - set(report.partitions) if gone else before | set(report.partitions)
            if len(now) != report.owned:
                wrong = wrong or f"{report.pod} says that it owns {report.owned}, and by its reports it owns {len(now)}: {row}"
        return {pod: held for pod, held in owned.items() if pod in logs}, len(rows), wrong

    def settle(self) -> None:
        """Read what is left, and then no more. Raises ``KafkaException`` when Kafka does not answer."""
        self._stop.set()
        self._thread.join(GONE_S)
        self._consume()

    def _follow(self) -> None:
        while not self._stop.wait(LOOK_S):
            with suppress(KafkaException):
                committed = {number: part.committed or 0 for number, part in self._lag.read().items()}
                self._consume()
                for number, offset in committed.items():
                    if offset > (covered := self._covered.get(number, 0)):
                        self._seen.ahead.append((number, offset, covered))

    def _consume(self) -> None:
        """Read all that is there by now. Raises ``KafkaException`` when Kafka does not answer."""
        asked = {topic: self._consumer.get_watermark_offsets(TopicPartition(topic, 0), ANSWER_S) for topic in self._at}
        ends = {topic: found[1] for topic, found in asked.items() if found}
        deadline = time.monotonic() + ANSWER_S
        while any(self._at[topic] < end for topic, end in ends.items()) and time.monotonic() < deadline:
            for message in self._consumer.consume(1000, LOOK_S):
                if message.error() is None:
                    self._one(message)

    def _one(self, message: Message) -> None:
        topic = str(message.topic())
        self._at[topic] = (message.offset() or 0) + 1
        try:
            row = json.loads(message.value() or b"null")
        except ValueError:
            row = repr(message.value())
        self._take[topic](row)

    def _report(self, row: Any) -> None:
        if isinstance(row, dict) and row.get("event") in contract.CHANGES:
            self._rows.append(row)

    def _receipt(self, row: Any) -> None:
        seen = self._seen
        try:
            validation.read(contract.Receipt, row, f"record {self._at[self._receipts] - 1} of $RECEIPTS_TOPIC")
        except InputError as error:
            seen.bad_receipt = seen.bad_receipt or str(error)
            return
        seen.receipts.append(row)
        self._covered[row["partition"]] = max(self._covered.get(row["partition"], 0), row["last"] + 1)

    def _watch(self, row: Any) -> None:
        if row["event"] == "committed" and self.traffic:
            for number, offset in row["offsets"].items():
                self._seen.commits.setdefault(int(number), []).append((row["t"], offset))
        elif row["event"] == "elsewhere":
            self._elsewhere.update(row["topics"])
        elif row["event"] in contract.CHANGES:
            held, moved = self._owned.get(row["pod"], frozenset()), set(row["partitions"])
            self._owned[row["pod"]] = held | moved if row["event"] == contract.ASSIGNED else held - moved


def _lines(log: Path) -> Iterable[dict[str, Any]]:
    """The reports among the lines of a process's output."""
    return filter(None, map(contract.line, log.read_text(errors="replace").splitlines()))
