"""Experiment 14: does a second group that scales disturb the first one?

Hypothesis. Two groups on one topic share the broker and nothing else: each has its own offsets, coordinator state,
ScaledObject and HPA. So a second group that scales changes neither peak nor lateness of the first.

Method. The 10x step of profile ``plateau``, in duets. The first group has policy ``lag-4500``. The second scales
(lagThreshold 1,500) or stands (``two-pods``). It stands in two duets, equal but for a timeout that nothing uses: the A/A pair.
All pods share the cores, or each group's have a core. Broker, KEDA and producer run on both.

Asserted. The second group scales where it may and stands where it may not: the controls. From six pairs on peak and lateness
of the first differ by no more than A/A.

Refuted by a difference beyond that. Smaller ones can't be seen.
"""

import os
from dataclasses import replace

import allure
import pytest

from lab.inputs.variant import policy
from lab.judge.bounds import TIME_BEHIND_S
from lab.judge.pairs import over_noise, paired
from lab.measure.lag import peak_lag
from lab.measure.lateness import behind
from lab.measure.scaling import scale_events
from tests.experiments.measure.cores import broker_cores
from tests.experiments.sources import DESIGN
from tests.experiments.test_1_signal import ON_LAG
from tests.experiments.workloads import slim

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("14 Fan-out")]

SCALES, STANDS, AGAIN = "scales", "stands", "stands, again"
SECOND = {
    SCALES: ON_LAG | {"policy": policy("lag-4500", lag_threshold=1500)},
    STANDS: ON_LAG | {"policy": "two-pods"},
    AGAIN: ON_LAG | {"policy": "two-pods", "workload": slim(drain_timeout=21)},  # a trial of its own, and the same
}
FIGURES = {"peak lag": peak_lag, "late (s)": lambda runs: behind(runs, TIME_BEHIND_S)}


@pytest.fixture
def undisturbed(trials, evidence):
    """Judges the first group beside the second one, from the duets of ``first`` with each of ``second``."""

    def judge(first, second):
        found = trials.duets({name: (first, other) for name, other in second.items()})
        ours = {name: one for name, (one, _) in found.items()}
        theirs = {name: other for name, (_, other) in found.items()}
        runs = {f"first, the second {name}": one for name, one in ours.items()}
        runs |= {f"second, {name}": other for name, other in theirs.items()}
        measured = {figure: {name: of(one) for name, one in ours.items()} for figure, of in FIGURES.items()}
        beside = {figure: paired(each[SCALES], each[STANDS]) for figure, each in measured.items()}
        same = {figure: paired(each[STANDS], each[AGAIN]) for figure, each in measured.items()}
        for name in found:
            steps = {"first, most replicas": scale_events(ours[name]).most_replicas}
            steps |= {"second, most replicas": scale_events(theirs[name]).most_replicas}
            figures = {figure: each[name] for figure, each in measured.items()}
            evidence.report(f"the second group {name}", figures | steps | {"broker (cores)": broker_cores(ours[name])})
        for figure, difference in beside.items():
            evidence.report(f"{figure} of the first, beside one that scales less beside one that stands", difference.figures())
            evidence.report(f"{figure} of the first, A/A", same[figure].figures())

        with evidence.of(runs) as claim:
            claim.control(scale_events(theirs[SCALES]).scale_ups > 0, "the second group scales by its own policy", DESIGN)
            for name in (STANDS, AGAIN):
                claim.control(scale_events(theirs[name]).scale_ups == 0, f"the second group {name}", DESIGN)
            for name, one in ours.items():
                claim.control(scale_events(one).scale_ups > 0, f"the first group scales: the second {name}", DESIGN)
            for figure, difference in beside.items():
                claim(
                    over_noise(difference, same[figure]) <= 1,
                    f"no difference of the first group's {figure} can be told from A/A while the second one scales",
                    "text 1, section 13: its scaling is isolated and doesn't perturb the first group",
                )

    return judge


def on_core(core, plan):
    """The plan of a group whose pods run on one core."""
    return plan | {"workload": replace(plan["workload"], cpus=str(core))}


@allure.story("A second group that scales leaves the first one alone")
def test_a_second_group_does_not_disturb_the_first(undisturbed):
    """The first group's peak of lag and lateness, beside a second one that scales and beside one that stands."""
    undisturbed(ON_LAG, SECOND)


@pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="each group's pods have a core")
@allure.story("A second group on a core of its own leaves the first one alone")
def test_a_second_group_on_a_core_of_its_own_does_not_disturb_the_first(undisturbed):
    """The same, with no pod of one group on a core of the other's: what is left is the broker's and the control plane's."""
    first, second = sorted(os.sched_getaffinity(0))[:2]
    undisturbed(on_core(first, ON_LAG), {name: on_core(second, plan) for name, plan in SECOND.items()})
