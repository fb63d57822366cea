"""A dead-letter topic: its letters, which of them wait to be replayed, and their way back to the topics they came from.

What was replayed is kept where Kafka keeps such things: in the committed offsets of a group, written once the broker has
acknowledged the replayed messages. So a second replay sends nothing again. Copies, which a killed consumer leaves (delivery to
a dead-letter topic is at least once), are told by the offset of their message and sent once. A replay that is itself killed
between an acknowledgement and its commit repeats at most ``BATCH`` letters; and two at the same time would both send: run one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lab import deadletter
from lab.deadletter import Reason
from lab.errors import InputError, LabFault
from lab.producer.send import Tally, configuration

BATCH = 500
TIMEOUT_S = 10.0
WAITING, REPLAYED, COPY = "waiting", "replayed", "copy"


@dataclass(frozen=True)
class Letter:
    """A dead letter at ``partition`` and ``offset`` of its topic: the message as it was, and why it is here."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    reason: Reason


def states(letters: Sequence[Letter], committed: Mapping[int, int]) -> list[str]:
    """What each letter is, in order: waiting, replayed (below its partition's committed offset), or a copy of one before."""
    seen: set[tuple[str, int, int]] = set()
    found = []
    for letter in letters:
        if letter.offset < committed.get(letter.partition, 0):
            found.append(REPLAYED)
        else:
            found.append(COPY if letter.reason.source in seen else WAITING)
        seen.add(letter.reason.source)
    return found


class DeadLetters:
    """One dead-letter topic, and the ``group`` whose offsets say what was replayed out of it.

    Raises :class:`InputError` for a topic that is not there and for what is no dead letter, and :class:`LabFault` when Kafka
    can't be asked.
    """

    def __init__(self, bootstrap: str, topic: str, group: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        quiet = {"bootstrap.servers": bootstrap, "log_level": 2}  # what goes wrong is raised, not logged
        self._consumer = Consumer(quiet | {"group.id": group, "enable.auto.commit": False, "auto.offset.reset": "earliest"})
        self._numbers = self._partitions(topic, "--topic")

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def committed(self) -> dict[int, int]:
        """By partition, the offset before which every letter was replayed."""
        parts = [TopicPartition(self._topic, number) for number in self._numbers]
        try:
            return {part.partition: max(0, part.offset) for part in self._consumer.committed(parts, timeout=TIMEOUT_S)}
        except KafkaException as error:
            raise LabFault(f"the offsets of {self._topic} can't be read: {error.args[0].str()}") from error

    def letters(self) -> list[Letter]:
        """Every letter there is now, by partition and offset."""
        parts = [TopicPartition(self._topic, number, 0) for number in self._numbers]
        try:
            bounds = {part.partition: self._consumer.get_watermark_offsets(part, timeout=TIMEOUT_S) for part in parts}
        except KafkaException as error:
            raise LabFault(f"the ends of {self._topic} can't be read: {error.args[0].str()}") from error
        left = {number: end for number, (start, end) in bounds.items() if end > start}
        self._consumer.assign([TopicPartition(self._topic, number, bounds[number][0]) for number in left])
        found: list[Letter] = []
        while left:
            message = self._consumer.poll(TIMEOUT_S)
            if message is None:
                raise LabFault(f"{self._topic} gave no message within {TIMEOUT_S:g} s")
            if (wrong := message.error()) is not None:
                raise LabFault(f"{self._topic} can't be read: {wrong.str()}")
            number, offset = int(message.partition() or 0), int(message.offset() or 0)
            if number in left and offset < left[number]:  # one that came meanwhile is for the next time
                found.append(self._letter(message))
                if offset + 1 == left[number]:
                    del left[number]
        self._consumer.unassign()
        return sorted(found, key=lambda letter: (letter.partition, letter.offset))

    def replay(self) -> tuple[Tally, dict[str, int]]:
        """Send each waiting letter back to its topic and partition, with one replay more in its headers.

        Returns what became of those sent, and how many letters were of each state. What was not acknowledged, and all behind it
        in its partition, waits for the next replay.
        """
        letters = self.letters()
        known = states(letters, self.committed())
        for name in sorted({letter.reason.topic for letter in letters}):
            count = len(self._partitions(name, deadletter.TOPIC))
            for letter in letters:
                if letter.reason.topic == name and letter.reason.partition >= count:
                    raise InputError(
                        self._where(letter), deadletter.PARTITION, letter.reason.partition, f"below {count}, as in {name}"
                    )
        producer, tally = Producer(configuration(self._bootstrap, "dlq-replay")), Tally()
        waiting = [(letter, state) for letter, state in zip(letters, known, strict=True) if state != REPLAYED]
        for at in range(0, len(waiting), BATCH):
            if not self._send(producer, tally, waiting[at : at + BATCH]):
                break
        return tally, {state: known.count(state) for state in (WAITING, REPLAYED, COPY)}

    def _send(self, producer: Producer, tally: Tally, batch: Sequence[tuple[Letter, str]]) -> bool:
        """Send those of ``batch`` that wait and commit past what was acknowledged; False when something was not."""
        refused: set[tuple[int, int]] = set()

        def delivered(letter: Letter) -> Any:
            def told(error: KafkaError | None, message: object) -> None:
                tally.delivered(error, message)
                if error is None:
                    refused.discard((letter.partition, letter.offset))

            return told

        for letter, state in batch:
            if state != WAITING:
                continue
            refused.add((letter.partition, letter.offset))  # until it is acknowledged
            headers: list[tuple[str, str | bytes | None]] = [*deadletter.again(letter.headers)]
            to = letter.reason
            producer.produce(to.topic, letter.value, letter.key, to.partition, on_delivery=delivered(letter), headers=headers)
            tally.sent += 1
        producer.flush()
        ends: dict[int, int] = {}
        stuck: set[int] = set()
        for letter, _ in batch:
            if (letter.partition, letter.offset) in refused:
                stuck.add(letter.partition)
            if letter.partition not in stuck:
                ends[letter.partition] = letter.offset + 1
        if ends:
            offsets = [TopicPartition(self._topic, number, offset) for number, offset in ends.items()]
            try:
                self._consumer.commit(offsets=offsets, asynchronous=False)
            except KafkaException as error:
                raise LabFault(f"what was replayed could not be noted: {error.args[0].str()}") from error
        return not refused

    def _partitions(self, topic: str, field: str) -> list[int]:
        try:
            described = self._consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        except KafkaException as error:
            raise LabFault(f"Kafka at {self._bootstrap} can't be asked: {error.args[0].str()}") from error
        if described.error is not None or not described.partitions:
            raise InputError(f"Kafka at {self._bootstrap}", field, topic, "a topic that is there")
        return sorted(described.partitions)

    def _letter(self, message: Message[Any, Any]) -> Letter:
        partition, offset = int(message.partition() or 0), int(message.offset() or 0)
        headers: Any = message.headers() or []
        try:
            reason = deadletter.read(headers)
        except ValueError as error:
            where = f"{self._topic}, partition {partition}, offset {offset}"
            raise InputError(where, "headers", str(error), "those of a dead letter (lab/deadletter.py)") from None
        return Letter(partition, offset, message.key(), message.value(), headers, reason)

    def _where(self, letter: Letter) -> str:
        return f"{self._topic}, partition {letter.partition}, offset {letter.offset}"
