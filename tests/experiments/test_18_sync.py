"""Experiment 18: what does the point of the HPA's sync at which a burst comes do to the reaction?

Hypothesis. A reaction is the time until lag asks for pods, the wait for the HPA's next sync (0 to 15 s), and the pod's start.
Only the wait differs between bursts. With pods of 60 s arrivals ask in time; a floor of 6 needs none.

Method. At real time. ``step-ups``: ten bursts at ten points of the sync period, two equal groups, pods of 45 s;
``--lab-hpa-sync-s=5`` shortens the period. ``transient``: pods of 60 s on lag alone, remedies in a duet.

Asserted. Reactions within 90 s; at a floor of 6 no pod comes, no event waits a minute. Controls: six bursts of each side
find the floor, over most of the period; lag alone is late.

Refuted by a longer reaction, seventh pod or older event.
"""

import allure
import pytest

from lab.charts.breakdown import reaction_breakdown
from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import Variant, policy
from lab.judge.aggregate import smallest
from lab.judge.bounds import REACTION_S
from lab.measure.cost import cost
from lab.measure.lateness import oldest
from lab.measure.reaction.bursts import bursts_met, reactions
from lab.measure.reaction.step import PARTS, reaction
from lab.measure.scaling import scale_events
from tests.experiments.measure.cores import control_plane_cpu
from tests.experiments.workloads import duet, slim
from tests.front import FILE, REMEDIES
from tests.policies import OBJECTIVE_S

pytestmark = [pytest.mark.real_time, allure.epic("Scaling on lag"), allure.feature("18 Point of the sync")]

MINUTE = {"profile": "transient", "workload": slim(start_s=60), "until": REPLAYED}
# Rows of the handbook's table.
TRIED = {"arrivals, in one step": "arrivals at 85/s a pod, in one step", "a floor of 6": "a floor of 6"}


@allure.story("Reactions at ten points of the HPA's sync period")
def test_reactions_at_any_point_of_a_sync(trials, evidence):
    """Two equal groups on ten bursts: each burst's reaction, from its start to the first new pod's first receipt."""
    brisk = policy("lag-4500", scale_down_window=30, scale_down="100%/30s")
    plan = {"profile": "step-ups", "policy": brisk, "workload": slim(start_s=45), "until": REPLAYED}
    found = dict(zip(("one", "other"), trials.duet(plan, plan), strict=True))
    met = {name: bursts_met(runs) for name, runs in found.items()}
    reacted = {name: reactions(runs) for name, runs in found.items()}
    for name, one in reacted.items():
        figures = {"bursts met at the floor": met[name].bursts, "fastest (s)": one.fastest_s, "median (s)": one.median_s}
        evidence.report(name, figures | {"slowest (s)": one.slowest_s, "points of the sync span (s)": met[name].span_s})
    evidence.report("the cluster", {"CPU of the control plane (cores)": control_plane_cpu(found["one"])})

    with evidence.of(found) as claim:
        for one in reacted.values():
            claim(one.slowest_s < REACTION_S, "each burst gets a new pod in time")
        claim.control(
            smallest(one.span_s / trials.scale.hpa_sync_s for one in met.values()) >= 0.6,
            "the bursts come at points that are spread over most of the sync period",
            "the experiment's design: ten steps of 7 s in a period of 15 s",
        )
        claim.control(
            smallest(one.bursts for one in met.values()) >= 6,
            "enough bursts find the group at its floor",
            "pilots at quick on 2026-11-24: 7 and 8 of ten; at 202 s between bursts 6, and a step that brought no pod",
        )


@allure.story("What helps pods that take a minute to start")
def test_what_helps_a_pod_that_takes_a_minute(trials, evidence):
    """Lag alone asks after 33 s, a sync takes 0 to 15 s and the start 60 s. Arrivals and a floor, and their price beside it."""
    remedies = {name: Variant(FILE.stem, REMEDIES[row].changes) for name, row in TRIED.items()}
    alone = trials.run(policy="lag-4500", **MINUTE)
    tried = duet(trials, MINUTE, remedies)
    ahead, floor = tried.values()
    found = {"lag alone": alone} | tried
    evidence.chart_of("reaction, by part", lambda run: reaction_breakdown(reaction(run)), ahead)
    evidence.report("reaction on lag alone, s", {part: reaction(alone).part(part) for part in PARTS})
    for name, runs in found.items():
        minutes = cost(runs).pod_minutes
        price = {"pod-minutes": minutes, "over those of lag alone": minutes / cost(alone).pod_minutes}
        evidence.report(name, {"reaction (s)": reaction(runs).total_s, "oldest event (s)": oldest(runs)} | price)

    with evidence.of(found) as claim:
        claim.control(
            reaction(alone).total_s >= REACTION_S,
            "on lag alone the first new pod is late, so there is something to cure",
            "the scales' trials at real time: 102 s, n = 2; the lab's model (python -m tests.front): 96 to 108 s",
        )
        claim(reaction(ahead).total_s < REACTION_S, "on arrivals the first new pod is at work in time, though it takes 60 s")
        claim(
            scale_events(floor).scale_ups == 0,
            "a floor of 6 works each burst off before lag asks for a pod",
            "arithmetic: 40 s x 400/s wait, 600/s x 5 s are in flight: 19,000; lag asks above 6 x 4,500 x 1.1 = 29,700",
        )
        claim(
            oldest(floor) < OBJECTIVE_S,
            "at a floor of 6 no event waits for the minute that lagThreshold is computed from",
            "formula lagThreshold / rate / 0.75; the lab's model (python -m tests.front) says 32 s, and 63 s on lag alone",
        )
