"""Delivery: whether every event went from the profile through the topic to one receipt, judged by one invariant."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from lab.errors import NoData
from lab.inputs.inputs import DRAINED, PRODUCER, Inputs
from lab.inputs.own_consumer import OFF, RECEIPTS
from lab.judge.aggregate import total
from lab.judge.measure import Measure, Runs, detail, measure, number
from lab.judge.quantity import Quantity
from lab.measure.progress import uncommitted
from lab.record.store import Record
from lab.record.trial import COMPLETE

DELIVERED = "each event that was scheduled was sent, acknowledged, stored and processed exactly once, as far as it was due"
CONTRACT = "text 1, section 5: processed == produced; docs/decisions/11"
UNTOLD_ID = "the topic's id is not judged: the record is of before it was kept"


class Delivery(Measure):
    """The events that the profile scheduled, step by step to their receipts; ``unaccounted`` is the sum of all differences.

    In a trial that was to drain, every event is due. In any other, those below the committed offsets are. ``copies`` is the
    part of ``unaccounted`` that a killed consumer may leave, as its successor repeats what it had not committed. A topic that
    was made anew makes every message on it unaccounted for. ``topics`` is missing in records of before the topic's id was kept.
    ``scheduled`` is missing where another program than the lab's producer drove the traffic: its requests are not all events,
    so what it sent is not compared.

    An unread message below the committed offset is lost: the group never re-reads it. ``unseen`` are the others that nobody
    read. The words are those of :mod:`lab.record.ledger.reconcile`.
    """

    scheduled = number("messages", "messages that the profile schedules")
    sent = number("messages", "messages sent")
    acked = number("messages", "messages that the broker acknowledged")
    unknown_or_failed = number("events", "events of unknown or failed fate")
    stored = number("messages", "messages on the topic")
    processed = number("messages", "messages processed")
    lost = number("messages", "messages lost")
    unseen = number("messages", "messages never reached")
    doubled = number("messages", "messages processed more than once")
    phantom = number("messages", "messages processed that were never produced")
    mismatched = number("receipts", "receipts that disagree with the events")
    dead = number("messages", "dead letters")
    both = number("messages", "messages processed and dead")
    uncommitted = number("offsets", "offsets short of the log's end")
    copies = number("messages", "further copies of messages")
    topics = number("topics", "topics that the events were on")
    unaccounted = number("messages", "messages that were not delivered exactly once")
    named = detail(tuple[str, ...], "the differences, in words")
    ranges = detail(tuple[str, ...], "the ranges of messages that are not as they should be")


@measure
def delivery(record: Record) -> Delivery:
    """Compare each step with the one before it; no data without a ledger, committed offsets or the producer's tally."""
    ledger, ahead = record.reconciliation, passed_over(record)
    sent, acked, *others = (int(sum(told)) for told in tallied(record, "sent", "acked", "unknown", "failed"))
    scheduled = record.profile.total if record.inputs.driver == PRODUCER else None
    lost, copies = ledger.lost_messages + ahead, ledger.doubled_messages + ledger.both_messages + ledger.buried_again
    if len(ids := record.trial.topic_ids) == 1:
        raise NoData("the topic's id could not be read when the trial was over")
    topics = len(set(ids))
    behind, ends = int(uncommitted(record).number), sum(part.end for part in record.offsets.values())
    unreached, drained = ledger.unseen_messages - ahead, record.inputs.until == DRAINED
    settled = drained and record.trial.ended == COMPLETE
    differences = {
        "messages on another topic than the one that was made": ledger.produced if topics > 1 else 0,
        "messages on the topic a second time": ledger.resent,
        "offsets missing in the log": abs(ledger.holes),  # fewer than none: an event is there twice
        "offsets of the logs' ends that the ledger does not have": abs(ends - ledger.produced - ledger.holes),
        "messages lost": lost,
        "messages never reached": unreached if drained else 0,
        "messages not committed, though the group had drained": max(0, behind - unreached) if settled else 0,
        "further copies of messages": copies,
        "messages processed that were never produced": ledger.phantom_messages,
        "receipts that disagree with the events": ledger.mismatched_receipts,
        "dead letters about no message of the trial": ledger.stray_letters,
    }
    if scheduled is not None:
        steps = {"scheduled": scheduled, "sent": sent, "acknowledged": acked, "on the topic": ledger.produced}
        differences = _between(steps) | differences
    return Delivery(
        scheduled=scheduled,
        sent=sent,
        acked=acked,
        unknown_or_failed=sum(others),
        stored=ledger.produced,
        processed=ledger.processed,
        lost=lost,
        unseen=unreached,
        doubled=ledger.doubled_messages,
        phantom=ledger.phantom_messages,
        mismatched=ledger.mismatched_receipts,
        dead=ledger.dead_messages,
        both=ledger.both_messages,
        uncommitted=behind,
        copies=copies,
        topics=topics or None,
        unaccounted=sum(differences.values()),
        named=tuple(f"{count:,} {words}" for words, count in differences.items() if count),
        ranges=tuple(
            f"{kind}: partition {one.partition}, {one.first}-{one.last} ({one.count}): {', '.join(one.pods)}"
            for kind, ranges in ledger.anomalies.items()
            for one in ranges
        ),
    )


