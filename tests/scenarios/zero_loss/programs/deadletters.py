"""A dead-letter topic: its letters, which of them wait to be replayed, and their way back to the topics they came from.

What was replayed is kept where Kafka keeps such things: in the committed offsets of a group, written once the broker has
acknowledged the replayed messages. So a second replay sends nothing again. Kafka forgets the offsets of a group without
members some time after its last commit (``offsets.retention.minutes``, 7 days by default); so each replay commits all of them
anew, and where there is none a replay begins only when it is told to.

Copies, which a killed consumer leaves (delivery to a dead-letter topic is at least once), are sent once. A replay that is
itself killed between an acknowledgement and its commit repeats at most ``BATCH`` letters; and two at the same time would both
send: run one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from lab.errors import InputError, LabFault
from lab.kafka import deadletter
from lab.kafka.deadletter import Reason
from lab.programs.producer.send import Tally, configuration

BATCH = 100
NAMED = 20  # of what was not sent; counts have all
TIMEOUT_S = 10.0
# What a broker says that has just started, or has just become the group's coordinator.
_SOON = {KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.COORDINATOR_NOT_AVAILABLE, KafkaError.NOT_COORDINATOR}
WAITING, DONE, COPY, OTHER, GONE, FOREIGN = STATES = ("waiting", "done", "copy", "other", "gone", "foreign")


@dataclass(frozen=True)
class Letter:
    """A dead letter at ``partition`` and ``offset`` of its topic: the message as it was, and why it is here."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]
    reason: Reason

    @property
    def message(self) -> tuple[object, ...]:
        """What two letters share that are copies. Not the place alone: a topic that is made anew counts from 0 again."""
        return *self.reason.source, self.key, self.value


@dataclass(frozen=True)
class Foreign:
    """A message in the topic that is no dead letter, and ``why`` it is none."""

    partition: int
    offset: int
    why: str


Entry = Letter | Foreign


@dataclass(frozen=True)
class Replay:
    """What a replay did: its acknowledgements, how many entries were of each state, and how many letters still wait.

    ``passed_over`` are those of this replay that can't be sent at all; ``named`` says what they, and the refused, are.
    """

    tally: Tally
    states: Mapping[str, int]
    left: int
    passed_over: int
    named: Sequence[str]


def states(
    entries: Sequence[Entry], committed: Mapping[int, int], there: Set[tuple[str, int]], to: Set[str] | None = None
) -> list[str]:
    """What each entry is, in order.

    Below its partition's committed offset an entry is done: replayed, or passed over. Of the others a letter waits; or it is a
    copy of one that is done or stands before it; or gone, when its topic and partition are not ``there``; or foreign; or of
    another topic than those in ``to`` (None: all).
    """
    below = [entry.offset < committed.get(entry.partition, 0) for entry in entries]
    seen = {entry.message for entry, done in zip(entries, below, strict=True) if done and isinstance(entry, Letter)}
    found = []
    for entry, done in zip(entries, below, strict=True):
        if done:
            found.append(DONE)
        elif isinstance(entry, Foreign):
            found.append(FOREIGN)
        elif to is not None and entry.reason.topic not in to:
            found.append(OTHER)
        elif (entry.reason.topic, entry.reason.partition) not in there:
            found.append(GONE)
        else:
            found.append(COPY if entry.message in seen else WAITING)
            seen.add(entry.message)
    return found


def resend(entries: Sequence[Entry], known: Sequence[str], send: Callable[[Letter], bool]) -> Iterator[tuple[int, int]]:
    """Send what waits, one at a time; yields (partition, offset) of each entry that is done with by that.

    A partition ends where ``send`` refuses a letter (False): what is behind it would be sent again with it. It also ends at a
    copy of a letter that was not sent: done with, it would pass for that letter's replay.
    """
    sent = {entry.message for entry, state in zip(entries, known, strict=True) if state == DONE and isinstance(entry, Letter)}
    ended: set[int] = set()
    for entry, state in zip(entries, known, strict=True):
        if state == DONE or entry.partition in ended:
            continue
        if isinstance(entry, Letter) and state in (WAITING, COPY):
            if state == WAITING and send(entry):
                sent.add(entry.message)
            if entry.message not in sent:
                ended.add(entry.partition)
                continue
        yield entry.partition, entry.offset


