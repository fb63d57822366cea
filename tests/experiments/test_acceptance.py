"""Acceptance: a ScaledObject before it is shipped.

Hypothesis. The policy under trial answers the traffic it will meet: new pods are at work within 90 s, the backlog is drained,
replicas do not flap, stay within the policy's bounds and the partitions, and come back; and every message is processed once.

Method. The files that were brought (``--scaledobject``, ``--profile``, ``--workload``), and in the place of one that was not
policy ``lag``, profile ``step-10x`` or the default workload. One trial, from the policy's floor until the lag is gone and the
replicas are back at the floor. The reaction counts from the profile's first phase that is not ``baseline``; the drain from
its last, which is ``drain`` or ``lull``. A profile without them shows neither: that is no data, and not a pass.
"""

import allure
import pytest

from lab.judge import objective
from lab.measure.acceptance import catch_up, kept
from lab.measure.integrity import integrity
from lab.measure.reaction import reaction
from lab.report.evidence import breakdown_of
from lab.trial import own

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("Acceptance")]


@allure.story("The policy answers, drains, keeps its bounds, comes back, and loses nothing")
def test_the_policy_is_accepted(trials, brought, evidence):
    """What any policy is held to, on whatever traffic."""
    record = trials.run(**brought)
    evidence.explain(own.replaced(record.inputs))
    evidence.chart("reaction, by part", lambda: breakdown_of(reaction(record)))

    with evidence.of(record) as judge:
        judge(objective.REACTION, lambda: reaction(record).total_s)
        judge(objective.REACTION_REAL, lambda: reaction(record).real_s)
        judge(objective.KEPT_UP, lambda: catch_up(record).over_best)
        judge(objective.FLIPS, lambda: kept(record).flips)
        judge(objective.WITHIN, lambda: kept(record).outside_bounds)
        judge(objective.BEYOND, lambda: kept(record).beyond_partitions)
        judge(objective.FLOOR, lambda: kept(record).above_floor_at_end)
        judge(objective.UNKNOWN, lambda: integrity(record).unknown_or_failed)
        judge(objective.UNPROCESSED, lambda: integrity(record).produced - integrity(record).processed)
        judge(objective.DOUBLED, lambda: integrity(record).doubled)
        judge(objective.MISMATCHED, lambda: integrity(record).mismatched)
