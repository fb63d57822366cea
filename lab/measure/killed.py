"""Killed: what a consumer that was killed left behind, and how long its partitions stood still."""

from __future__ import annotations

from dataclasses import dataclass

from lab.errors import NoData, known
from lab.record.store import Record


@dataclass(frozen=True)
class Killed:
    """The kill at ``t`` (epoch s) of ``pod``, which owned ``partitions``.

    Of the ``doubled`` messages of the whole trial ``unexplained`` are not in a receipt of that pod from before the kill; of the
    others the one processed longest before it was so ``oldest_s`` before. ``standstill_s`` is the longest that one of its
    partitions waited for its next receipt, None when one never had any.
    """

    t: float
    pod: str
    partitions: tuple[int, ...]
    doubled: int
    unexplained: int
    oldest_s: float
    standstill_s: float | None


def killed(record: Record) -> Killed:
    """Measure the one kill of the trial. Raises :class:`NoData` when there was none, or what is doubled is not all named."""
    faults = record.trial.faults
    if len(faults) != 1:
        raise NoData(f"{len(faults)} faults: one kill is measured")
    t, pod = faults[0].t, known(faults[0].pod, "pod that was killed")
    owned = record.owners(t).get(pod, frozenset())
    ledger, receipts = record.reconciliation, record.receipts
    doubled = int(ledger["doubled_messages"])
    if sum(item["count"] for item in ledger["doubled"]) != doubled:
        raise NoData("more ranges are doubled than are named")
    mine = receipts[(receipts["pod"] == pod) & (receipts["end"] <= t)]
    unexplained, oldest = 0, 0.0
    for item in ledger["doubled"]:
        here = mine[
            (mine["partition"] == item["partition"]) & (mine["first"] <= item["last"]) & (mine["last"] >= item["first"])
        ]
        covered = here["last"].clip(upper=item["last"]) - here["first"].clip(lower=item["first"]) + 1
        unexplained += max(0, item["last"] - item["first"] + 1 - int(covered.sum()))
        if not here.empty:
            oldest = max(oldest, t - float(here["end"].min()))
    next_ends = [receipts[(receipts["partition"] == number) & (receipts["start"] > t)]["end"].min() for number in sorted(owned)]
    waited = None if any(end != end for end in next_ends) else max((float(end) - t for end in next_ends), default=None)
    return Killed(t, pod, tuple(sorted(owned)), doubled, unexplained, oldest, waited)
