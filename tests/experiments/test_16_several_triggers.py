"""Experiment 16: do the proposals of several triggers add up?

Hypothesis. The HPA takes the largest proposal. So a group with two streams and a trigger for each, with the lagThreshold of
one, gets half of the pods that the sum of lags asks for, and is twice as late. Half the lagThreshold cures it. A memory
trigger at what a pod holds never gives pods back.

Method. Profiles ``plateau`` and ``slow-ramp``, pods of 100 events/s: triggers on halves of one topic, and on two topics, with
4,500 and 2,250 each, in duets. Memory (31Mi, 40Mi) beside lag alone on ``one-burst``.

Asserted. Every decision follows from the largest proposal. With 4,500 each the group has half of the pods, within a tenth, and
is late; with 2,250 it is not. With 31Mi no pod goes; with 40Mi the group ends above its floor.

Refuted by the opposite of any.
"""

import itertools

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import policy
from lab.judge.aggregate import smallest
from lab.judge.bounds import TIME_BEHIND_S
from lab.judge.measure import quantity
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.lag import LAST, hold, peak_lag
from lab.measure.lateness import time_behind
from lab.measure.prediction import agreement
from lab.measure.scaling import scale_events
from tests.experiments.sources import DESIGN
from tests.experiments.workloads import duet, slim

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("16 Several triggers")]

MEMORY, ALONE = "lag and memory", "lag alone"
CLIMB = "11 pods of 100 events/s take 1,100, and 24 are allowed"
HALVES, TOPICS = (
    {"4500 each": f"{kind}-4500", "2250 each": policy(f"{kind}-4500", lag_threshold=2250)} for kind in ("halves", "topics")
)


@quantity("of them", "pods over those that the sum of the lags asks for, in the spike's last third")
def over_sum(record):
    """The median of replicas x lagThreshold / lag at the samples of lag. 1 where the HPA would add its triggers up."""
    start, end = record.span("spike")
    seen = record.lag_within(end - (end - start) * LAST, end)
    curve = record.replicas
    at = curve["t"].searchsorted(seen["t"], side="right") - 1
    wanted = curve["desired"].to_numpy()[at]
    return float((wanted * record.lag_threshold / seen["lag"].clip(lower=1)).median())


@quantity("of these", "difference of half of the pods that the sum asks for from those there are")
def off_half(record):
    """The HPA does nothing where what it wants over what there is differs from 1 by no more than its tolerance."""
    return abs(0.5 / over_sum(record).number - 1)


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
    found = duet(trials, plan, policies)
    for name, runs in found.items():
        evidence.report(name, {figure: of(runs) for figure, of in FIGURES.items()})
    each, half = found.values()

    with evidence.of(found) as claim:
        claim(
            off_half(each) <= 0.1,
            "two triggers of equal lag have half of the pods that their sum asks for",
            "Kubernetes' docs: of several metrics the HPA takes the largest number; a tenth is the HPA's own tolerance",
        )
        for name, runs in found.items():
            claim.control(
                hold(runs).replicas < runs[0].policy.max_replicas,
                f"the group comes to rest below maxReplicaCount: {name}",
                f"arithmetic: {needed}",
            )
        claim(
            time_behind(each) > TIME_BEHIND_S,
            "the lagThreshold of one trigger, given to each of two, breaches the objective that it is computed from",
            "formula lagThreshold x triggers / rate: 3 s",
        )
        claim(
            time_behind(half) <= TIME_BEHIND_S,
            "half the lagThreshold for each of two holds the objective",
            "formula lagThreshold x triggers / rate: 1.5 s",
        )
        claim_largest(claim, found)


@allure.story("A memory trigger at what a pod holds, beside the lag")
def test_memory_keeps_the_pods_that_lag_took(trials, evidence):
    """A burst and half an hour of quiet, with a target that each pod is within a tenth of, idle or at work."""
    found = beside_lag(trials, evidence, "31Mi")

    with evidence.of(found, delivery=None) as claim:
        claim_comparable(claim, found)
        claim(
            scale_events(found[MEMORY]).scale_downs == 0,
            "a memory target that a pod comes within a tenth of gives back no pod that lag took",
            "Kubernetes' docs: within the tolerance the HPA keeps the replicas; the simulator has no scale-down",
        )


@allure.story("A memory trigger at a third more than a pod holds, beside the lag")
def test_memory_holds_the_way_down_up(trials, evidence):
    """The same burst and quiet, with a target that each pod is a quarter below."""
    found = beside_lag(trials, evidence, "40Mi")

    with evidence.of(found, delivery=None) as claim:
        claim_comparable(claim, found)
        claim(
            scale_events(found[MEMORY]).above_floor_at_end > 0,
            "half an hour of quiet is too short for a memory target of a third more than a pod holds",
            "the simulator: 4 pods above the floor; each scale-down window ends with ceil(0.76 of the replicas)",
        )


def beside_lag(trials, evidence, value):
    """The duet of lag with a memory trigger of ``value`` a pod and lag alone on one burst, as runs by name."""
    both = policy("lag-4500", trigger={"type": "memory", "metricType": "AverageValue", "metadata": {"value": value}})
    plan = {"profile": "one-burst", "workload": slim(), "until": REPLAYED}
    found = duet(trials, plan, {MEMORY: both, ALONE: "lag-4500"})
    for name, runs in found.items():
        events = scale_events(runs)
        figures = {"most replicas": events.most_replicas, "above the floor at the end": events.above_floor_at_end}
        evidence.report(name, figures | {"scale-downs": events.scale_downs, "pod-minutes": cost(runs).pod_minutes})
    return found


def claim_comparable(claim, found):
    """The controls and invariants of lag and memory beside lag alone. No HPA's status tells what it proposed for memory."""
    claim.control(
        scale_events(found[ALONE]).above_floor_at_end == 0,
        "lag alone gives its pods back within the quiet",
        "arithmetic: a window of 300 s and three halvings of a minute",
    )
    claim.control(
        scale_events(found[MEMORY]).above_floor_at_baseline == 0,
        "the memory trigger takes no pod before the burst",
        "the experiment's design: the target is no less than what a pod holds",
    )
    for name, runs in found.items():
        claim.control(scale_events(runs).scale_ups > 0, f"the burst takes pods: {name}", DESIGN)
    claim.invariant(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, CONTRACT)


def claim_largest(claim, found):
    """The HPA's own rule, and that there were proposals to tell it by."""
    computed = smallest(agreement(runs).computed for runs in found.values())
    agreed = smallest(agreement(runs).agreement for runs in found.values())
    claim.control(computed > 0, "of each group there are syncs whose proposal was worked out", DESIGN)
    oracle = "the pinned Go code of the HPA (tests/oracles)"
    claim.invariant(agreed == 100, "every sync follows from the largest proposal", oracle)
