"""Reconciliation by the definition: every offset of every partition on its own, in plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby

from lab.record.reconciliation import Range, Reconciliation


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
    """The (seq, crc) of each message by offset, the receipts about them, and the offset in each dead letter."""

    messages: list[tuple[int, int]]
    receipts: list[Receipt]
    letters: list[int] = field(default_factory=list)


KINDS = ("lost", "unseen", "doubled", "phantom", "dead")


def kind(offset: int, depth: int, partition: Partition) -> str:
    """What happened to one offset that ``depth`` receipts cover."""
    if offset >= len(partition.messages):
        return "phantom" if depth else "none"
    if depth:
        return "once" if depth == 1 else "doubled"
    if offset in partition.letters:
        return "dead"
    later = [receipt.last for receipt in partition.receipts] + partition.letters
    return "lost" if any(last > offset for last in later) else "unseen"


def check(partitions: dict[int, Partition]) -> Reconciliation:
    """The verdict on partitions without holes."""
    named: dict[str, list[Range]] = {each: [] for each in (*KINDS, "mismatched", "both")}
    totals: Counter[str] = Counter()
    for number, partition in sorted(partitions.items()):
        crcs = [crc for _, crc in partition.messages]
        depth = Counter(offset for receipt in partition.receipts for offset in range(receipt.first, receipt.last + 1))
        offsets = range(max([len(crcs), *(offset + 1 for offset in depth)]))
        totals["processed"] += sum(1 for offset in range(len(crcs)) if depth[offset])
        totals["buried_again"] += len(partition.letters) - len(set(partition.letters))
        totals["stray"] += sum(offset >= len(crcs) for offset in partition.letters)

        def both(offset: int, partition: Partition = partition) -> bool:
            return offset in partition.letters

        for (what, also), run in groupby(offsets, lambda offset: (kind(offset, depth[offset], partition), both(offset))):  # noqa: B023
            found = list(run)
            if also and what in ("once", "doubled"):
                pods = {each.pod for each in partition.receipts if each.covers(found[0], found[-1])}
                named["both"].append(Range(number, found[0], found[-1], len(found), tuple(sorted(pods))))
                totals["both"] += len(found)
            if what in named:
                reach = 1 if what in ("lost", "unseen", "dead") else 0
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
        dead_messages=totals["dead"],
        both_messages=totals["both"],
        buried_again=totals["buried_again"],
        stray_letters=totals["stray"],
        **{each: tuple(ranges) for each, ranges in named.items()},
    )
