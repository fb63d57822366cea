"""Steps of a group beside their dips: members that stalled after a decreed one, and steps beyond as many pods as partitions."""

from __future__ import annotations

import math
from itertools import pairwise

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.dip import dips, worst_step
from lab.record.store import Record

STALLED_S = 0.3  # a member at work begins a batch every 50 ms; a fetcher that nobody wakes sleeps for a second
AT_WORK_S = 0.5  # a member whose last batch ended so shortly before a step takes part in it
WATCHED_S = 4.0


class Stalls(Measure):
    """Over all decreed steps: the members that were at work when a step began, and those that then paused between two batches.

    A pause counts if it begins within 4 s of the step, is not the next one's, and lasts longer than 0.3 s. ``member_steps``
    counts a member once for each step. One member of m that pauses for the whole of a second is a dip of 1 / m of that second.
    """

    member_steps = number("member-steps", "members at work at a step, over all steps")
    stalled = number("member-steps", "members that paused for more than 0.3 s after a step")
    longest_s = number("s", "longest pause of a member after a step", UNSCALED)


@measure
def stalls(record: Record) -> Stalls:
    """Count them. There is no data without a decreed step, and without receipts."""
    steps = record.trial.steps
    if not steps:
        raise NoData("no step was taken")
    batches = record.receipts[["pod", "start", "end"]].drop_duplicates().sort_values(["pod", "start"])
    if batches.empty:
        raise NoData("no receipts")
    members, pauses = 0, list[float]()
    following = [*(one.t - AT_WORK_S for one in steps[1:]), math.inf]
    for step, then in zip(steps, following, strict=True):
        for _, own in batches.groupby("pod"):
            ended = own.loc[own["end"] <= step.t, "end"]
            if ended.empty or step.t - ended.max() > AT_WORK_S:
                continue
            members += 1
            near = own[own["end"] > step.t - AT_WORK_S]
            edges = pairwise(near[["start", "end"]].itertuples(index=False, name=None))
            begun = (later[0] - earlier[1] for earlier, later in edges if earlier[1] < min(step.t + WATCHED_S, then))
            longest = max(begun, default=0.0)
            pauses += [float(longest)] if longest > STALLED_S else []
    return Stalls(member_steps=members, stalled=len(pauses), longest_s=max(pauses, default=0.0))


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
