"""Repartition: partitions added to a topic in use: when the group consumed from each, what it cost, what it gained."""

from __future__ import annotations

from lab.errors import known
from lab.judge.measure import Measure, measure, number
from lab.record.reports import GIVEN
from lab.record.store import Record


class Repartition(Measure):
    """What became of the partitions that were added; times count from then.

    ``assigned_s`` and ``consumed_s`` are missing when one new partition was never assigned, or never had a receipt. A message
    is ``skipped`` when a later one of its partition was processed and it was not: it is lost. ``after`` is of the whole trial.
    """

    added = number("partitions", "new partitions")
    assigned_s = number("s", "time until every new partition was assigned")
    consumed_s = number("s", "time until every new partition was consumed")
    unconsumed = number("partitions", "new partitions that were never consumed")
    skipped = number("messages", "messages of new partitions that were passed over")
    waiting = number("messages", "messages of new partitions that were not reached")
    before = number("pods", "most replicas before the partitions were added")
    after = number("pods", "most replicas")


@measure
def repartition(record: Record) -> Repartition:
    """Measure the change; no data when the topic was never given more partitions."""
    at, most = record.repartitioned, known(record.inputs.partitions_after, "partitions_after in the inputs")
    new = range(record.inputs.partitions, most)
    receipts = record.receipts
    first = receipts[receipts["partition"].isin(new)].groupby("partition")["end"].min()
    owned: dict[int, float] = {}
    for change in record.handovers:
        for partition in change.partitions if change.event == GIVEN else ():
            owned.setdefault(partition, change.t)
    taken = [owned[partition] for partition in new if partition in owned]
    curve = record.replicas
    ledger = record.reconciliation
    return Repartition(
        added=len(new),
        assigned_s=max(taken) - at if len(taken) == len(new) else None,
        consumed_s=float(first.max()) - at if len(first) == len(new) else None,
        unconsumed=len(new) - len(first),
        skipped=sum(item["count"] for item in ledger["lost"] if item["partition"] in new),
        waiting=sum(item["count"] for item in ledger["unseen"] if item["partition"] in new),
        before=int(curve[curve["t"] < at]["desired"].max()),
        after=int(curve["desired"].max()),
    )
