"""Messages as the consumer gets them, and the settings of a consumer without a broker."""

from __future__ import annotations

from confluent_kafka import Message

from lab.inputs.consumer import Settings, flags, settings
from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason


def chosen(*given: str) -> Settings:
    """A consumer's settings by these flags; no broker is there."""
    return settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:9", *given]))


def message(partition: int, offset: int, seq: int | None = None, topic: str = "events") -> Message:
    """An event of entity 7; its seq is its offset unless told otherwise."""
    value = event.encode(7, offset if seq is None else seq, 0, bytes(232))
    return Message(topic=topic, partition=partition, offset=offset, key=event.KEY.pack(7), value=value)


def place(one: Message) -> tuple[int, int]:
    """Partition and offset of a message."""
    return one.partition(), one.offset()


def reason_of(headers: deadletter.Headers) -> Reason:
    """The reason in a dead letter's headers."""
    text = {name.removeprefix(deadletter.PREFIX): (value or b"").decode() for name, value in headers}
    there = text["topic"], int(text["partition"]), int(text["offset"])
    times = float(text["first-failure"]), float(text["time"])
    return Reason(text["error"], int(text["attempts"]), *there, *times, deadletter.replays(headers))
