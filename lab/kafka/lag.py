"""Consumer-group lag, read the way KEDA reads it: log end minus committed offset, by partition."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from multiprocessing.reduction import ForkingPickler

from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec, TopicMetadata  # type: ignore[attr-defined]

from lab.errors import LabFault
from lab.kafka.numbering import Numbering, numbering

TIMEOUT_S = 10.0  # of a question
DEADLINE_S = 60.0  # of a batch of questions, some of which come after others, by a process that may have to start
BATCH = 10  # groups asked about at once: some 5 ms of work, during which the rest of the process waits
_SILENT = (KafkaError._TIMED_OUT, KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError.REQUEST_TIMED_OUT)


@dataclass(frozen=True)
class PartitionLag:
    """Offsets of one partition. ``committed`` is None when the group has never committed there, ``start`` when not asked."""

    end: int
    committed: int | None
    start: int | None = None

    @property
    def lag(self) -> int:
        """Messages not yet committed; the whole log when nothing was committed (auto.offset.reset=earliest)."""
        return max(0, self.end - ((self.start or 0) if self.committed is None else self.committed))


Answer = dict[int, PartitionLag | KafkaException]
Question = tuple[list[tuple[str, str]], list[tuple[str, str]]]  # what is wanted, and of what the log's start too


class GroupsReader:
    """Reads the lag of many groups of one cluster through one admin connection. Only one thread may read at a time."""

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        # Errors are raised, not logged. A question for a topic creates none. ``settings`` are the client library's own, for
        # TLS and SASL.
        own: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "log_level": 2}
        own["allow.auto.create.topics"] = False
        self._admin = AdminClient(own | dict(settings or {}))

    def read(
        self, wanted: Collection[tuple[str, str]], starts: Collection[tuple[str, str]] = ()
    ) -> Iterator[dict[tuple[str, str], Answer | KafkaException]]:
        """Kafka's answers for each wanted (group, topic): by partition, each offsets or an error, or one error for all.

        They come in batches, each asked for when it is wanted. Groups in ``starts`` that have not committed get the log's start
        too. Raises ``KafkaException`` when the cluster can't be asked at all.
        """
        ordered = sorted(wanted, key=lambda pair: (pair[1], pair[0]))
        only = ordered[0][1] if len({topic for _, topic in ordered}) == 1 else None
        described = self._admin.list_topics(only, timeout=TIMEOUT_S).topics
        for begin in range(0, len(ordered), BATCH):
            answers: dict[tuple[str, str], Answer | KafkaException] = {}
            numbers: dict[str, Sequence[int]] = {}
            for group, topic in ordered[begin : begin + BATCH]:
                try:
                    numbers[topic] = _partitions(described, topic)
                except KafkaException as error:
                    answers[group, topic] = error
            asked = [pair for pair in ordered[begin : begin + BATCH] if pair not in answers]
            answers |= self._batch(asked, numbers)
            self._start(answers, [pair for pair in answers if pair in starts])
            yield answers

    def _batch(
        self, asked: Sequence[tuple[str, str]], numbers: Mapping[str, Sequence[int]]
    ) -> dict[tuple[str, str], Answer | KafkaException]:
        """The answers for groups whose topics have these partitions. Raises ``KafkaException`` when no broker answers."""
        answers: dict[tuple[str, str], Answer | KafkaException] = {}
        futures = {}
        for group, topic in asked:  # the client takes one group a request, and runs many requests at once
            request = [ConsumerGroupTopicPartitions(group, [TopicPartition(topic, number) for number in numbers[topic]])]
            futures[group, topic] = self._admin.list_consumer_group_offsets(request, request_timeout=TIMEOUT_S)[group]
        ends = self._offsets([(topic, number) for topic, every in numbers.items() for number in every], OffsetSpec.latest())
        for pair, future in futures.items():
            try:
                answers[pair] = _lags(pair[1], future.result().topic_partitions or (), ends)
            except KafkaException as error:
                answers[pair] = error
        errors = [answer for answer in answers.values() if isinstance(answer, KafkaException)]
        if errors and len(errors) == len(answers) and all(error.args[0].code() in _SILENT for error in errors):
            raise errors[0]
        return answers

    def _offsets(self, parts: Sequence[tuple[str, int]], which: OffsetSpec) -> dict[tuple[str, int], int | KafkaException]:
        """The log's end, or its start, by topic and partition."""
        found: dict[tuple[str, int], int | KafkaException] = {}
        request = {TopicPartition(*part): which for part in parts}
        for part, future in (self._admin.list_offsets(request, request_timeout=TIMEOUT_S) if request else {}).items():
            try:
                found[part.topic, part.partition] = _leader_offset(part, future.result().offset)
            except KafkaException as error:
                found[part.topic, part.partition] = error
        return found

    def _start(self, answers: dict[tuple[str, str], Answer | KafkaException], starts: Collection[tuple[str, str]]) -> None:
        """Add the log's start where a group in ``starts`` has not committed."""
        lacking = [
            (answer, (topic, number), lag)
            for group, topic in starts
            if isinstance(answer := answers[group, topic], dict)
            for number, lag in answer.items()
            if isinstance(lag, PartitionLag) and lag.committed is None
        ]
        begins = self._offsets(sorted({place for _, place, _ in lacking}), OffsetSpec.earliest())
        for answer, place, lag in lacking:
            start = begins[place]
            answer[place[1]] = start if isinstance(start, KafkaException) else replace(lag, start=start)


