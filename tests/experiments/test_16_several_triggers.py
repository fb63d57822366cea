"""Experiment 16: do the proposals of several triggers add up?

Hypothesis. The HPA works out a number of pods for each trigger and takes the largest. So a user who gives a group that reads
two streams a trigger for each, with the lagThreshold of one, gets half of the pods that the sum of the lags asks for. The group
comes to rest behind by twice as much: lagThreshold x triggers / rate per pod, where the streams carry the same. Half the
lagThreshold for each of the two cures it.

Method. The 10x step of profile ``plateau``, pods of 100 events/s, in a duet: policy ``halves-4500`` has two kafka triggers,
each on half of the partitions (``partitionLimitation``), and ``halves-2250`` has half the lagThreshold. Two halves of one topic
stand for two topics: KEDA gives the HPA one metric for each trigger in both cases. 4,500 is 100 x 60 s x 0.75, computed for an
objective of 60 s, which is 2 s at quick (experiment 8). The same duet runs on the climb of profile ``slow-ramp``, 180 to 1,100
events/s within 24 minutes: a pod more is needed every two and a half minutes, so the group can follow. And it runs there on two
real topics of 12 partitions each (``topics: 2`` in the workload, policies ``topics-4500`` and ``topics-2250``). A key is in
the same half of the partitions as before, so the traffic of each trigger is the same, and what differs is the topic.

Asserted, and what would refute it. Every sync's decision follows from the largest proposal, and no other: refuted by one sync.
In the spike's last third a group with 4,500 for each trigger has half of the pods that the sum of its lags over the
lagThreshold asks for, by a tenth: refuted by more or fewer. It is behind by more than the objective, and a group with 2,250 is
not: refuted by the opposite of either. Neither group is at maxReplicaCount by then, which would hide what is asked for: the
control. Nothing is lost or doubled, on either topic.

The first run, a pilot, gave no verdict: decision 61. The control was added after it. In the second run the control fell: a 10x
step sends both groups to maxReplicaCount. The climb was added then, with the same bounds, and the step stays. Two claims fell
on it. The test on two topics came after that, with the same bounds. It has been run once.
"""

import itertools

import allure
import pytest

from lab.judge.aggregate import smallest
from lab.judge.bounds import TIME_BEHIND_S
from lab.judge.measure import quantity
from lab.judge.runs import first
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.hpa_decisions import agreement
from lab.measure.lag import LAST, hold, peak_lag
from lab.measure.lateness import time_behind
from lab.measure.scaling import scale_events
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import slim

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("16 Several triggers")]

CLIMB = "11 pods of 100 events/s take 1,100, and 24 are allowed"
HALVES, TOPICS = ({f"{each} each": f"{kind}-{each}" for each in (4500, 2250)} for kind in ("halves", "topics"))


@quantity("of them", "pods over those that the sum of the lags asks for, in the spike's last third")
def over_sum(record):
    """The median of replicas x lagThreshold / lag at the samples of lag. 1 where the HPA would add its triggers up."""
    start, end = record.span("spike")
    seen = record.lag_within(end - (end - start) * LAST, end)
    curve = record.replicas
    at = curve["t"].searchsorted(seen["t"], side="right") - 1
    wanted = curve["desired"].to_numpy()[at]
    return float((wanted * record.lag_threshold / seen["lag"].clip(lower=1)).median())


FIGURES = {
    "time behind (s)": time_behind,
    "pods over those of the sum": over_sum,
    "peak lag": peak_lag,
    "most replicas": lambda runs: scale_events(runs).most_replicas,
    "pod-minutes": lambda runs: cost(runs).pod_minutes,
}


@allure.story("The HPA takes the largest of its triggers' proposals, not their sum")
def test_two_triggers_are_not_added(trials, evidence):
    """Two triggers on half of the partitions each, at the lagThreshold of one and at half of it, on a 10x step."""
    compare(trials, evidence, "plateau", HALVES, slim(), "18 pods of 100 events/s take 1,800, and 24 are allowed")


@allure.story("Where a group with two triggers comes to rest, on a climb that it can follow")
def test_on_a_climb_the_group_is_behind_by_both(trials, evidence):
    """The same two policies on a climb that is slow beside a reaction."""
    compare(trials, evidence, "slow-ramp", HALVES, slim(), CLIMB)


@allure.story("The same climb for a group that reads two topics, with a trigger for each")
def test_two_topics_are_two_triggers(trials, evidence):
    """Two real topics in the place of two halves of one."""
    compare(trials, evidence, "slow-ramp", TOPICS, slim(topics=2), CLIMB)


def compare(trials, evidence, profile, policies, workload, needed):
    """The duet of ``policies`` on ``profile`` and what is claimed of it; ``needed`` is the arithmetic of the pods it needs."""
    plan = {"profile": profile, "workload": workload, "until": REPLAYED}
    found = dict(zip(policies, trials.duet(*(plan | {"policy": policy} for policy in policies.values())), strict=True))
    for name, runs in found.items():
        evidence.report(name, {figure: of(runs) for figure, of in FIGURES.items()})
    each, half = found.values()

    with evidence.of(found) as claim:
        off = abs(over_sum(each) - 0.5).named("difference of the pods from half of those that the sum asks for", "of the sum's")
        claim(
            off <= 0.1,
            "two triggers of equal lag have half of the pods that their sum asks for",
            source="Kubernetes' docs: of several metrics the HPA takes the largest number; a tenth is the HPA's own tolerance",
        )
        for name, runs in found.items():
            claim(
                hold(runs).replicas < first(runs).policy.max_replicas,
                f"the group comes to rest below maxReplicaCount: {name}",
                kind="control",
                source=f"arithmetic: {needed}",
            )
        claim(
            time_behind(each) > TIME_BEHIND_S,
            "the lagThreshold of one trigger, given to each of two, breaches the objective that it is computed from",
            source="formula lagThreshold x triggers / rate: 3 s",
        )
        claim(
            time_behind(half) <= TIME_BEHIND_S,
            "half the lagThreshold for each of two holds the objective",
            source="formula lagThreshold x triggers / rate: 1.5 s",
        )
        claim(
            smallest(agreement(runs).agreement for runs in found.values()) == 100,
            "every sync follows from the largest proposal",
            kind="invariant",
            source="the pinned Go code of the HPA (tests/oracles)",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)
