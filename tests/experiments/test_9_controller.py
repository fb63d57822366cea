"""Experiment 9: what does a controller of one's own change?

Hypothesis. A pod that reads lag and patches replicas every 15 s, by the HPA's arithmetic, reacts like KEDA and flaps like it:
the rule flaps. A hysteresis by which only pods less than half busy are surplus ends that.

Method. Profiles ``plateau`` and ``bursty``, pods of 100 events/s. ``controller-4500`` has KEDA's lagThreshold, bounds,
behavior and hysteresis; ``controller-4500-held`` differs in downAt (0.06 for 0.9). The controllers share a duet; KEDA's side
is experiment 10's A/A duet.

Asserted. The reaction is within 90 s, and the decision at most a sync after KEDA's. KEDA flips with 300 s, and so does the
same rule. With its own hysteresis it does not flip, comes back to its floor, and costs a quarter more pod-minutes at most.

Refuted by one flip with it, or none of the same rule.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.aggregate import largest, median
from lab.judge.bounds import REACTION_S, compressed
from lab.measure.cost import cost
from lab.measure.drain import drain_time
from lab.measure.lag import hold
from lab.measure.reaction.step import IN_TIME, POLICY, reaction
from lab.measure.scaling import scale_events
from tests.experiments.sources import DESIGN, ORACLES, TEXT
from tests.experiments.test_10_persistent_lag import BUILT_IN, on_bursts
from tests.experiments.workloads import light, slim

pytestmark = [pytest.mark.extended, allure.epic("Scaling on lag"), allure.feature("9 Controller")]

KEDA, CONTROLLER = "KEDA", "controller"
CONTROLLERS = {"controller, 300 s": "controller-4500", "controller, own hysteresis": "controller-4500-held"}


@allure.story("The controller reacts like KEDA")
def test_the_controller_reacts_like_keda(trials, evidence):
    """The same step with either autoscaler: reaction, peak lag and pod-minutes side by side."""
    plan = {"profile": "plateau", "workload": light(), "until": REPLAYED}
    found = trials.blocks({KEDA: plan | {"policy": "lag-4500"}, CONTROLLER: plan | {"policy": "controller-4500"}})
    decided = {name: median(reaction(record).part(POLICY) for record in records) for name, records in found.items()}
    reacted = {name: median(reaction(record).total_s for record in records) for name, records in found.items()}
    time = trials.scale.time
    divided = median(reaction(record).divided_s for record in found[CONTROLLER])
    later = (decided[CONTROLLER] - decided[KEDA]) / trials.scale.hpa_sync_s
    ours = found[CONTROLLER]

    for name, records in found.items():
        figures = {"decision (s)": decided[name], "reaction (s)": reacted[name]}
        figures |= {"peak lag": median(hold(record).peak_lag for record in records)}
        figures |= {"pod-minutes": median(cost(record).pod_minutes for record in records)}
        evidence.report(name, figures | {"runs": len(records)})

    with evidence.of(found) as claim:
        claim(divided < compressed(REACTION_S, time), f"in the median {IN_TIME}")
        claim(
            later.named("the controller's decision after KEDA's, in sync periods") <= 1,
            "the controller decides at most a sync after KEDA",
            "the controller's sync period",
        )
        claim(largest(scale_events(record).flips for record in ours) == 0, "one step makes no flip", TEXT)


def calm(runs):
    """What a policy's calm costs, and what it lets wait."""
    figures = {"flips": scale_events(runs).flips, "pod-minutes": cost(runs).pod_minutes}
    figures |= {"reaction (s)": reaction(runs).total_s, "lag back after the last burst (s)": drain_time(runs)}
    return figures | {"above the floor at baseline": scale_events(runs).above_floor_at_baseline}


@allure.story("The rule flaps; a hysteresis that tells busy pods from idle ones ends it")
def test_its_own_hysteresis_ends_the_flapping(trials, evidence):
    """The controller by KEDA's rule and by its own on the same bursts; KEDA by its rule on these bursts too, beside itself."""
    plan = {"profile": "bursty", "workload": slim()}
    pairs = {name: plan | {"policy": policy} for name, policy in CONTROLLERS.items()}
    keda = on_bursts("bursty", BUILT_IN)
    found = trials.duets({"controllers": tuple(pairs.values()), "KEDA": (keda, keda)})
    (same, held), (theirs, _) = found.values()
    sides = dict(zip((*CONTROLLERS, "KEDA, 300 s"), (same, held, theirs), strict=True))
    for name, runs in sides.items():
        evidence.report(name, calm(runs))
    spared = (cost(held).pod_minutes / cost(same).pod_minutes).named("pod-minutes with its own hysteresis over the HPA's")

    with evidence.of(sides) as claim:
        claim.control(
            scale_events(theirs).flips > 0, "KEDA flaps with a window that is longer than a lull", f"{DESIGN}: KEDA flaps here"
        )
        claim(scale_events(same).flips > 0, "the controller flaps by the same rule, so the rule flaps and not KEDA", ORACLES)
        claim(scale_events(held).flips == 0, "a hysteresis that takes no busy pod for surplus ends the flapping", TEXT)
        claim(
            spared < 1.25,
            "calm is no longer bought by holding pods for long",
            "pilot of experiment 9, 14.4 pod-minutes against 14.8",
        )
        claim(scale_events(held).above_floor_at_baseline == 0, "no pod is scaled on the noise of a small lag", TEXT)
        claim(scale_events(held).above_floor_at_end == 0, "the group gives back the pods that it took", TEXT)
