"""Acceptance: can this ScaledObject be shipped?

Hypothesis. The policy under trial answers the traffic it will meet: new pods are at work within 90 s, its ceiling is enough,
the backlog is drained, replicas do not flap, stay within the policy's bounds and the partitions, and come back; and every
message is processed once.

Method. One trial, from the floor until the lag is gone and the replicas are back at the floor, of what ``--scaledobject``,
``--lab-profile`` and ``--workload`` name. The reaction counts from the first phase after ``baseline``; the drain from the
last, which is ``drain`` or ``lull``. A profile without them shows neither.

Asserted. The hypothesis, whatever the traffic. Of a consumer that writes no receipts it is asserted that all is committed.

Refuted by one figure beyond its bound.
"""

import allure
import pytest

from lab.charts.breakdown import reaction_breakdown
from lab.inputs.own_consumer import OFF, RECEIPTS
from lab.judge.bounds import CEILING_S, DRAIN_OVER_BEST, REACTION_S, compressed
from lab.measure.delivery import guarantee
from lab.measure.drain import best_drain
from lab.measure.lateness import ceiling_delay
from lab.measure.progress import progress
from lab.measure.reaction.step import IN_TIME, reaction
from lab.measure.scaling import policy_excess
from lab.trial import user_files

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("Acceptance")]


def claim_acceptance(claim, record):
    """What any policy is held to, on whatever traffic."""
    excess = policy_excess(record)
    claim(best_drain(record).over_best <= DRAIN_OVER_BEST, "the backlog is drained about as fast as the policy's bounds allow")
    claim(excess.flips == 0, "the replicas do not flap", "user's policy")
    claim.invariant(
        excess.outside_bounds == 0,
        "the replicas stay within the policy's own minimum and maximum",
        "user's policy: min and max",
    )
    claim(
        excess.beyond_partitions == 0,
        "no pod is left without a partition, which could do nothing",
        "Kafka: a partition has one owner",
    )
    claim(excess.above_floor_at_end == 0, "the group gives back the pods that it took", "user's policy: the floor")


@allure.story("The policy answers, drains, keeps its bounds, comes back, and loses nothing")
def test_the_policy_is_accepted(trials, brought, evidence):
    """A user's policy, traffic and pods."""
    record = trials.run(**brought)
    evidence.explain(user_files.replacement_note(record[0].inputs))
    evidence.explain(user_files.consumer_note(record[0].inputs))
    if record[0].inputs.workload.rung != RECEIPTS:
        seen = progress(record)
        evidence.report("how finely its work is seen", {one.name: one for one in (seen.resolution_s, seen.longest_s)})
    evidence.chart_of("reaction, by part", lambda run: reaction_breakdown(reaction(run)), record)

    with evidence.of(record, delivery=guarantee(record[0].inputs)) as claim:
        time = record[0].scale.time
        claim(reaction(record).divided_s < compressed(REACTION_S, time), IN_TIME)
        if record[0].inputs.driver != OFF:  # the profile has no rates of traffic that is the user's own
            claim(ceiling_delay(record) < CEILING_S, "the policy's ceiling is enough for the traffic, as far as partitions are")
        claim_acceptance(claim, record)
