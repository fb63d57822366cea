"""Reconciliation by the definition: every offset of every partition on its own, in plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby

from lab.ledger.reconcile import Range, Reconciliation


@dataclass(frozen=True)
class Receipt:
    """A receipt; when it was written plays no part here."""

    pod: str
    first: int
    last: int
    count: int
    checksum: int

    def covers(self, first: int, last: int) -> bool:
        """Whether it has an offset in common with first..last."""
        return self.first <= last and self.last >= first


@dataclass(frozen=True)
class Partition:
    """The (seq, crc) of each message by offset, and the receipts about them."""

    messages: list[tuple[int, int]]
    receipts: list[Receipt]


def kind(offset: int, depth: int, partition: Partition) -> str:
    """What happened to one offset that ``depth`` receipts cover."""
    if offset >= len(partition.messages):
        return "phantom" if depth else "none"
    if depth:
        return "once" if depth == 1 else "doubled"
    return "lost" if any(receipt.last > offset for receipt in partition.receipts) else "unseen"


def check(partitions: dict[int, Partition]) -> Reconciliation:
    """The verdict on partitions without holes."""
    named: dict[str, list[Range]] = {each: [] for each in ("lost", "unseen", "doubled", "phantom", "mismatched")}
    totals: Counter[str] = Counter()
    for number, partition in sorted(partitions.items()):
        crcs = [crc for _, crc in partition.messages]
        depth = Counter(offset for receipt in partition.receipts for offset in range(receipt.first, receipt.last + 1))
        offsets = range(max([len(crcs), *(offset + 1 for offset in depth)]))
        totals["processed"] += sum(1 for offset in range(len(crcs)) if depth[offset])
        for what, run in groupby(offsets, lambda offset: kind(offset, depth[offset], partition)):  # noqa: B023
            if what in named:
                found = list(run)
                reach = 1 if what in ("lost", "unseen") else 0
                pods = {each.pod for each in partition.receipts if each.covers(found[0] - reach, found[-1] + reach)}
                count = sum(depth[offset] - 1 for offset in found) if what == "doubled" else len(found)
                named[what].append(Range(number, found[0], found[-1], count, tuple(sorted(pods))))
                totals[what] += count
        for each in sorted(partition.receipts, key=lambda each: (each.first, each.last, each.pod)):
            wrong_sum = each.last < len(crcs) and each.checksum != sum(crcs[each.first : each.last + 1])
            if each.count != each.last - each.first + 1 or wrong_sum:
                named["mismatched"].append(Range(number, each.first, each.last, each.count, (each.pod,)))
    seqs = [seq for partition in partitions.values() for seq, _ in partition.messages]
    return Reconciliation(
        produced=len(seqs),
        processed=totals["processed"],
        receipts=sum(len(partition.receipts) for partition in partitions.values()),
        holes=0,
        resent=len(seqs) - len(set(seqs)),
        lost_messages=totals["lost"],
        unseen_messages=totals["unseen"],
        doubled_messages=totals["doubled"],
        phantom_messages=totals["phantom"],
        mismatched_receipts=len(named["mismatched"]),
        **{each: tuple(ranges) for each, ranges in named.items()},  # type: ignore[arg-type]
    )