class GroupsProcess:
    """A :class:`GroupsReader` in a process of its own, which is started anew after it ended. One thread may read at a time.

    librdkafka 2.16's admin client can end its process when it asks about a group whose coordinator moves (#5040, #5397).
    """

    def __init__(self, bootstrap: str, settings: Mapping[str, str] | None = None) -> None:
        self._of = bootstrap, dict(settings or {})
        self._running: tuple[SpawnProcess, Connection] | None = None

    def read(
        self, wanted: Collection[tuple[str, str]], starts: Collection[tuple[str, str]] = ()
    ) -> Iterator[dict[tuple[str, str], Answer | KafkaException]]:
        """Like :meth:`GroupsReader.read`; ``KafkaException`` also says that the process ended, or was silent for DEADLINE_S."""
        answers = self._ask((list(wanted), list(starts)))
        while answers is not None:
            yield answers
            answers = self._ask(None)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._running is not None:
            process, pipe = self._running
            self._running = None
            pipe.close()
            process.kill()
            process.join()

    def _ask(self, question: Question | None) -> dict[tuple[str, str], Answer | KafkaException] | None:
        """The next batch of answers, to a new ``question`` or to the last one; None after the last. Raises what it raised."""
        process, pipe = self._running = self._running or self._start()
        try:
            pipe.send(question)
            if not pipe.poll(DEADLINE_S):
                raise EOFError
            answers = pipe.recv()
        except (EOFError, OSError):
            process.join(1)  # its end may be seen a moment after that of the pipe
            ended = process.exitcode
            self.close()
            why = f"no answer within {DEADLINE_S:g} s" if ended is None else f"the process that asks ended with code {ended}"
            raise KafkaException(KafkaError(KafkaError._FAIL, why)) from None
        if isinstance(answers, Exception):
            raise answers
        return answers  # type: ignore[no-any-return]

    def _start(self) -> tuple[SpawnProcess, Connection]:
        context = multiprocessing.get_context("spawn")  # a fork would copy gRPC's threads
        pipe, other = context.Pipe()
        process = context.Process(target=_answer, args=(other, *self._of), daemon=True)
        process.start()
        other.close()  # or the end of the process would not end the pipe
        return process, pipe


