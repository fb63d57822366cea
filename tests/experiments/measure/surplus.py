"""The rebalances of a group with as many pods as partitions, or more."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.scaling_cost import rebalance_costs, worst
from lab.measure.throughput import clip, lagging_spans
from lab.record.store import Record


class SurplusRebalances(Measure):
    """The rebalances of a group with as many Ready pods as partitions, or more, while a backlog waits."""

    rebalances = number("rebalances", "rebalances of a group with P pods or more")
    worst_dip = number("of the rate before", "worst dip of a group with P pods or more, in a rolling second")
    recovery_s = number("s", "slowest recovery to 95 % of a group with P pods or more", UNSCALED)
    forgone = number("messages", "messages forgone in rebalances of a group with P pods or more", UNSCALED)


@measure
def surplus_rebalances(record: Record) -> SurplusRebalances:
    """Measure them. There is no data when the group never rebalanced while it had a pod for every partition."""
    waiting = lagging_spans(record, record.lag_threshold)
    found = [
        one
        for one in rebalance_costs(record, record.zero)
        if one.after > record.inputs.partitions and one.after > one.before and clip(waiting, (one.t, one.until))
    ]
    if not found:
        raise NoData(f"no rebalance took the group beyond its {record.inputs.partitions} partitions while a backlog waited")
    return SurplusRebalances(
        rebalances=len(found),
        worst_dip=worst(one.depth_1s for one in found),
        recovery_s=worst(one.recovery_s for one in found),
        forgone=sum(one.forgone for one in found),
    )
