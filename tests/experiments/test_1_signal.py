"""Experiment 1: the signal.

Hypothesis. An HPA on CPU does not see a backlog: a consumer that waits for its downstream write stays near 30 % of the CPU it
requests however large its lag. The same traffic with KEDA's lag trigger scales out and stops the growth.

Method. Profile ``plateau`` (R, then 10R, then R) twice, with the same pods of 100 events/s: on policy ``cpu``, a plain HPA
with a target of 70 % through the real metrics-server, and on policy ``lag-4500``. Both may go from 4 to 24 replicas by the same
behavior block. What the HPA saw is taken from its own status; growth is the slope of lag in the last third of the spike. With
``--repeat`` each block runs both, and a claim is held where it is held in every block.

Asserted. CPU stays below the HPA's target and nothing is asked for; lag still grows when the spike ends. On lag the growth is
over by then, and the peak is at most half.
"""

import allure
import pytest

from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.lag import hold
from lab.measure.scaling import scale_events
from lab.measure.signal import signal
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("1 Signal")]


@allure.story("CPU is no signal for an I/O-bound consumer; lag is")
def test_cpu_does_not_see_a_backlog(trials, evidence):
    """The HPA on CPU lets lag grow without asking for a pod; the lag trigger stops it."""
    plan = {"profile": "plateau", "workload": light(), "until": REPLAYED}
    found = trials.blocks({"CPU": plan | {"policy": "cpu"}, "lag": plan | {"policy": "lag-4500"}})
    cpu, lag = found["CPU"], found["lag"]

    ratio = (hold(cpu).peak_lag / hold(lag).peak_lag).named("peak lag on CPU over peak lag on lag")

    with evidence.of(found) as claim:
        claim(
            signal(cpu).utilization < 70,
            "an I/O-bound consumer never comes near the HPA's target of 70 %",
            source="the HPA's target in manifests/hpa/cpu (70 %)",
        )
        claim(
            scale_events(cpu).scale_ups == 0,
            "a signal that does not move asks for nothing",
            source="follows from the target of 70 % and its tolerance",
        )
        claim(
            hold(cpu).growth > 500,
            "without a reaction lag grows without bound",
            kind="control",
            source="the experiment's design: offered rate less capacity",
        )
        claim(hold(lag).growth <= 50, "the lag trigger brings the growth to an end", source="pilot: findings.md section 1")
        claim(ratio >= 2, "the right signal at least halves the peak", source="pilot: findings.md section 1")
        claim(unaccounted(cpu, lag) == 0, DELIVERED, kind="invariant", source=CONTRACT)
