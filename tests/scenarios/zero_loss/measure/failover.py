"""Failover: what became of the messages that brokers had acknowledged, and how long partitions stood still, when some died."""

from __future__ import annotations

from lab.errors import NoData
from lab.inputs.events import KillBroker, StartBrokers
from lab.inputs.inputs import DRAINED
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.delivery import delivery
from lab.record.store import Record


class Acknowledged(Measure):
    """The producer's acknowledgements beside the topic and the receipts.

    ``unknown`` are messages whose acknowledgement never came: a broker may have them or not, so they are in no other number.
    ``gone`` were acknowledged, and are not on the topic, or are skipped or, in a trial that was to drain, never reached by
    the group. ``surplus`` are on the topic beyond all that may be there. ``resent`` are on it a second time.
    """

    acked = number("messages", "messages that the brokers acknowledged")
    unknown = number("messages", "messages whose acknowledgement never came")
    stored = number("messages", "different messages on the topic")
    processed = number("messages", "messages processed")
    dead = number("messages", "dead letters")
    gone = number("messages", "acknowledged messages that are neither processed nor dead letters")
    surplus = number("messages", "messages on the topic that were neither acknowledged nor unknown")
    resent = number("messages", "messages on the topic a second time")


@measure
def acknowledged(record: Record) -> Acknowledged:
    """Compare the tally with the ledger; no data when either is missing."""
    found, ledger = delivery(record), record.reconciliation
    if found.why:
        raise NoData(found.why)
    tallies = [one.detail for one in record.reports("produced")]
    acked, unknown = (sum(int(tally[name]) for tally in tallies) for name in ("acked", "unknown"))
    stored, lost = ledger.produced - ledger.resent, int(found.lost)
    # What is on the topic and nobody came to, in a trial that was to drain; what counts as lost is not among it.
    unreached = ledger.unseen_messages + ledger.lost_messages - lost if record.inputs.until == DRAINED else 0
    return Acknowledged(
        acked=acked,
        unknown=unknown,
        stored=stored,
        processed=ledger.processed,
        dead=ledger.dead_messages,
        gone=max(0, acked - stored) + lost + unreached,
        surplus=max(0, stored - acked - unknown),
        resent=ledger.resent,
    )


class Failover(Measure):
    """The brokers that were killed, and what that cost the group's partitions.

    ``standstill_s`` is the longest time from a kill to the end of the first receipt that a partition began after it; it is
    missing when a partition had none. ``in_sync_s`` is the longest from a start until every copy was in sync again.
    """

    killed = number("brokers", "brokers killed")
    standstill_s = number("s", "longest standstill of a partition after a broker was killed", UNSCALED)
    in_sync_s = number("s", "longest time from a broker's start until every copy was in sync", UNSCALED)


@measure
def failover(record: Record) -> Failover:
    """Measure every kill of a broker; no data where none was killed."""
    rows = [row for row in record.trial.events if row["event"] == KillBroker.name]
    if not rows:
        raise NoData("no broker was killed")
    receipts, known = record.receipts, []
    for t in (row["t"] for row in rows):
        ends = receipts[receipts["start"] > t].groupby("partition")["end"].min()
        if len(ends) == record.inputs.partitions:
            known.append(float(ends.max() - t))
    starts = [row["result"]["in_sync_s"] for row in record.trial.events if row["event"] == StartBrokers.name]
    return Failover(
        killed=len(rows), standstill_s=max(known) if len(known) == len(rows) else None, in_sync_s=max(starts, default=None)
    )
