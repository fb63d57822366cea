"""Killed: what a consumer that was killed left behind, and how long its partitions stood still."""

from __future__ import annotations

from lab.errors import NoData, known
from lab.judge.measure import Measure, detail, measure, number
from lab.record.store import Record


class Killed(Measure):
    """The kill at ``t`` (epoch s) of ``pod``, which owned ``partitions``; ``doubled`` is of the whole trial.

    ``unexplained`` of those messages are not in a receipt of that pod from before the kill; ``oldest_s`` is of the others, from
    their processing to the kill. ``standstill_s`` is missing when one of the partitions never had a receipt again.
    """

    t = detail(float, "the time of the kill")
    pod = detail(str, "the killed pod")
    partitions = detail(tuple[int, ...], "the partitions that it owned")
    doubled = number("messages", "messages processed more than once")
    unexplained = number("messages", "messages processed more than once, but not by the killed pod")
    oldest_s = number("s", "age of the oldest message that the kill made be repeated")
    standstill_s = number("s", "longest standstill of a partition of the killed pod")


@measure
def killed(record: Record) -> Killed:
    """Measure the one kill of the trial; no data when there was none, or what is doubled is not all named."""
    faults = record.trial.faults
    if len(faults) != 1:
        raise NoData(f"{len(faults)} faults: one kill is measured")
    t, pod = faults[0].t, known(faults[0].pod, "pod that was killed")
    owned = record.owners(t).get(pod, frozenset())
    ledger, receipts = record.reconciliation, record.receipts
    doubled = ledger.doubled_messages
    if sum(one.count for one in ledger.doubled) != doubled:
        raise NoData("more ranges are doubled than are named")
    mine = receipts[(receipts["pod"] == pod) & (receipts["end"] <= t)]
    unexplained, oldest = 0, 0.0
    for one in ledger.doubled:
        here = mine[(mine["partition"] == one.partition) & (mine["first"] <= one.last) & (mine["last"] >= one.first)]
        covered = here["last"].clip(upper=one.last) - here["first"].clip(lower=one.first) + 1
        unexplained += max(0, one.last - one.first + 1 - int(covered.sum()))
        if not here.empty:
            oldest = max(oldest, t - float(here["end"].min()))
    next_ends = [receipts[(receipts["partition"] == number) & (receipts["start"] > t)]["end"].min() for number in sorted(owned)]
    waited = None if any(end != end for end in next_ends) else max((float(end) - t for end in next_ends), default=None)
    return Killed(
        t=t,
        pod=pod,
        partitions=tuple(sorted(owned)),
        doubled=doubled,
        unexplained=unexplained,
        oldest_s=oldest,
        standstill_s=waited,
    )
