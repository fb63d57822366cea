"""What the ingestion service takes, and the event it becomes: pure.

A request's fields are checked and go into the event's payload as JSON, filled up with spaces to the 232 bytes that
:mod:`lab.kafka.event` gives it; so the ledger reconciles this traffic like any other. Spark reads the
payload with ``from_json``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from lab import yamlfile
from lab.errors import InputError
from lab.kafka import event
from tests.scenarios.ride_hailing.programs.city import DRIVER, MATCH, SURGE, TRIP

ROOM = event.SIZE - event.HEADER.size
BLOCK = 10**12  # ids of one kind: an entity_id tells its kind and its number
MOST_SEQ = 2**63 - 1  # Spark's longs have a sign
MOST_MS = 9 * 10**12  # the year 2255; in ns it fits the event
SEQ = "Event-Seq"  # the header with the generator's number of the event: what tells a repeated one from another
_NUMBERED = re.compile(r"([a-z]+)-(\d{1,12})")


@dataclass(frozen=True)
class Kind:
    """A kind of event: the field and prefix of its id, and the numbers it carries with their ranges."""

    code: int
    field: str
    prefix: str
    numbers: Mapping[str, tuple[float, float]]


KINDS = {
    DRIVER: Kind(1, "driver_id", "driver", {"lat": (-90, 90), "lng": (-180, 180)}),
    TRIP: Kind(2, "trip_id", "trip", {"fare": (0, 100_000), "distance_km": (0, 10_000), "duration_min": (0, 10_000)}),
    SURGE: Kind(3, "zone_id", "zone", {"multiplier": (1, 10), "demand_score": (0, 100)}),
    MATCH: Kind(4, "ride_id", "ride", {"waited_ms": (0, 86_400_000)}),
}
_OF_CODE = {kind.code: name for name, kind in KINDS.items()}


@dataclass(frozen=True)
class Message:
    """A record for the topic: key and value."""

    key: bytes
    value: bytes


def read(kind: str, body: object, seq: object) -> Message:
    """The event of ``body``, as POSTed for ``kind`` with the number ``seq``.

    Raises :class:`InputError` naming the field that can't be used; a field that is not known is refused too.
    """
    where = f"/api/events/{kind}"
    if kind not in KINDS:
        raise InputError(where, "kind", kind, f"one of {', '.join(KINDS)}")
    if not isinstance(body, dict):
        raise InputError(where, "(body)", type(body).__name__, "a JSON object")
    if not isinstance(seq, str) or not seq.isdecimal() or int(seq) > MOST_SEQ:
        raise InputError(where, SEQ, seq, f"a header with a whole number from 0 to {MOST_SEQ:,}")
    chosen = KINDS[kind]
    given = yamlfile.Fields(body, where)
    given.known(chosen.field, "timestamp", *chosen.numbers)
    for field, (least, most) in chosen.numbers.items():
        given.number(field, least, most)
    at_ms = given.whole("timestamp", 0, MOST_MS)
    value = body.get(chosen.field)
    found = _NUMBERED.fullmatch(value) if isinstance(value, str) else None
    if found is None or found[1] != chosen.prefix:
        raise InputError(where, chosen.field, value, f"{chosen.prefix}-N with a whole number N below {BLOCK:,}")
    kept = {"kind": kind, **{name: value for name, value in body.items() if name != "timestamp"}}
    payload = json.dumps(kept, separators=(",", ":")).encode()
    if len(payload) > ROOM:
        raise InputError(where, "(body)", f"{len(payload)} bytes", f"at most {ROOM}")
    of = entity(kind, int(found[2]))
    return Message(event.KEY.pack(of), event.encode(of, int(seq), at_ms * 1_000_000, payload.ljust(ROOM)))


def entity(kind: str, number: int) -> int:
    """The entity_id of ``number`` among the ids of ``kind``."""
    return KINDS[kind].code * BLOCK + number


def named(entity_id: int) -> tuple[str, int]:
    """(kind, number) of an entity_id. Raises ``KeyError`` for one that is of no kind."""
    return _OF_CODE[entity_id // BLOCK], entity_id % BLOCK
