"""Reconciliation by the definition: every offset of every partition on its own, in plain Python."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

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
        crcs, letters = [crc for _, crc in partition.messages], partition.letters
        depth = Counter(offset for receipt in partition.receipts for offset in range(receipt.first, receipt.last + 1))
        what = [
            (kind(offset, depth[offset], partition), offset in letters)
            for offset in range(max([len(crcs), *(offset + 1 for offset in depth)]))
        ]
        totals["processed"] += sum(depth[offset] > 0 for offset in range(len(crcs)))
        totals["buried_again"] += len(letters) - len(set(letters))
        totals["stray_letters"] += sum(offset >= len(crcs) for offset in letters)
        for (name, dead), run in groupby(range(len(what)), what.__getitem__):
            first, *_, last = [*(found := list(run)), found[-1]]
            copies = sum(depth[offset] - 1 for offset in found) if name == "doubled" else len(found)
            told = [(name, copies)] if name in KINDS else []
            told += [("both", len(found))] if dead and name in ("once", "doubled") else []
            for each, count in told:
                reach = 1 if each in ("lost", "unseen", "dead") else 0
                pods = {receipt.pod for receipt in partition.receipts if receipt.covers(first - reach, last + reach)}
                named[each].append(Range(number, first, last, count, tuple(sorted(pods))))
                totals[f"{each}_messages"] += count
        for receipt in sorted(partition.receipts, key=lambda each: (each.first, each.last, each.pod)):
            wrong_sum = receipt.last < len(crcs) and receipt.checksum != sum(crcs[receipt.first : receipt.last + 1])
            if receipt.count != receipt.last - receipt.first + 1 or wrong_sum:
                named["mismatched"].append(Range(number, receipt.first, receipt.last, receipt.count, (receipt.pod,)))
    seqs = [seq for partition in partitions.values() for seq, _ in partition.messages]
    counts = ("processed", "buried_again", "stray_letters", *(f"{each}_messages" for each in (*KINDS, "both")))
    found_in_all: dict[str, Any] = {name: totals[name] for name in counts} | {name: tuple(each) for name, each in named.items()}
    return Reconciliation(
        produced=len(seqs),
        receipts=sum(len(partition.receipts) for partition in partitions.values()),
        holes=0,
        resent=len(seqs) - len(set(seqs)),
        mismatched_receipts=len(named["mismatched"]),
        **found_in_all,
    )
