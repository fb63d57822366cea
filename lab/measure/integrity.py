"""Integrity: processed against produced, from the ledger, the producer's tally and the committed offsets."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import NoData
from lab.record.store import Record


@dataclass(frozen=True)
class Integrity:
    """Counts of messages (mismatched: receipts); the words are those of :mod:`lab.record.ledger.reconcile`.

    ``named`` tells each range."""

    produced: int
    acked: int
    unknown_or_failed: int
    processed: int
    lost: int
    unseen: int
    doubled: int
    phantom: int
    mismatched: int
    uncommitted: int
    named: tuple[str, ...]
    dead: int = 0
    both: int = 0


def integrity(record: Record) -> Integrity:
    """Read the reconciliation beside the producer's tally and the offsets. Raises :class:`NoData` when any is missing."""
    ledger = record.reconciliation
    told = record.reports("produced")
    if not told:
        raise NoData("the producer left no tally")
    tally = told[-1].detail
    named = [
        f"{kind}: partition {item['partition']}, {item['first']}-{item['last']} ({item['count']}): {', '.join(item['pods'])}"
        for kind in ("lost", "unseen", "doubled", "phantom", "mismatched", "both")
        for item in ledger.get(kind, ())
    ]
    uncommitted = sum(part.lag for part in record.offsets.values())
    return Integrity(
        produced=int(ledger["produced"]),
        acked=int(tally["acked"]),
        unknown_or_failed=int(tally["unknown"]) + int(tally["failed"]),
        processed=int(ledger["processed"]),
        lost=int(ledger["lost_messages"]),
        unseen=int(ledger["unseen_messages"]),
        doubled=int(ledger["doubled_messages"]),
        phantom=int(ledger["phantom_messages"]),
        mismatched=int(ledger["mismatched_receipts"]),
        uncommitted=uncommitted,
        named=tuple(named),
        dead=int(ledger.get("dead_messages", 0)),
        both=int(ledger.get("both_messages", 0)),
    )
