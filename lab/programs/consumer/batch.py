"""Pure arithmetic over a batch of messages: what it costs and the receipts it earns."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from lab.kafka import event
from lab.spec.consumer import Cost


@dataclass
class Receipt:
    """What the downstream store keeps of a batch, one for each partition in it. Times in epoch seconds."""

    pod: str
    partition: int
    first: int
    last: int
    count: int = 0
    checksum: int = 0
    start: float = 0.0
    end: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """The receipt as it goes over the wire."""
        return asdict(self)


def summarize(messages: Iterable[tuple[int, int, bytes]], cost: Cost, pod: str) -> tuple[float, list[Receipt]]:
    """(total processing time in ms, receipts) of ``messages``, each (partition, offset, value), in order of offset."""
    total = 0.0
    receipts: dict[int, Receipt] = {}
    unpack, check, of = event.HEADER.unpack_from, event.check, cost.of
    for partition, offset, value in messages:
        _, seq, _ = unpack(value)
        total += of(seq)
        receipt = receipts.get(partition)
        if receipt is None:
            receipt = receipts[partition] = Receipt(pod, partition, offset, offset)
        receipt.last = offset
        receipt.count += 1
        receipt.checksum += check(value)
    return total, list(receipts.values())
