"""A dead letter's layout: key and value of the message as they were, and headers with the reason and the message's place.

``dlq.error``           why the last attempt failed
``dlq.attempts``        how many attempts were made
``dlq.topic`` ``dlq.partition`` ``dlq.offset``   where the message is
``dlq.first-failure`` ``dlq.time``   when the first and the last attempt failed, epoch s
``dlq.replays``         how often the message had been replayed out of a dead-letter topic; absent for never

All values are UTF-8 text. The message's own headers stay in front of them. The message's timestamp is not kept: a letter has
the timestamp of its own writing, so that retention counts from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

PREFIX = "dlq."
ERROR, ATTEMPTS, TOPIC, PARTITION, OFFSET, FIRST_FAILURE, TIME, REPLAYS = (
    f"{PREFIX}{name}" for name in ("error", "attempts", "topic", "partition", "offset", "first-failure", "time", "replays")
)

Headers = Sequence[tuple[str, bytes | None]]


@dataclass(frozen=True)
class Reason:
    """Why a message is a dead letter. Times in epoch s."""

    error: str
    attempts: int
    topic: str
    partition: int
    offset: int
    first_failure: float
    time: float
    replays: int = 0


def replays(headers: Headers | None) -> int:
    """How often a message with these headers was replayed; 0 for a header that is no number, which anyone may write."""
    last = dict(headers or ())  # of each name, as Kafka's own clients read headers
    text = (last.get(REPLAYS) or b"").decode(errors="replace")
    return int(text) if text.isdecimal() else 0


def stamped(headers: Headers | None, reason: Reason) -> list[tuple[str, bytes | None]]:
    """The headers of a dead letter: the message's own, then ``reason``, which replaces the reason of an earlier death."""
    fields = {
        ERROR: reason.error,
        ATTEMPTS: reason.attempts,
        TOPIC: reason.topic,
        PARTITION: reason.partition,
        OFFSET: reason.offset,
        FIRST_FAILURE: f"{reason.first_failure:.6f}",
        TIME: f"{reason.time:.6f}",
    }
    if reason.replays:
        fields[REPLAYS] = reason.replays
    own = [(name, value) for name, value in headers or () if not name.startswith(PREFIX)]
    return [*own, *((name, str(value).encode()) for name, value in fields.items())]
