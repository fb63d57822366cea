"""Experiment 5: when does it flap?

Hypothesis. Under bursts a scale-down window shorter than a lull gives pods back between two bursts and asks for them again, so
that every burst costs two rounds of scaling and their rebalances. A window longer than a lull is not enough either: a burst
that builds no lag, because the pods are still there, does not renew it. So a longer window only flips more rarely. What ends
the flapping is to tell a busy pod from an idle one: pods that keep up have messages in flight, which HPA and KEDA call
surplus as long as they are below 90 % of what the pods may hold. ``tolerance: "0.94"`` down makes that 6 %.

Method. Profiles ``bursty`` (three 10x bursts, one every 300 s) and ``ten-bursts`` (ten of them, run until the backlog is
drained and the group is back at its floor), with pods of 100 events/s. The policies differ from ``lag-4500`` (window 300 s) in
their scale-down alone: ``-hasty`` 30 s, ``-patient`` 900 s, ``-tolerant`` 300 s and a tolerance of 0.94. On ``ten-bursts`` the
last two run beside each other on the same events. A flip is a scale-down followed by a scale-up.

Asserted. The short window flips; this is the control. 300 s flip already on three bursts. The payments text asks for a window
that is longer than the interval between two bursts. On ten bursts 900 s are three times that interval, and they flip too: so
said the lab's model of the controller before it was run (2 flips), and 0 flips would refute it and confirm the text's rule.
With the tolerance nothing flips (the model's 0), lag is back at one lagThreshold within 10 s of the last burst, as seen, and
the group gives back what it took; one flip refutes it. The price of each is reported: pod-minutes, and the time in which an
event waits for more than 2 s.

What the tolerance needs. It holds as long as the messages in flight are more than 6 % of what the pods may hold, and real
time has fewer of them in flight than quick. ``elastic-lab plane`` foretells for real time, with 2.5 s of traffic in flight: 4
flips at a lagThreshold of 4,500 once a pod takes 30 s or more to start, and 0 at 3,000 from 2 to 60 s. So both run beside
each other with a start of 45 s. The test is run at ``--scale=real``. A flip at 3,000 refutes the model and the cure. A
flip at 4,500 refutes the tolerance as this lab recommended it.

What the HPA reads between two commits. The first run of that at real time flipped at both lagThresholds. Lag rises until the
next commit, by 5 s of traffic. Pods that started together commit together. The HPA syncs every 15 s, three commits later. So
it reads the same point of each rise for a whole burst, high or low. Commits every 4 s are out of step with it: four syncs
read four points, a second apart. One of them reads more than 2.16 s of traffic, which are 6 % at 3,000. So 3,000 with commits
every 4 s does not flip; one flip refutes it. The same with 5 s runs beside it. At 1,500, 6 % are 1.08 s of traffic. In the
trials of the scale session no point of a rise was below 1.4 s, so 1,500 does not flip either; one flip refutes it.

Foretold for ``--scale=close``, before its run: 0 flips at 4 s and at 1,500, and more at 3,000 with 5 s. Its first run had 0
flips on both sides of the first pair, so the last forecast fell. A run at real time is to decide. At quick a sync is late by
as much as a commit takes, so quick can't. Points of 0.85 s were found later, in the run at real time: 1,500 may fail for a
few bursts. Since then 4 s ran twice at real time and 1,500 once: 0 flips in each. 3,000 with 5 s flipped 2 times beside them in
each of three runs.
"""

import itertools
import math

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.aggregate import median
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.drain import drain_time
from lab.measure.scaling import scale_events
from lab.model.hpa import DEFAULTS
from tests.experiments.flapping import SLOW_START, TEN_BURSTS, report_price
from tests.experiments.workloads import light, slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("5 Flapping")]

PATIENT, TOLERANT = "900 s", "300 s, tolerance 0.94"
STEP_S = {"in step": 5.0, "out of step": 4.0}  # between two commits, where the HPA syncs every 15 s
ROWS: dict[str, dict[str, float]] = {  # scaleDown as a policy states it
    PATIENT: {"stabilizationWindowSeconds": 900, "tolerance": DEFAULTS.tolerance},
    TOLERANT: {"stabilizationWindowSeconds": 300, "tolerance": 0.94},
}


@pytest.mark.spike
@pytest.mark.parametrize("profile", ["bursty"])
@allure.story("A short scale-down window flaps, a long one more rarely")
def test_a_tuned_window_ends_the_flapping(trials, evidence, profile):
    """The short window flips on three bursts; one that is longer than the trial does not, and the backlog drains as fast."""
    plan = {"profile": profile, "workload": light(), "until": REPLAYED}
    found = trials.blocks({"30 s": plan | {"policy": "lag-4500-hasty"}, "900 s": plan | {"policy": "lag-4500-patient"}})
    hasty, tuned = found["30 s"], found["900 s"]

    with evidence.of(found) as claim:
        claim(
            scale_events(hasty).flips > 0,
            "a window shorter than a lull flaps",
            kind="control",
            source="the experiment's design",
        )
        claim(
            scale_events(tuned).flips == 0,
            "a window that outlasts all three bursts does not flip within them",
            kind="control",
            source="the experiment's design: the trial ends before the window can",
        )
        claim(drain_time(tuned) <= 10, "the group that does not flip drains as fast", source="pilot: findings.md section 5")
        claim(unaccounted(hasty, tuned) == 0, DELIVERED, kind="invariant", source=CONTRACT)


