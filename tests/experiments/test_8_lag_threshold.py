"""Experiment 8: the lagThreshold sweep.

Hypothesis. At rest a group on the lag trigger is behind by lagThreshold / rate per pod, because replicas = lag / lagThreshold
and throughput = replicas x rate. So lagThreshold = rate x objective x 0.75 keeps it within its objective with a quarter to
spare; ten times less over-scales and churns, ten times more breaches it.

Method. Profile ``plateau`` with pods of 100 events/s on policies that differ in lagThreshold alone: 15, 50, 150, 500 and 1,500,
two decades around 100 x 2 s x 0.75 = 150. Time behind is the median of lag / arrival rate (Little's law) in the last third of
the spike, when the group has had its time to react.

Asserted. 150 holds the objective of 2 s, 1,500 breaches it, and 15 takes more replicas than 150 for the same traffic.
"""

import allure
import pytest

from lab import objective
from lab.measure.hold import hold
from lab.trial.inputs import REPLAYED
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("8 lagThreshold")]

RATE, OBJECTIVE_S = light().rate, objective.BEHIND.bound
SWEEP = (15, 50, 150, 500, 1500)


@allure.story("lagThreshold follows from the rate of a pod and the objective")
def test_the_lag_threshold_follows_from_the_objective(trials, evidence):
    """The computed value holds the objective; a tenth of it over-scales, ten times it breaches."""
    computed = round(RATE * OBJECTIVE_S * 0.75)
    found = {
        threshold: trials.run(profile="plateau", policy=f"lag-{threshold}", workload=light(), until=REPLAYED)
        for threshold in SWEEP
    }

    with evidence.of({f"{threshold}": record for threshold, record in found.items()}) as judge:
        judge(objective.BEHIND, lambda: hold(found[computed]).behind_s)
        judge(objective.TOO_LATE, lambda: hold(found[computed * 10]).behind_s)
        judge(objective.CHURN, lambda: hold(found[computed // 10]).replicas / hold(found[computed]).replicas)

    within = [threshold for threshold, record in found.items() if hold(record).behind_s <= OBJECTIVE_S]
    evidence.conclude(
        "lagThreshold",
        computed,
        f"rate per pod {RATE:g}/s x objective {OBJECTIVE_S:g} s x 0.75; "
        f"the largest of the sweep within the objective is {max(within, default=0)}",
    )
