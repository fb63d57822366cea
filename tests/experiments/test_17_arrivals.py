"""Experiment 17: does a trigger on arrivals end the flapping?

Hypothesis. Pods that keep up have little lag, so on lag a busy group looks like a surplus, and a burst that builds no lag does
not renew the scale-down window. The rate of arrivals is high in every burst. With a trigger on it too, a window longer than a
lull is enough.

Method. Profiles ``ten-bursts`` (lulls of 180 s) and ``bursty``, pods of 100 events/s that start in 45 s. ``lag-4500`` (window
300 s) and ``lag-4500-arrivals``, which adds 85 events/s a pod, share a duet until drained and at their floor.

Asserted. Lag alone flips: the control. With arrivals nothing flips and the group gives back its pods. At real time each burst
that meets the floor has a new pod at work within 90 s.

Refuted by one flip with arrivals, or one reaction of 90 s.
"""

import math

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.aggregate import median
from lab.judge.bounds import REACTION_S
from lab.measure.cost import cost
from lab.measure.reaction.bursts import reactions
from lab.measure.scaling import scale_events
from tests.experiments.flapping import SLOW_START, report_price
from tests.experiments.sources import GIVES_BACK, MODEL
from tests.experiments.workloads import duet

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("17 Arrivals beside lag")]

POLICIES = {"lag": "lag-4500", "lag and arrivals": "lag-4500-arrivals"}
TRIGGERS = {"lag": "kafka", "lag and arrivals": "kafka, prometheus"}  # their kinds


def price(runs):
    """The flips and the pod-minutes of the runs of a policy, in the median."""
    return median(scale_events(run).flips for run in runs), median(cost(run).pod_minutes for run in runs)


def calmest(prices):
    """The name of the policy that flips least, and of those the cheapest; one that has no data comes last."""
    return min(prices, key=lambda name: [math.inf if one.value is None else one.value for one in prices[name]])


@allure.story("A trigger on arrivals beside the one on lag, on ten bursts")
def test_arrivals_beside_lag_end_the_flapping(trials, evidence):
    """Lag alone, and lag with arrivals, on the same events, until both groups are drained and back at their floor."""
    found = duet(trials, SLOW_START, POLICIES)
    alone, beside = map(scale_events, found.values())
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim.control(alone.flips > 0, "a trigger on lag alone flaps, with a window that is longer than a lull", "experiment 5")
        claim(beside.flips == 0, "with a trigger on arrivals a window that is longer than a lull ends the flapping", MODEL)
        claim(beside.above_floor_at_end == 0, "the group gives back the pods that it took", GIVES_BACK)

    prices = {name: price(runs) for name, runs in found.items()}
    best = calmest(prices)
    said = {name: f"{name}: {flips:.0f} flips, {minutes:.1f} pod-minutes" for name, (flips, minutes) in prices.items()}
    others = ", ".join(text for name, text in said.items() if name != best)
    evidence.conclude("triggers", TRIGGERS[best], f"on ten bursts {said[best]}; {others}")


@allure.story("A trigger on arrivals beside the one on lag, on three bursts")
def test_arrivals_beside_lag_on_three_bursts(trials, evidence):
    """The same two policies on the first three bursts, short enough to be run several times at real time."""
    found = duet(trials, SLOW_START | {"profile": "bursty", "until": REPLAYED}, POLICIES)
    alone, beside = found.values()
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim.control(
            scale_events(alone).flips > 0,
            "a trigger on lag alone flaps on three bursts, with a window that is longer than a lull",
            "experiment 5",
        )
        claim(
            scale_events(beside).flips == 0,
            "with a trigger on arrivals a window that is longer than a lull ends the flapping on three bursts",
            MODEL,
        )
        if trials.scale.time == 1:  # a reaction has a part that a scale divides, and one that it leaves whole
            claim(
                reactions(alone).slowest_s < REACTION_S,
                "each burst that finds the group on lag at its floor gets a pod in time",
            )
            claim(reactions(beside).slowest_s < REACTION_S, "so does each that finds the group on lag and arrivals there")