class DeadLetters:
    """One dead-letter topic, and the ``group`` whose offsets say what was replayed out of it; ``settings`` are the client's.

    Raises :class:`InputError` for a topic that is not there, and :class:`LabFault` when Kafka can't be asked.
    """

    def __init__(self, bootstrap: str, topic: str, group: str, settings: Mapping[str, str] | None = None) -> None:
        self._bootstrap, self._topic, self._group = bootstrap, topic, group
        self._quiet: dict[str, Any] = {"bootstrap.servers": bootstrap, "log_level": 2, **(settings or {})}  # errors are raised
        reading = {
            "group.id": group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "enable.partition.eof": True,
        }
        self._consumer = Consumer(self._quiet | reading)
        self._numbers = self._partitions(topic)
        if not self._numbers:
            raise InputError(f"Kafka at {bootstrap}", "--topic", topic, "a topic that is there")

    def close(self) -> None:
        """Let go of the connection."""
        self._consumer.close()

    def committed(self) -> dict[int, int]:
        """By partition, the offset before which every entry is done with; without those in which the group has none."""
        parts = [TopicPartition(self._topic, number) for number in self._numbers]
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            try:
                found = self._consumer.committed(parts, timeout=TIMEOUT_S)
                wrong = next((part.error for part in found if part.error is not None), None)
            except KafkaException as error:
                wrong = error.args[0]
            if wrong is None:
                break
            if wrong.code() not in _SOON or time.monotonic() > deadline:
                raise LabFault(f"the offsets of {self._topic} can't be read: {wrong.str()}")
            self._consumer.poll(0.2)
        return {part.partition: part.offset for part in found if part.offset >= 0}

    def entries(self) -> list[Entry]:
        """Every message there is now, by partition and offset."""
        bounds = self._bounds()
        left = {number: end for number, (start, end) in bounds.items() if end > start}
        self._consumer.assign([TopicPartition(self._topic, number, bounds[number][0]) for number in left])
        found: list[Entry] = []
        while left:
            message = self._consumer.poll(TIMEOUT_S)
            if message is None:
                raise LabFault(f"{self._topic} gave no message within {TIMEOUT_S:g} s")
            number, offset = int(message.partition() or 0), int(message.offset() or 0)
            if (wrong := message.error()) is not None:
                if wrong.code() != KafkaError._PARTITION_EOF:
                    raise LabFault(f"{self._topic} can't be read: {wrong.str()}")
                left.pop(number, None)  # its last offset may be a transaction's marker, or compacted away
            elif number in left:
                if offset < left[number]:  # one that came meanwhile is for the next time
                    found.append(_entry(message, number, offset))
                if offset + 1 >= left[number]:
                    del left[number]
        self._consumer.unassign()
        return sorted(found, key=lambda entry: (entry.partition, entry.offset))

    def there(self, entries: Sequence[Entry]) -> set[tuple[str, int]]:
        """Topic and partition of all those that ``entries`` would go back to."""
        names = {entry.reason.topic for entry in entries if isinstance(entry, Letter)}
        return {(name, number) for name in names for number in self._partitions(name)}

    def replay(self, to: Set[str], from_beginning: bool = False, pass_over_others: bool = False) -> Replay:
        """Send each waiting letter back to its topic, one of ``to``, and partition, with one replay more in its headers.

        What is refused waits for the next replay, with all behind it in its partition of this topic. Raises
        :class:`InputError`, before anything is sent, when the group has no offset in a partition that holds entries, unless
        ``from_beginning``; and when a letter names another topic, whoever wrote it there, unless ``pass_over_others``.
        """
        committed, bounds = self.committed(), self._bounds()
        for number, (start, end) in bounds.items():
            if number not in committed and end > start and not from_beginning:
                allowed = "a group that has replayed this topic before and whose offsets Kafka still keeps (7 days by default, "
                allowed += "offsets.retention.minutes); with --from-beginning also one that has not"
                raise InputError(f"{self._topic}, partition {number}", "--group", self._group, allowed)
        committed = {number: start for number, (start, _) in bounds.items()} | committed
        entries = self.entries()
        known = states(entries, committed, self.there(entries), to)
        others = {e.reason.topic for e, state in zip(entries, known, strict=True) if state == OTHER and isinstance(e, Letter)}
        if others and not pass_over_others:
            allowed = f"the topics that letters name, here also {', '.join(sorted(others))}; or --pass-over-others"
            raise InputError(self._topic, "--to", ",".join(sorted(to)), allowed)
        self._commit(committed)  # anew: all of them grow old together; and a group that can't commit has sent nothing yet
        at = {(entry.partition, entry.offset): (entry, state) for entry, state in zip(entries, known, strict=True)}
        producer, tally = Producer(configuration(self._bootstrap, "dlq-replay") | self._quiet), Tally()
        named: list[str] = []
        passed_over, since = 0, 0

        def send(letter: Letter) -> bool:
            error = _send(producer, letter)
            tally.sent += 1
            tally.delivered(error, None)
            if error is not None:
                named.append(f"{self._where(letter)}: {_place(letter)} was not acknowledged: {error.str()}")
            return error is None

        try:
            for number, offset in resend(entries, known, send):
                committed[number] = offset + 1
                entry, state = at[number, offset]
                if state in (OTHER, GONE, FOREIGN):
                    passed_over += 1
                    reason = "not a topic of --to" if state == OTHER else "no such topic and partition"
                    why = entry.why if isinstance(entry, Foreign) else f"{_place(entry)}: {reason}"
                    named.append(f"{self._where(entry)}: passed over: {why}")
                since += 1
                if since % BATCH == 0:
                    self._commit(committed)
        finally:
            self._commit(committed)
        counts = {state: known.count(state) for state in STATES}
        return Replay(tally, counts, counts[WAITING] - tally.acked, passed_over, named)

    def _commit(self, offsets: Mapping[int, int]) -> None:
        parts = [TopicPartition(self._topic, number, offset) for number, offset in offsets.items()]
        try:
            self._consumer.commit(offsets=parts, asynchronous=False)
        except KafkaException as error:
            raise LabFault(f"what was replayed could not be noted: {error.args[0].str()}") from error

    def _bounds(self) -> dict[int, tuple[int, int]]:
        """By partition, the first offset and the one after the last."""
        try:
            parts = {number: TopicPartition(self._topic, number) for number in self._numbers}
            return {number: self._consumer.get_watermark_offsets(part, timeout=TIMEOUT_S) for number, part in parts.items()}
        except KafkaException as error:
            raise LabFault(f"the ends of {self._topic} can't be read: {error.args[0].str()}") from error

    def _partitions(self, topic: str) -> list[int]:
        """The partitions of ``topic``; none when it is not there."""
        try:
            described = self._consumer.list_topics(topic, timeout=TIMEOUT_S).topics[topic]
        except KafkaException as error:
            raise LabFault(f"Kafka at {self._bootstrap} can't be asked: {error.args[0].str()}") from error
        if described.error is not None and described.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
            raise LabFault(f"Kafka at {self._bootstrap} says nothing of {topic}: {described.error.str()}")
        return sorted(described.partitions)

    def _where(self, entry: Entry) -> str:
        return f"{self._topic}, partition {entry.partition}, offset {entry.offset}"


def _send(producer: Producer, letter: Letter) -> KafkaError | None:
    """Send ``letter`` back and wait for the broker's word: None when it has acknowledged."""
    said: list[KafkaError | None] = []
    headers: list[tuple[str, str | bytes | None]] = [*deadletter.again(letter.headers)]
    to = letter.reason
    try:
        producer.produce(
            to.topic, letter.value, letter.key, to.partition, on_delivery=lambda error, _: said.append(error), headers=headers
        )
    except KafkaException as refused:  # by the client itself, as what is larger than its message.max.bytes
        error: KafkaError = refused.args[0]
        return error
    producer.flush()
    return said[0]


def _entry(message: Message[Any, Any], partition: int, offset: int) -> Entry:
    headers: Any = message.headers() or []
    try:
        reason = deadletter.read(headers)
    except ValueError as error:
        return Foreign(partition, offset, str(error))
    return Letter(partition, offset, message.key(), message.value(), headers, reason)


def _place(letter: Letter) -> str:
    return "{}/{}/{}".format(*letter.reason.source)
