"""Messages as a consumer gets them, by hand and from a broker, and the settings of a consumer without one."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing

from confluent_kafka import Consumer, Message, TopicPartition

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
    with closing(Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "log_level": 2, **login})) as consumer:
        parts = [TopicPartition(topic, number, 0) for number in partitions]
        ends = {part.partition: consumer.get_watermark_offsets(part, ANSWER_S)[1] for part in parts}
        consumer.assign(parts)
        found: list[Message] = []
        while len(found) < sum(ends.values()):
            one = consumer.poll(ANSWER_S)
            assert one is not None, f"{topic} did not give all within {ANSWER_S} s"
            assert one.error() is None, one.error()
            found += [one] if one.offset() < ends[one.partition()] else []
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
