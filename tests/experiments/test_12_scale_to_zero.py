"""Experiment 12: what does scale to zero cost the first event after an idle time?

Hypothesis. The first event waits for KEDA's poll (30 s) and a pod's start. The HPA's own scale to zero asks at each sync (15
s) and wakes sooner. Both take less than 90 s. KEDA takes its last pods in one step, whatever ``behavior`` says.

Method. Profile ``idle-times``: 22 arrivals, few messages ("drip"), and a surge. ``zero-4500`` (KEDA) and ``zero-4500-hpa``
(HPAScaleToZero) share a duet. An arrival counts if it found no pod asked for and none there; its first event is followed by
stamps that sum to the whole.

Asserted. At least 20 arrivals. 95 % wait for no more than poll or sync and a fifth; the HPA wakes sooner; both hold 90 s,
divided. In "drip" only the HPA asks.

Refuted by a longer wait, or a ratio of 1.
"""

import allure
import pytest

from lab.judge.bounds import REACTION_S, compressed
from lab.measure.cost import cost
from lab.measure.scaling import scale_events
from tests.experiments.measure.zero import DECISION, PARTS, from_zero, most_replicas, to_zero
from tests.experiments.sources import DESIGN, STAMPS
from tests.experiments.workloads import duet, slim

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("12 Scale to zero")]

KEDA, HPA = "KEDA", "HPA alone"
POLICIES = {KEDA: "zero-4500", HPA: "zero-4500-hpa"}
PERIODS = "a sync period of 15 s and KEDA's default pollingInterval of 30 s (direction only)"
PODS_A_STEP = 1  # of both policies' scaleDown, in a period


@pytest.fixture
def sides(trials):
    """Both sides of the duet, which runs once for all tests; it ends when both groups are at zero."""
    return duet(trials, {"profile": "idle-times", "workload": slim()}, POLICIES)


def common_claims(claim, sides):
    """What holds of the whole trial."""
    for name, runs in sides.items():
        claim.control(scale_events(runs).above_floor_at_end == 0, f"{name}: the group is at zero at the end", DESIGN)


@allure.story("The first event after an idle time, part by part")
def test_the_first_event_after_an_idle_time(sides, evidence):
    """From its own time to its receipt, with KEDA and with the HPA alone, on the same events."""
    measures = {name: from_zero(runs) for name, runs in sides.items()}
    for name, one in measures.items():
        figures = {"arrivals from zero": one.from_zero, "p50 (s)": one.p50, "p95 (s)": one.p95}
        evidence.report(name, figures | {"pod-minutes": cost(sides[name]).pod_minutes})
        for part in PARTS:
            evidence.report(f"{name}: {part}", {f"p{percent} (s)": one.part(part, percent) for percent in (50, 95)})
    keda, hpa = measures[KEDA], measures[HPA]
    polling_s, sync_s = sides[KEDA][0].policy.polling_s, sides[HPA][0].scale.hpa_sync_s
    in_polls = (keda.part(DECISION, 95) / polling_s).named("95th percentile of the wait, in polling intervals")
    in_syncs = (hpa.part(DECISION, 95) / sync_s).named("95th percentile of the wait, in sync periods")
    median = (keda.part(DECISION, 50) / polling_s).named("median of the wait, in polling intervals")
    sooner = (hpa.part(DECISION, 50) / keda.part(DECISION, 50)).named("median of the HPA's wait over that of KEDA's")
    in_time = compressed(REACTION_S, sides[KEDA][0].scale.time)
    within = keda.divided_p95.value is not None and keda.divided_p95.number < in_time

    with evidence.of(sides) as claim:
        for name, one in measures.items():
            claim(one.divided_p95 < in_time, f"{name}: scale to zero is within the SLO of a reaction, all of it divided alike")
        for name, one in measures.items():
            claim.control(
                one.from_zero >= 20, f"{name}: at least 20 arrivals found no pod", f"{DESIGN}: a 95th percentile of 20 or more"
            )
            claim.control(
                one.lag_before == 0, f"{name}: nothing waited when they came, by log end and committed offsets", DESIGN
            )
            claim.control(
                one.least_start > 0,
                f"{name}: a new pod subscribes, owns and works only after it was created, so no part of its start is 0",
                STAMPS,
            )
        claim.control(
            abs(median - 0.5) <= 0.25,
            "KEDA: the wait for the poll is a matter of luck, and the arrivals are spread over it",
            "the profile: arrivals spread evenly over a pollingInterval",
        )
        claim(
            in_polls <= 1.2,
            "at zero KEDA asks once in a pollingInterval",
            "KEDA's docs: pollingInterval; and a fifth of it for what a poll takes",
        )
        claim(
            in_syncs <= 1.2,
            "at zero the HPA asks at each sync, if it has put the group to sleep itself",
            "reconcileAutoscaler of Kubernetes 1.36.4; and a fifth of the period for what a sync takes",
        )
        claim(sooner < 1, "the HPA alone asks for a pod sooner", PERIODS)
        claim(
            (hpa.p95 / keda.p95).named("95th percentile over that of KEDA") < 1,
            "and its first event is processed sooner",
            PERIODS,
        )
        common_claims(claim, sides)

    evidence.conclude(
        "minReplicaCount, of a group that is idle for hours",
        0 if within else 1,
        f"the first event after an idle time is {'within' if within else 'not within'} {REACTION_S:g} s (p95, stretched)",
    )


@allure.story("From many to zero: in one step, or as behavior says")
def test_the_way_to_zero(sides, evidence):
    """Both policies let one pod go in a minute."""
    ways = {name: to_zero(runs) for name, runs in sides.items()}
    for name, one in ways.items():
        figures = {"replicas before": one.most, "steps": one.steps, "most pods in a step": one.largest_step}
        evidence.report(name, figures | {"pods in the last step": one.last_step, "first to last step (s)": one.length})

    with evidence.of(sides) as claim:
        for name, one in ways.items():
            claim.control(one.most > 2, f"{name}: the surge needs several pods", DESIGN)
        claim(
            ways[KEDA].last_step > PODS_A_STEP,
            "KEDA's step to zero takes all that is left, whatever behavior allows",
            "keda 7770; tests/defects/test_zero.py shows it with pods that do nothing",
        )
        largest = ways[HPA].largest_step
        claim(largest <= PODS_A_STEP, "the HPA alone keeps to its policy down to zero", "Kubernetes' docs: scaleDown policies")
        common_claims(claim, sides)


@allure.story("Few messages: they wait, or they are a pod")
def test_few_messages_wait_for_company(sides, evidence):
    """One message at quick, of which activationLagThreshold lets five wait."""
    replicas = {name: most_replicas(runs, "drip") for name, runs in sides.items()}
    for name, one in replicas.items():
        evidence.report(name, {"most replicas asked for in drip": one})

    with evidence.of(sides) as claim:
        claim(
            replicas[KEDA] == 0,
            "KEDA: a lag of no more than activationLagThreshold wakes nobody, however long it waits",
            "KEDA's docs: activationLagThreshold; keda 2800",
        )
        claim(
            replicas[HPA] > 0,
            "the HPA alone: one message is a pod",
            "GetExternalPerPodMetricReplicas of Kubernetes 1.36.4: ceil(lag / averageValue)",
        )
        common_claims(claim, sides)
