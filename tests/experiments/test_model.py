"""The model: what it decides, and what it predicts, beside what really happened.

Hypothesis. The pure model of KEDA and the HPA is the real thing: given what a real HPA saw at a sync, it decides what that one
decided, at every sync of every trial. Set into a simulated group of consumers it tells a trial's replicas, peak lag and drain
time before there is a cluster.

Method. The controller logs each sync; what it saw follows from the HPA's status (:mod:`lab.measure.agreement`). Every trial of
the session that an HPA decided is replayed. For the prediction the simulator is given a trial's inputs (profile, seed, policy,
workload), the phase of the HPA's syncs, which is luck, and what the session's *other* trials show of the consumers: how long a
pod takes to start, to leave, how long a rebalance's rounds are, what is in flight (:mod:`lab.measure.calibration`). The trial's
own outcome does not go in. Only policies that scale on lag, with partitions that stay as they are, are simulated.

Asserted. 100 % of the decisions agree. Predicted replicas are within one of the recorded for 95 % of the time, peak lag and
drain time within 15 %: the median over the trials; each trial's own figures are in the table.
"""

from statistics import median

import allure
import pytest

from lab import objective
from lab.measure.agreement import agreement
from lab.measure.calibration import calibration
from lab.measure.prediction import compare
from lab.trial.inputs import REPLAYED
from lab.trial.record import NoData
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("The model")]

SYNCS = {
    "syncs": lambda replay: replay.syncs,
    "rescaled": lambda replay: replay.rescaled,
    "proposal worked out too": lambda replay: replay.computed,
    "agreed 1 ms off": lambda replay: replay.at_an_edge,
    "disagreements": lambda replay: len(replay.disagreements),
}
PREDICTED = {
    "within one pod (% of time)": lambda one: one.within_one_pod,
    "peak lag, predicted": lambda one: one.predicted.peak_lag,
    "recorded": lambda one: one.recorded.peak_lag,
    "drain, predicted (s)": lambda one: one.predicted.drain_s,
    "recorded (s)": lambda one: one.recorded.drain_s,
    "pod-minutes, predicted": lambda one: one.predicted.pod_minutes,
    "recorded (pod-minutes)": lambda one: one.recorded.pod_minutes,
    "flips, predicted": lambda one: one.predicted.flips,
    "recorded (flips)": lambda one: one.recorded.flips,
}


@pytest.fixture
def shared(trials):
    """Three trials that other experiments have too, so that this one can stand alone."""
    plans = {"plateau": ("plateau", "lag-150"), "bursty": ("bursty", "lag-150"), "sawtooth": ("sawtooth", "lag-150-patient")}
    return {name: trials.run(*plan, workload=light(), until=REPLAYED) for name, plan in plans.items()}


@allure.story("Every decision of every trial is the model's")
def test_the_model_decides_as_the_real_hpa_did(trials, shared, evidence):
    """Each sync of each HPA of the session is decided again, from what it saw."""
    found = {}
    for record in trials.done.values():
        try:
            found[record.id] = agreement(record)
        except NoData as missing:
            if record.trial["inputs"]["policy"]["kind"] in ("ScaledObject", "HorizontalPodAutoscaler"):
                raise AssertionError(f"{record.id}: {missing}") from missing
    for figure, of in SYNCS.items():
        evidence.report(figure, {name: of(replay) for name, replay in found.items()})
    for name, replay in found.items():
        for one in replay.disagreements:
            print(f"{name}: {one}")

    with evidence.of(shared) as judge:
        judge(objective.REPLAYED_SYNCS, lambda: sum(replay.syncs for replay in found.values()))
        judge(objective.AGREES, lambda: min(replay.agreement for replay in found.values()))


@allure.story("What the simulator says beforehand, beside what happened")
def test_the_simulator_tells_what_will_happen(trials, shared, evidence):
    """Each trial is predicted from its inputs and from what the others show of the consumers."""
    everything = list(trials.done.values())
    found = {}
    for record in everything:
        try:
            found[record.id] = compare(record, calibration([other for other in everything if other.id != record.id]))
        except NoData:
            continue
    for figure, of in PREDICTED.items():
        evidence.report(figure, {name: of(one) for name, one in found.items()})
    drains = [abs(one.drain_error) for one in found.values() if None not in (one.predicted.drain_s, one.recorded.drain_s)]

    with evidence.of(shared) as judge:
        judge(objective.WITHIN_ONE, lambda: median(one.within_one_pod for one in found.values()))
        judge(objective.PEAK_PREDICTED, lambda: median(abs(one.peak_error) for one in found.values()))
        judge(objective.DRAIN_PREDICTED, lambda: median(drains))
