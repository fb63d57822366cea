"""Messages as the consumer gets them, made by hand."""

from __future__ import annotations

from dataclasses import dataclass

from lab.kafka import event


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
