"""Experiment 9: the hand-rolled controller in place of KEDA.

Hypothesis. A pod that reads lag and patches replicas every 15 s, by the HPA's own arithmetic, reacts like KEDA: both wait for
the next sync, and what lies between Kafka and the decision in KEDA's chain (adapter, operator, external metrics API) is small
beside it. It flaps where KEDA flaps, since the rule is the same. A hysteresis of its own changes that: lag that pods keep up
with is what they have in flight, so it tells a busy pod from an idle one. If pods are surplus only where they are less than
half busy, a burst that the kept pods take counts as work, and the usual window of 300 s outlasts the bursts.

Method. Profile ``plateau``, then ``bursty``, with pods of 100 events/s. ``lag-150`` is KEDA and the HPA; ``controller-150`` the
lab's controller with the same lagThreshold, floor, ceiling, behavior and hysteresis, so that nothing differs but who decides;
``controller-150-held`` has another hysteresis (downAt 0.06 for 0.9) and nothing else; ``lag-150-patient`` is KEDA's way to
calm, a window of 900 s. A bursty trial ends drained and at the floor, so that pod-minutes count what is held for nothing.

Asserted. The controller's reaction is within 90 s and its decision at most a sync period after KEDA's; nothing is lost or
processed twice. On bursts KEDA with 300 s flips and so does the controller with the HPA's hysteresis; with its own it does not,
for fewer pod-minutes than the window of 900 s, and the group comes back to its floor.
"""

from functools import partial

import allure
import pytest

from lab.judge import objective
from lab.measure.cost import cost
from lab.measure.drain import caught_up
from lab.measure.flips import stability
from lab.measure.hold import hold
from lab.measure.integrity import integrity
from lab.measure.reaction import POLICY, reaction
from lab.measure.spread import spread
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("9 Controller")]

KEDA, CONTROLLER = "KEDA", "controller"


@allure.story("The controller reacts like KEDA")
def test_the_controller_reacts_like_keda(trials, evidence):
    """The same step, decided by another hand: reaction, peak lag and pod-minutes side by side."""
    plan = {"profile": "plateau", "workload": light(), "until": REPLAYED}
    found = trials.interleaved({KEDA: plan | {"policy": "lag-150"}, CONTROLLER: plan | {"policy": "controller-150"}})

    def median(name, figure):
        return spread([figure(record) for record in found[name]]).median

    def decided(name):
        return median(name, lambda record: reaction(record).parts[POLICY])

    def row(name):
        figures = {"decision (s)": decided(name), "reaction (s)": median(name, lambda record: reaction(record).total_s)}
        figures |= {"reaction at real time (s)": median(name, lambda record: reaction(record).real_s)}
        figures |= {"peak lag": median(name, lambda record: hold(record).peak_lag)}
        figures |= {"pod-minutes": median(name, lambda record: cost(record).pod_minutes)}
        return figures | {"runs": len(found[name])}

    for name in found:
        evidence.report(name, partial(row, name))

    with evidence.of(found) as judge:
        judge(objective.REACTION, lambda: median(CONTROLLER, lambda record: reaction(record).total_s))
        judge(objective.REACTION_REAL, lambda: median(CONTROLLER, lambda record: reaction(record).real_s))
        judge(objective.NO_WAIT, lambda: (decided(CONTROLLER) - decided(KEDA)) / trials.scale.hpa_sync_s)
        judge(objective.FLIPS, lambda: max(stability(record).flips for record in found[CONTROLLER]))
        judge(objective.NOT_LOST, lambda: sum(integrity(record).lost for record in found[CONTROLLER]))
        judge(objective.DOUBLED, lambda: sum(integrity(record).doubled for record in found[CONTROLLER]))


@allure.story("A hysteresis that tells busy pods from idle ones ends the flapping")
def test_its_own_hysteresis_ends_the_flapping(trials, evidence):
    """Bursts on KEDA, on the controller with KEDA's rule, on its own rule, and on KEDA's long window."""
    plan = {"profile": "bursty", "workload": light()}
    keda = trials.run(policy="lag-150", **plan)
    same = trials.run(policy="controller-150", **plan)
    held = trials.run(policy="controller-150-held", **plan)
    patient = trials.run(policy="lag-150-patient", **plan)
    named = {"KEDA, 300 s": keda, "controller, 300 s": same, "controller, own hysteresis": held, "KEDA, 900 s": patient}

    def row(record):
        figures = {"flips": stability(record).flips, "pod-minutes": cost(record).pod_minutes}
        figures |= {"reaction (s)": reaction(record).total_s, "lag back after the last burst (s)": caught_up(record)}
        return figures | {"above the floor at baseline": stability(record).above_floor_at_baseline}

    for name, record in named.items():
        evidence.report(name, partial(row, record))

    with evidence.of(named) as judge:
        judge(objective.STILL_FLAPS, lambda: stability(keda).flips)
        judge(objective.ALSO_FLAPS, lambda: stability(same).flips)
        judge(objective.HELD_CALM, lambda: stability(held).flips)
        judge(objective.CHEAPER, lambda: cost(held).pod_minutes / cost(patient).pod_minutes)
        judge(objective.BASELINE, lambda: stability(held).above_floor_at_baseline)
        judge(objective.FLOOR, lambda: stability(held).above_floor_at_end)
        judge(objective.UNPROCESSED, lambda: integrity(held).produced - integrity(held).processed)
        judge(objective.DOUBLED, lambda: integrity(held).doubled)
