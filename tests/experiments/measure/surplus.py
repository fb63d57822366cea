"""The steps of a group beyond as many pods as partitions."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.dip import dips, worst_step
from lab.record.store import Record


class SurplusSteps(Measure):
    """The steps up that want more pods than there are partitions, as :class:`lab.measure.dip.Dip` measures them."""

    steps = number("steps", "steps up beyond P pods")
    depth = number("of the best second before", "worst dip of a step beyond P pods")
    recovery_s = number("s", "slowest recovery to 95 % after a step beyond P pods", UNSCALED)
    forgone = number("messages", "most messages forgone in a step beyond P pods", UNSCALED)


@measure
def surplus_steps(record: Record) -> SurplusSteps:
    """Measure them. There is no data when no step went beyond P, and when none of those had work for every partition."""
    partitions = record.inputs.partitions
    if not any(change.after > partitions for change in record.scalings):
        raise NoData(f"no step took the group beyond its {partitions} partitions")
    worst = worst_step(one for one in dips(record) if one.kind == "up" and one.after > partitions)
    return SurplusSteps(
        steps=worst.steps.number, depth=worst.depth.number, recovery_s=worst.recovery_s.value, forgone=worst.forgone.value
    )