@pytest.mark.spike
@allure.story("The usual window is longer than a lull, and still too short")
def test_a_burst_without_lag_does_not_renew_the_window(trials, evidence):
    """300 s are longer than every lull; the window runs out because the second burst builds no lag that renews it."""
    usual = trials.run(profile="bursty", policy="lag-4500", workload=light(), until=REPLAYED)

    with evidence.of({"300 s": usual}) as claim:
        claim(
            scale_events(usual).flips > 0,
            "a window longer than a lull is not long enough",
            source="pilot: findings.md section 5",
        )
        claim(unaccounted(usual) == 0, DELIVERED, kind="invariant", source=CONTRACT)


def typical(figure, runs):
    """The median of a figure over the runs."""
    return median(figure(run) for run in runs)


def flips(run):
    """How often a scale-down was followed by a scale-up."""
    return scale_events(run).flips


def pod_minutes(run):
    """What the pods cost."""
    return cost(run).pod_minutes


def calmest(found):
    """The name among ``found`` (runs by name) whose median run flips least, and of those the one of the fewest pod-minutes.

    One that has no data comes last.
    """
    ranks = {name: [typical(figure, runs).value for figure in (flips, pod_minutes)] for name, runs in found.items()}
    return min(ranks, key=lambda name: [math.inf if value is None else value for value in ranks[name]])


@pytest.mark.spike
@allure.story("What ends the flapping, on ten bursts")
def test_what_ends_the_flapping(trials, evidence):
    """Window and tolerance on the same events, until the group is drained and back at its floor."""
    patient, tolerant = trials.duet(TEN_BURSTS | {"policy": "lag-4500-patient"}, TEN_BURSTS | {"policy": "lag-4500-tolerant"})
    found = {PATIENT: patient, TOLERANT: tolerant}
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(patient).flips > 0,
            "a window of three times the interval between bursts does not end the flapping",
            source="the lab's model of the controller (python -m lab simulate): 2 flips, against the payments text's rule",
        )
        claim(
            scale_events(tolerant).flips == 0, "to tell busy pods from idle ones ends the flapping", source="text 1, section 5"
        )
        claim(drain_time(tolerant) <= 10, "the group that does not flip drains as fast", source="pilot: findings.md section 5")
        claim(
            scale_events(tolerant).above_floor_at_end == 0,
            "the group gives back the pods that it took",
            source="text 1, section 5: gives back",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)

    best = calmest(found)
    told = {
        name: f"{name} flipped {typical(flips, runs):.0f} times for {typical(pod_minutes, runs):.1f} pod-minutes"
        for name, runs in found.items()
    }
    others = ", ".join(text for name, text in told.items() if name != best)
    for setting, value in ROWS[best].items():
        evidence.conclude(f"scaleDown.{setting}", value, f"on ten bursts {told[best]}; {others}")


@pytest.mark.real_time
@allure.story("What the tolerance needs, on ten bursts with pods that start slowly")
def test_the_tolerance_needs_enough_in_flight(trials, evidence):
    """Two lagThresholds with one tolerance on the same events, until the group is drained and back at its floor."""
    usual, low = trials.duet(SLOW_START | {"policy": "lag-4500-tolerant"}, SLOW_START | {"policy": "lag-3000-tolerant"})
    found = {"lagThreshold 4,500": usual, "lagThreshold 3,000": low}
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(low).flips == 0,
            "with a lagThreshold of 3,000 the tolerance ends the flapping of pods that start slowly",
            source="the lab's model of the controller (python -m lab plane): 0 flips, at real time as well",
        )
        claim(
            scale_events(usual).flips == 0,
            "with a lagThreshold of 4,500 the tolerance ends the flapping of pods that start slowly",
            source="text 1, section 5; the model foretells 4 flips at real time",
        )
        claim(
            scale_events(low).above_floor_at_end == 0,
            "the group gives back the pods that it took, at a lagThreshold of 3,000",
            source="text 1, section 5: gives back",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)


@pytest.mark.real_time
@allure.story("Commits in step with the HPA's sync, and out of step, on ten bursts")
def test_commits_out_of_step_with_the_sync(trials, evidence):
    """One policy, lagThreshold 3,000 with the tolerance; the sides differ in how often they commit."""
    plan = {"profile": "ten-bursts", "policy": "lag-3000-tolerant"}
    sides = [plan | {"workload": slim(start_s=45, commit_interval_ms=round(each * 1000))} for each in STEP_S.values()]
    found = dict(zip(STEP_S, trials.duet(*sides), strict=True))
    report_price(evidence, found)
    apart = found["out of step"]

    with evidence.of(found) as claim:
        claim(
            scale_events(apart).flips == 0,
            "commits out of step with the HPA's sync let the tolerance end the flapping",
            source="arithmetic: 15 s less three times 4 s is a second, so four syncs read a rise at four points",
        )
        claim(
            scale_events(apart).above_floor_at_end == 0,
            "the group gives back the pods that it took, with commits out of step",
            source="text 1, section 5: gives back",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)


@pytest.mark.real_time
@allure.story("A lagThreshold below the lowest point between two commits, on ten bursts")
def test_a_threshold_below_the_swing_of_lag(trials, evidence):
    """Two lagThresholds with one tolerance, and commits in step with the sync."""
    low, usual = trials.duet(SLOW_START | {"policy": "lag-1500-tolerant"}, SLOW_START | {"policy": "lag-3000-tolerant"})
    found = {"lagThreshold 1,500": low, "lagThreshold 3,000": usual}
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(low).flips == 0,
            "a lagThreshold for which the least in flight is enough lets the tolerance end the flapping",
            source="the lab's model of the controller (python -m lab plane): 0 flips from 1.4 to 4.1 s in flight",
        )
        claim(
            scale_events(low).above_floor_at_end == 0,
            "the group gives back the pods that it took, at a lagThreshold of 1,500",
            source="text 1, section 5: gives back",
        )
        claim(unaccounted(*itertools.chain(*found.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)
