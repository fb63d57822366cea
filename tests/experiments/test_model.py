"""The model: can a trial be predicted?

Hypothesis. The pure model of KEDA and the HPA decides what the real HPA decided, at every sync. With simulated consumers it
predicts a trial's replicas, peak lag and drain time.

Method. Every trial of the session that an HPA decided is replayed from the controller's log and the HPA's status. The
simulator is given a trial's inputs, the phase of its syncs, and what the other trials show of the consumers. One trial is run
twice. Last runs what the tuner made of ``lag-4500`` for ``bursty``.

Asserted. All decisions agree. The median peak is within 15 %. Replicas are within one of the recorded as much of the time as a
second run's, less 10 points. The tuned policy does not flip and is late for less time.

Refuted by one decision that differs, or a figure beyond its bound.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import policy
from lab.judge.aggregate import median, smallest, total
from lab.judge.bounds import TIME_BEHIND_S
from lab.judge.measure import measure
from lab.measure.calibration import calibration_from_others
from lab.measure.lateness import behind
from lab.measure.prediction import Comparison, agreement, compare, compare_runs
from lab.measure.scaling import scale_events
from tests.experiments.sources import DESIGN, ORACLES
from tests.experiments.workloads import light

pytestmark = [pytest.mark.extended, allure.epic("Scaling on lag"), allure.feature("The model")]

SYNCS = {
    "syncs": lambda replay: replay.syncs,
    "rescaled": lambda replay: replay.rescaled,
    "proposal worked out too": lambda replay: replay.computed,
    "agreed at an edge of the clock": lambda replay: replay.at_an_edge,
    "agreed on a less likely input": lambda replay: replay.alternatives,
    "disagreements": lambda replay: None if replay.why else len(replay.disagreements),
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


TWICE = {
    "within one pod, predicted (% of time)": lambda one, _: one.within_one_pod,
    "a second run (% of time)": lambda _, again: again.within_one_pod,
    "peak lag off, predicted (%)": lambda one, _: one.peak_error,
    "a second run (peak, %)": lambda _, again: again.peak_error,
    "drain off, predicted (%)": lambda one, _: one.drain_error,
    "a second run (drain, %)": lambda _, again: again.drain_error,
}
PLANS = {"plateau": "lag-4500", "bursty": "lag-4500", "sawtooth": policy("lag-4500", scale_down_window=900)}
AGAIN = ("plateau",)  # run twice


def plan(profile, chosen):
    """The trial of pods of 100 events/s that other experiments have too."""
    return {"profile": profile, "policy": chosen, "workload": light(), "until": REPLAYED}


@pytest.fixture
def shared(trials):
    """Three trials of the other experiments, so that this one can stand alone."""
    return trials.blocks({profile: plan(profile, chosen) for profile, chosen in PLANS.items()})


def alone(trials):
    """The session's trials that had the machine to themselves: the sides of a duet share it, and the model knows of none."""
    return [record for record in trials.done.values() if record.inputs.side is None]


@measure
def foreseen(record, others) -> Comparison:
    """The record beside its prediction, from the other trials of its workload, or from all where those show too little."""
    known = calibration_from_others(record, others, alike=True) or calibration_from_others(record, others, alike=False)
    return compare(record, known) if known else Comparison.missing("no other trial shows what pods take")


@allure.story("Every decision of every trial is the model's")
def test_the_model_decides_as_the_real_hpa_did(trials, shared, evidence):
    """Each sync of each HPA of the session is decided again, from what it saw."""
    decided = [record for record in trials.done.values() if record.policy.hpa is not None]
    found = {record.id: agreement(record) for record in decided}
    for name, replay in found.items():
        evidence.report(name, {figure: of(replay) for figure, of in SYNCS.items()})
    wrong = [f"{name}: {one}" for name, replay in found.items() if not replay.why for one in replay.disagreements]
    evidence.explain("\n".join(wrong))

    with evidence.of(shared) as claim:
        syncs, agreed = total(one.syncs for one in found.values()), smallest(one.agreement for one in found.values())
        claim.control(syncs >= 50, "enough syncs were replayed", f"{DESIGN}: enough to replay")
        claim.invariant(agreed == 100, "from the same inputs come the same replicas", ORACLES)


@allure.story("What the simulator says beforehand, beside what happened")
def test_the_simulator_tells_what_will_happen(trials, shared, evidence):
    """Each trial is predicted from its inputs and from what the others show of the consumers."""
    every = {record.id: foreseen(record, alone(trials)) for record in alone(trials)}
    found = {name: one for name, one in every.items() if not one.why}
    for name, one in found.items():
        evidence.report(name, {figure: of(one) for figure, of in PREDICTED.items()})
    off = median(abs(one.peak_error) for one in found.values())

    with evidence.of(shared, delivery=None) as claim:
        claim(off <= 15, "the median peak lag of the session's trials is predicted", "pilot of the model")


@allure.story("A prediction is as near as the next run")
def test_a_prediction_is_as_near_as_the_next_run(trials, shared, evidence):
    """A trial beside its prediction, and beside a second run of its own."""
    again = trials.blocks({name: plan(name, PLANS[name]) | {"repetition": 2} for name in AGAIN})
    predicted = {name: foreseen(shared[name], alone(trials)) for name in AGAIN}
    repeated = {name: compare_runs(shared[name], again[name]) for name in AGAIN}
    for name in AGAIN:
        evidence.report(name, {figure: of(predicted[name], repeated[name]) for figure, of in TWICE.items()})
    nearer = median(repeated[name].within_one_pod - predicted[name].within_one_pod for name in AGAIN)
    nearer = nearer.named("time within one pod of the recorded replicas: a second run's less the prediction's", "points")

    with evidence.of(again) as claim:
        claim(nearer <= 10, "a prediction is about as near as the next run", "pilot of the model")


@allure.story("The tuner's recommendation, confirmed")
def test_the_tuned_policy_does_what_it_was_made_for(trials, evidence):
    """The variant is what ``python -m lab tune`` makes of ``lag-4500`` on ``bursty``."""
    advised = policy("lag-4500", scale_up="900%/30s", scale_down_window=900)
    found = trials.blocks({"as given": plan("bursty", "lag-4500"), "tuned": plan("bursty", advised)})
    tuned = found["tuned"]
    late = {name: behind(record, TIME_BEHIND_S) for name, record in found.items()}
    less = late["tuned"] / late["as given"]
    for name, record in found.items():
        evidence.report(name, {"behind by more than 2 s, for (s)": late[name], "flips": scale_events(record).flips})

    with evidence.of(found) as claim:
        claim(
            scale_events(tuned).flips == 0,
            "the tuned policy does not flip, as the tuner predicted",
            "the tuner's own prediction",
        )
        claim(
            less.named("time behind with the tuned policy over that with the given one") < 1,
            "the tuned policy is late for less time, which the tuner was asked for",
            "the tuner's goal",
        )

    evidence.conclude(
        "tuned",
        "scaleUp 900%/30s, scaleDown window 900 s",
        f"behind for {late['tuned']:.1f} s instead of {late['as given']:.1f} s on bursty",
    )
