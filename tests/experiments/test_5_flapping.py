"""Experiment 5: when does it flap?

Hypothesis. A scale-down window shorter than a lull gives pods back between bursts. A longer one flips more rarely: a burst
that builds no lag does not renew it. A tolerance of 0.94 down, which tells busy pods by messages in flight, ends it
while the HPA never reads less than 6 % of what the pods may hold.

Method. Profiles ``bursty`` and ``ten-bursts``; policies that differ in scale-down alone. At real time pods start in 45
s, with lagThresholds of 4,500, 3,000 and 1,500 and commits every 4 or 5 s.

Asserted. 30 s and 300 s flip, and 900 s on ten bursts. With the tolerance nothing flips; lag is back within 10 s. At real time
nothing flips at 4,500, 3,000 and 1,500, nor at 3,000 with commits every 4 s.

Refuted by a flip there, or none at 900 s.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import policy
from lab.measure.drain import drain_time
from lab.measure.scaling import scale_events
from tests.experiments.flapping import SLOW_START, TEN_BURSTS, report_price
from tests.experiments.sources import DESIGN, GIVES_BACK, TEXT
from tests.experiments.workloads import duet, light, slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("5 Flapping")]

PATIENT, TOLERANT = "900 s", "300 s, tolerance 0.94"
STEP_S = {"in step": 5.0, "out of step": 4.0}  # between two commits, where the HPA syncs every 15 s


def tolerant_at(lag_threshold):
    """The policy with the tolerance at another lagThreshold."""
    return policy("lag-4500", lag_threshold=lag_threshold, scale_down_tolerance=0.94)


@pytest.mark.spike
@pytest.mark.acceptance
@pytest.mark.duration(90)
@pytest.mark.parametrize("profile", ["bursty"])
@allure.story("A short scale-down window flaps, a long one more rarely")
def test_a_tuned_window_ends_the_flapping(trials, evidence, profile):
    """The short window flips on three bursts; one that is longer than the trial does not, and lag is back in 10 s."""
    plan = {"profile": profile, "workload": light(), "until": REPLAYED}
    short = policy("lag-4500", scale_down_window=30, scale_down="100%/30s")
    long = policy("lag-4500", scale_down_window=900)
    found = trials.blocks({"30 s": plan | {"policy": short}, "900 s": plan | {"policy": long}})
    hasty, tuned = found["30 s"], found["900 s"]

    with evidence.of(found) as claim:
        claim.control(scale_events(hasty).flips > 0, "a window shorter than a lull flaps", DESIGN)
        claim.control(
            scale_events(tuned).flips == 0,
            "a window that outlasts all three bursts does not flip within them",
            f"{DESIGN}: the trial ends before the window can",
        )
        claim(drain_time(tuned) <= 10, "lag is back within 10 s where the group does not flip", "pilot of experiment 5")


@pytest.mark.extended
@allure.story("The usual window is longer than a lull, and still too short")
def test_a_burst_without_lag_does_not_renew_the_window(trials, evidence):
    """300 s are longer than every lull; the window runs out because the second burst builds no lag that renews it."""
    usual = trials.run(profile="bursty", policy="lag-4500", workload=light(), until=REPLAYED)

    with evidence.of({"300 s": usual}) as claim:
        claim(scale_events(usual).flips > 0, "a window longer than a lull is not long enough", "pilot of experiment 5")


@pytest.mark.extended
@allure.story("What ends the flapping, on ten bursts")
def test_what_ends_the_flapping(trials, evidence):
    """Window and tolerance on the same events, until the group is drained and back at its floor."""
    found = duet(trials, TEN_BURSTS, {PATIENT: policy("lag-4500", scale_down_window=900), TOLERANT: tolerant_at(4500)})
    patient, tolerant = found.values()
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            scale_events(patient).flips > 0,
            "a window of three times the interval between bursts does not end the flapping",
            "the lab's model of the controller (python -m lab simulate): 2 flips, against the payments text's rule",
        )
        claim(
            scale_events(tolerant).flips == 0,
            "to tell busy pods from idle ones ends the flapping",
            TEXT,
            refuted="4 flips (2026-11-24-slow-start)",
        )
        claim(drain_time(tolerant) <= 10, "lag is back within 10 s where the group does not flip", "pilot of experiment 5")
        claim(scale_events(tolerant).above_floor_at_end == 0, "the group gives back the pods that it took", GIVES_BACK)


@pytest.mark.real_time
@allure.story("What the tolerance needs, on ten bursts with pods that start slowly")
def test_the_tolerance_needs_enough_in_flight(trials, evidence):
    """Two lagThresholds with one tolerance on the same events, until the group is drained and back at its floor."""
    found = duet(trials, SLOW_START, {"lagThreshold 4,500": tolerant_at(4500), "lagThreshold 3,000": tolerant_at(3000)})
    usual, low = map(scale_events, found.values())
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            low.flips == 0,
            "with a lagThreshold of 3,000 the tolerance ends the flapping of pods that start slowly",
            "the lab's model of the controller (python -m lab plane): 0 flips, at real time as well",
        )
        claim(
            usual.flips == 0,
            "with a lagThreshold of 4,500 the tolerance ends the flapping of pods that start slowly",
            "text 1, section 5; the model foretells 4 flips at real time",
        )
        claim(low.above_floor_at_end == 0, "the group gives back the pods that it took, at a lagThreshold of 3,000", GIVES_BACK)


@pytest.mark.real_time
@allure.story("Commits in step with the HPA's sync, and out of step, on ten bursts")
def test_commits_out_of_step_with_the_sync(trials, evidence):
    """One policy, lagThreshold 3,000 with the tolerance; the sides differ in how often they commit."""
    plan = {"profile": "ten-bursts", "policy": tolerant_at(3000)}
    sides = [plan | {"workload": slim(start_s=45, commit_interval_ms=round(each * 1000))} for each in STEP_S.values()]
    found = dict(zip(STEP_S, trials.duet(*sides), strict=True))
    report_price(evidence, found)
    apart = scale_events(found["out of step"])

    with evidence.of(found) as claim:
        claim(
            apart.flips == 0,
            "commits out of step with the HPA's sync let the tolerance end the flapping",
            "arithmetic: 15 s less three times 4 s is a second, so four syncs read a rise at four points",
        )
        claim(apart.above_floor_at_end == 0, "the group gives back the pods that it took, with commits out of step", GIVES_BACK)


@pytest.mark.real_time
@allure.story("A lagThreshold below the lowest point between two commits, on ten bursts")
def test_a_threshold_below_the_swing_of_lag(trials, evidence):
    """Two lagThresholds with one tolerance, and commits in step with the sync."""
    found = duet(trials, SLOW_START, {"lagThreshold 1,500": tolerant_at(1500), "lagThreshold 3,000": tolerant_at(3000)})
    low = scale_events(found["lagThreshold 1,500"])
    report_price(evidence, found)

    with evidence.of(found) as claim:
        claim(
            low.flips == 0,
            "a lagThreshold for which the least in flight is enough lets the tolerance end the flapping",
            "the lab's model of the controller (python -m lab plane): 0 flips from 1.4 to 4.1 s in flight",
        )
        claim(low.above_floor_at_end == 0, "the group gives back the pods that it took, at a lagThreshold of 1,500", GIVES_BACK)
