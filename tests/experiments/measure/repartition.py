"""A topic that is given more partitions: what became of them, and the rebalance that it forces."""

from __future__ import annotations

from lab.errors import NoData, known
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.delivery import passed_over
from lab.measure.dip import dips, worst_step
from lab.measure.scaling_cost import ASLEEP_S, rebalance_costs
from lab.record.reports import GIVEN
from lab.record.store import Record


class Repartition(Measure):
    """The fate of partitions that were added to the topic. Times count from the addition.

    ``consumed_s`` is missing when a new partition never had a receipt. A message is ``skipped`` when it was not processed, and
    a later one of its partition was processed or its own offset is committed: it is lost. ``after`` is of the whole trial.
    """

    added = number("partitions", "new partitions")
    consumed_s = number("s", "time until every new partition was consumed", UNSCALED)
    unconsumed = number("partitions", "new partitions that were never consumed")
    skipped = number("messages", "messages of new partitions that were passed over")
    after = number("pods", "most replicas")


@measure
def repartition(record: Record) -> Repartition:
    """Measure the addition. There is no data when the topic was never given more partitions."""
    at, most = record.repartitioned, known(record.inputs.partitions_after, "partitions_after in the inputs")
    new = range(record.inputs.partitions, most)
    receipts = record.receipts
    first = receipts[receipts["partition"].isin(new)].groupby("partition")["end"].min()
    ledger, ahead = record.reconciliation, passed_over(record, new)
    return Repartition(
        added=len(new),
        consumed_s=float(first.max()) - at if len(first) == len(new) else None,
        unconsumed=len(new) - len(first),
        skipped=sum(one.count for one in ledger.lost if one.partition in new) + ahead,
        after=int(record.replicas["desired"].max()),
    )


class ForcedRebalance(Measure):
    """The first rebalance after partitions were added, and what they cost.

    ``after_s`` is from the addition to its first cause or handover, ``seconds`` its length from there to its last handover.
    ``handed_over`` partitions got another owner or their first. ``depth``, ``recovery_s`` and ``forgone`` are the worst of the
    :class:`lab.measure.dip.Dip` of the addition itself and of the steps up that follow it.
    """

    after_s = number("s", "time from the addition of partitions to the rebalance", UNSCALED)
    seconds = number("s", "length of the rebalance that new partitions force", UNSCALED)
    handed_over = number("partitions", "partitions handed over in the rebalance that new partitions force")
    depth = number("of the best second before", "worst dip of what new partitions bring")
    recovery_s = number("s", "recovery to 95 % after new partitions", UNSCALED)
    forgone = number("messages", "most messages forgone in what new partitions bring", UNSCALED)


@measure
def forced_rebalance(record: Record) -> ForcedRebalance:
    """Measure it. There is no data when no partitions were added, and when no rebalance followed."""
    at = record.repartitioned
    found = rebalance_costs(record, at)
    if not found:
        raise NoData("no rebalance followed the addition of partitions")
    first = found[0]
    worst = worst_step(one for one in dips(record, at) if one.t >= at and one.kind != "down")
    given = [change for change in record.handovers if first.t <= change.t <= first.until and change.event == GIVEN]
    return ForcedRebalance(
        after_s=first.t - at,
        seconds=first.until - ASLEEP_S - first.t,
        handed_over=len({partition for change in given for partition in change.partitions}),
        depth=worst.depth.number,
        recovery_s=worst.recovery_s.value,
        forgone=worst.forgone.value,
    )