def _answer(pipe: Connection, bootstrap: str, settings: Mapping[str, str]) -> None:
    """Answer what comes through ``pipe`` until that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is told by the pipe
    reader: GroupsReader | None = None
    answers: Iterator[dict[tuple[str, str], Answer | KafkaException]] = iter(())
    with suppress(EOFError, OSError):
        while True:
            question: Question | None = pipe.recv()
            try:
                reader = reader or GroupsReader(bootstrap, settings)
                answers = answers if question is None else reader.read(*question)
                pipe.send(next(answers, None))
            except Exception as error:
                pipe.send(error)


def _error(code: int, text: str) -> KafkaException:
    return KafkaException(KafkaError(code, text))


# The client library's own classes can't be pickled by their names.
ForkingPickler.register(KafkaException, lambda error: (_error, (error.args[0].code(), error.args[0].str())))


class LagReader:
    """Reads the lag of one group on the topics of a trial, or on one topic by its name.

    It asks as a consumer that never joins: librdkafka 2.16's admin client can end the process when it asks about a group
    (#5397, #5040). A consumer asks again where the coordinator and the leaders are.
    """

    def __init__(
        self,
        bootstrap: str,
        group: str,
        topics: str | Numbering,
        timeout_s: float = TIMEOUT_S,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        own: dict[str, str | int | float | bool] = {"bootstrap.servers": bootstrap, "group.id": group, "log_level": 2}
        # An admin client and KEDA read the log's end, a consumer of its own accord the last stable offset.
        own |= {"enable.auto.commit": False, "isolation.level": "read_uncommitted", "allow.auto.create.topics": False}
        self._consumer = Consumer(own | dict(settings or {}))
        self._numbering, self._timeout = numbering(topics), timeout_s

    def read(self) -> dict[int, PartitionLag]:
        """The lag by the partition's number.

        Where nothing is committed it is from the log's start, as KEDA 2.21 counts by offsetResetPolicy earliest: what has
        expired is no lag. Raises ``KafkaException`` when Kafka can't be asked or a topic is not there, and :class:`LabFault`
        for a partition that one of several topics was not said to have.
        """
        lags = {}
        for topic in self._numbering.topics:
            numbers = _partitions(self._consumer.list_topics(topic, timeout=self._timeout).topics, topic)
            committed = self._consumer.committed([TopicPartition(topic, number) for number in numbers], timeout=self._timeout)
            found = _lags(topic, committed, self._offsets(topic, numbers, OFFSET_END))
            new = {number: lag for number, lag in found.items() if isinstance(lag, PartitionLag) and lag.committed is None}
            starts = self._offsets(topic, new, OFFSET_BEGINNING) if new else {}
            for (_, number), start in starts.items():
                found[number] = start if isinstance(start, KafkaException) else replace(new[number], start=start)
            for partition, lag in found.items():
                if isinstance(lag, KafkaException):
                    raise lag
                try:
                    lags[self._numbering.number(topic, partition)] = lag
                except ValueError as error:
                    raise LabFault(str(error)) from None
        return lags

    def _offsets(self, topic: str, numbers: Collection[int], which: int) -> dict[tuple[str, int], int | KafkaException]:
        """The log's end, or its start, by topic and partition."""
        # The client's own name for a question by time; OFFSET_END and OFFSET_BEGINNING as the time give these.
        request = [TopicPartition(topic, number, which) for number in numbers]
        answers = self._consumer.offsets_for_times(request, timeout=self._timeout)
        return {
            (topic, part.partition): KafkaException(part.error) if part.error else _leader_offset(part, part.offset)
            for part in answers
        }


def _partitions(described: Mapping[str, TopicMetadata], topic: str) -> Sequence[int]:
    """The numbers of a topic's partitions. Raises ``KafkaException`` when it is not there."""
    found = described.get(topic)
    if found is None or not found.partitions:
        unknown = KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"topic {topic} is not there")
        raise KafkaException((found and found.error) or unknown)
    return tuple(found.partitions)


def _leader_offset(part: TopicPartition, offset: int) -> int | KafkaException:
    """The leader's offset; where it has died, librdkafka 2.16 may give -1001 or -1 and no error."""
    silent = KafkaError(KafkaError.LEADER_NOT_AVAILABLE, f"the leader of {part.topic} [{part.partition}] does not answer")
    return offset if offset >= 0 else KafkaException(silent)


def _lags(topic: str, committed: Sequence[TopicPartition], ends: Mapping[tuple[str, int], int | KafkaException]) -> Answer:
    lags: Answer = {}
    for part in committed:
        end = ends[topic, part.partition]
        if part.error:
            lags[part.partition] = KafkaException(part.error)
        elif isinstance(end, KafkaException):
            lags[part.partition] = end
        else:
            lags[part.partition] = PartitionLag(end, part.offset if part.offset >= 0 else None)
    return lags
