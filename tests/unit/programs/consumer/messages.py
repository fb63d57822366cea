"""Messages as a consumer gets them, by hand and from a broker, and the settings of a consumer without one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from lab.inputs.consumer import Settings, flags, settings
from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason

ANSWER_S = 240  # some ms on a quiet machine; a broker of three that dies is missed for some 10 s


def chosen(*given: str) -> Settings:
    """A consumer's settings by these flags; no broker is there."""
    return settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:9", *given]))


def message(partition: int, offset: int, seq: int | None = None, topic: str = "events") -> Message:
    """An event of entity 7; its seq is its offset unless told otherwise."""
    value = event.encode(7, offset if seq is None else seq, 0, bytes(232))
    return Message(topic=topic, partition=partition, offset=offset, key=event.KEY.pack(7), value=value)


def read_all(bootstrap: str, topic: str, partitions: Iterable[int] = (0,), **login: str) -> list[Message]:
    """Every message that these partitions of the topic hold now, each partition in its order."""
    found, waiting = [], set(partitions)
    own = {"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True, "log_level": 2}
    with closing(Consumer({**own, **login})) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in waiting])
        while waiting:
            one = consumer.poll(ANSWER_S)
            assert one is not None, f"{topic} did not end within {ANSWER_S} s"
            if one.error() is None:
                found.append(one)
            else:
                assert one.error().code() == KafkaError._PARTITION_EOF, one.error()
                waiting.discard(one.partition())
    return found


def place(one: Message) -> tuple[int, int]:
    """Partition and offset of a message."""
    return one.partition(), one.offset()


def reason_of(headers: deadletter.Headers) -> Reason:
    """The reason in a dead letter's headers."""
    text = {name.removeprefix(deadletter.PREFIX): (value or b"").decode() for name, value in headers}
    there = text["topic"], int(text["partition"]), int(text["offset"])
    times = float(text["first-failure"]), float(text["time"])
    return Reason(text["error"], int(text["attempts"]), *there, *times, deadletter.replays(headers))
