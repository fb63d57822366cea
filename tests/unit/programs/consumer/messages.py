"""Messages as the consumer gets them, made by hand."""

from __future__ import annotations

from dataclasses import dataclass

from lab.kafka import deadletter, event
from lab.kafka.deadletter import Reason


@dataclass(frozen=True)
class Message:
    """An event of a partition; its seq is its offset unless told otherwise."""

    number: int
    at: int
    seq: int = -1

    def partition(self) -> int:
        """The partition."""
        return self.number

    def offset(self) -> int:
        """The offset."""
        return self.at

    def key(self) -> bytes:
        """The entity."""
        return event.KEY.pack(7)

    def value(self) -> bytes:
        """The event's bytes."""
        return event.encode(7, self.at if self.seq < 0 else self.seq, 0, bytes(232))

    def headers(self) -> None:
        """None at all."""


def reason_of(headers: deadletter.Headers) -> Reason:
    """The reason in a dead letter's headers."""
    text = {name.removeprefix(deadletter.PREFIX): (value or b"").decode() for name, value in headers}
    place = text["topic"], int(text["partition"]), int(text["offset"])
    times = float(text["first-failure"]), float(text["time"])
    return Reason(text["error"], int(text["attempts"]), *place, *times, deadletter.replays(headers))


def source_of(headers: deadletter.Headers) -> tuple[str, int, int]:
    """Topic, partition and offset of the message that a dead letter is of."""
    reason = reason_of(headers)
    return reason.topic, reason.partition, reason.offset
