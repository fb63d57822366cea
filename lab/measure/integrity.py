"""Integrity: processed against produced, from the ledger, the producer's tally and the committed offsets."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.measure.delivery import passed_over
from lab.record.store import Record


class Integrity(Measure):
    """What became of every message; the words are those of :mod:`lab.record.reconciliation.reconcile`.

    A message below the committed offset of its partition that was never reached is lost, not unseen: nobody will come to it.
    ``named`` has a line for each range of messages that is not as it should be.
    """

    produced = number("messages", "messages produced")
    acked = number("messages", "messages that the broker acknowledged")
    unknown_or_failed = number("events", "events of unknown or failed fate")
    processed = number("messages", "messages processed")
    lost = number("messages", "messages lost")
    unseen = number("messages", "messages never reached")
    doubled = number("messages", "messages processed more than once")
    phantom = number("messages", "messages processed that were never produced")
    mismatched = number("receipts", "receipts that disagree with the events")
    uncommitted = number("offsets", "offsets short of the log's end")
    dead = number("messages", "dead letters")
    both = number("messages", "messages processed and dead")
    named = detail(tuple[str, ...], "the ranges of messages that are not as they should be")


@measure
def integrity(record: Record) -> Integrity:
    """Read the reconciliation beside the producer's tally and the offsets; no data when any is missing."""
    ledger, ahead = record.reconciliation, passed_over(record)
    told = record.reports("produced")
    if not told:
        raise NoData("the producer left no tally")
    tally = told[-1].detail
    named = [
        f"{kind}: partition {item.partition}, {item.first}-{item.last} ({item.count}): {', '.join(item.pods)}"
        for kind, ranges in ledger.anomalies.items()
        for item in ranges
    ]
    uncommitted = sum(part.lag for part in record.offsets.values())
    return Integrity(
        produced=ledger.produced,
        acked=int(tally["acked"]),
        unknown_or_failed=int(tally["unknown"]) + int(tally["failed"]),
        processed=ledger.processed,
        lost=ledger.lost_messages + ahead,
        unseen=ledger.unseen_messages - ahead,
        doubled=ledger.doubled_messages,
        phantom=ledger.phantom_messages,
        mismatched=ledger.mismatched_receipts,
        uncommitted=uncommitted,
        named=tuple(named),
        dead=ledger.dead_messages,
        both=ledger.both_messages,
    )
