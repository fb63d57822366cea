"""Scenario payments: what does a CPU trigger beside the lag change?

Hypothesis. The HPA takes the larger of the two proposals, which helps a group that computes: CPU asks for pods before there is
any lag, and lag alone never does while the consumers keep up.

Method. Consumers that spend a fifth of their time computing; the floor of 3 pods takes the traffic, but is over the CPU target.
The author's ScaledObject with both triggers and with the lag alone. What each trigger asked for is taken from the HPA's status,
step by step.

Asserted. CPU won the first step up; every step went to the larger proposal; the lag never asked for more than the floor, and
alone took no step.

Refuted by one step that follows the smaller proposal.
"""

import allure
import pytest

from lab.judge.measure import quantity
from tests.scenarios.payments.measure.winning_metric import CPU, LAG, winning_metric
from tests.scenarios.payments.trials import processor, run

pytestmark = [pytest.mark.scenario, pytest.mark.extended, allure.epic("Real systems"), allure.feature("Payments")]


@allure.story("A group that computes is scaled by its CPU, before there is lag")
def test_the_larger_of_lag_and_cpu_wins(trials, evidence):
    """Consumers that spend a fifth of their time computing keep up on 3 pods, over the CPU target: CPU asks for more first."""
    heavy = processor(burn=18, cpu_request_m=150)
    both, alone = run(trials, "payments-heavy", "lag-and-cpu", heavy), run(trials, "payments-heavy", workload=heavy)
    found = winning_metric(both)

    with evidence.of({"lag and CPU": both, "lag": alone}) as claim:
        claim(found.first_on_cpu == 1, "CPU asks for pods before lag asks for anything", "text 2: two triggers")
        source = "the pinned Go code of the HPA/KEDA (tests/oracles): the maximum of the triggers"
        claim.invariant(found.off_largest == 0, "an HPA takes the maximum of its triggers", source)
        source = "text 2: minReplicaCount 3"
        claim(found.most_by_lag <= 3, "lag asks for the floor of 3 pods while the consumers keep up", source)
        ups = scale_ups_since_spike(alone)
        claim.control(ups == 0, "lag alone does not see a group that computes", "the experiment's design: lag alone")
        for step in found.steps:
            figures = {"from": step.before, "to": step.after, "CPU (%)": step.values.get(CPU)}
            figures |= {"lag per pod": step.values.get(LAG)}
            figures |= {"CPU asks for": step.proposals.get(CPU), "lag asks for": step.proposals.get(LAG)}
            evidence.report(f"{step.before} -> {step.after}, {step.won} won", figures)


@quantity("steps", "scale-ups since the spike began")
def scale_ups_since_spike(record):
    """Scale-ups from the spike's start to the trial's end."""
    spike = record.zero
    return sum(change.after > change.before and change.t >= spike for change in record.scalings)
