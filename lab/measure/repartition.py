"""Repartition: partitions added to a topic in use: when the group consumed from each, what it cost, what it gained."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import known
from lab.record.reports import GIVEN
from lab.record.store import Record


@dataclass(frozen=True)
class Repartition:
    """Times in s after the partitions were added; ``consumed_s`` is until every new one had a receipt, None when one never had.

    ``unconsumed`` new partitions never had a receipt, ``skipped`` messages of new partitions were passed over (lost: a later
    one was processed), ``waiting`` were not reached within the trial. ``before`` and ``after`` are the most replicas wanted.
    """

    added: int
    assigned_s: float | None
    consumed_s: float | None
    unconsumed: int
    skipped: int
    waiting: int
    before: int
    after: int


def repartition(record: Record) -> Repartition:
    """Measure the change. Raises :class:`NoData` when the topic was never given more partitions."""
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