def unaccounted(*records: Record) -> Quantity:
    """:attr:`Delivery.unaccounted` of all ``records`` together, for the one invariant of an experiment.

    Its ``why`` says what of a record can't be judged, which a verdict shows as its note.
    """
    return _remarked(total(delivery(record).unaccounted for record in records), records)


def undelivered(*records: Record) -> Quantity:
    """:func:`unaccounted` without copies, for trials in which a killed consumer may leave some."""
    found = [delivery(record) for record in records]
    missing = total(one.unaccounted for one in found) - total(one.copies for one in found)
    return _remarked(missing.named("messages that were not delivered even once"), records)


@dataclass(frozen=True)
class Guarantee:
    """A delivery guarantee, the invariant of an experiment: ``sentence`` is so where ``missing`` of its records is 0."""

    sentence: str
    missing: Callable[..., Quantity]


EXACTLY_ONCE = Guarantee(DELIVERED, unaccounted)
COMMITTED = Guarantee(
    "each message is committed at the end: without receipts nobody sees whether it was processed, or how often",
    lambda *records: total(uncommitted(record) for record in records),
)
AT_LEAST_ONCE = Guarantee(
    "each event that was due was delivered at least once: a kill may repeat work, and loses none", undelivered
)


def guarantee(inputs: Inputs) -> Guarantee | None:
    """What a trial can be held to, by how much its consumer tells (docs/your-consumer.md); nothing on the traffic of others."""
    if inputs.driver == OFF:
        return None
    return EXACTLY_ONCE if inputs.workload.rung == RECEIPTS else COMMITTED


def passed_over(record: Record, partitions: Collection[int] | None = None) -> int:
    """The messages (of ``partitions``) below a committed offset that nobody processed, nor any later one of their partition.

    They are lost: a consumer that reads on from the committed offset never comes to them. Raises :class:`NoData` when not all
    ranges that nobody reached are named, and without committed offsets.
    """
    ledger, offsets = record.reconciliation, record.offsets
    if sum(one.count for one in ledger.unseen) != ledger.unseen_messages:
        raise NoData("more ranges were never reached than are named")
    below = 0
    for one in ledger.unseen:
        if partitions is None or one.partition in partitions:
            committed = offsets[one.partition].committed if one.partition in offsets else None
            below += max(0, min(one.last + 1, committed or one.first) - one.first)
    return below


def tallied(record: Record, *names: str) -> list[list[float]]:
    """What the tallies of all producers say of ``names``. Raises :class:`NoData` for no tally, and where one lacks a name."""
    tallies = [one.detail for one in record.reports("produced")]
    if not tallies:
        raise NoData("the producer left no tally")
    if missing := [name for name in names if any(name not in tally for tally in tallies)]:
        raise NoData(f"the producer's tally has no {missing[0]}")
    return [[float(tally[name]) for tally in tallies] for name in names]


def _between(steps: dict[str, int]) -> dict[str, int]:
    """How many messages more or fewer each of ``steps`` has than the one before it, in words."""
    found: dict[str, int] = {}
    for before, after in pairwise(steps):
        less = steps[before] - steps[after]
        found[f"messages {before} and not {after}"] = max(0, less)
        found[f"messages {after} and not {before}"] = max(0, -less)
    return found


def _remarked(found: Quantity, records: Sequence[Record]) -> Quantity:
    """``found`` with what of its ``records`` can't be judged."""
    if found.value is None:
        return found
    remarks: list[str] = []
    for one in (one for several in records for one in (several if isinstance(several, Runs) else [several])):
        remarks += [] if one.trial.topic_ids else [UNTOLD_ID]
        if (driver := one.inputs.driver) != PRODUCER:
            remarks.append(f"what was sent is not judged: {driver} drove the traffic")
    return replace(found, why="; ".join(dict.fromkeys(remarks)))
