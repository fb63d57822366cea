"""Experiment 1: is CPU a signal?

Hypothesis. An HPA on CPU does not see a backlog: a consumer that waits for its downstream write stays near 30 % of the CPU it
requests however large its lag. The same traffic with KEDA's lag trigger scales out and stops the growth.

Method. A duet on profile ``plateau`` (R, then 10R, then R): two groups of pods of 100 events/s read the same events at the
same moment. One is on policy ``cpu``, a plain HPA with a target of 70 % of a request of 70m through the real metrics-server,
the other on policy ``lag-4500``. Both begin with 4 replicas and have one behavior block. The HPA on CPU may go to 12 and the
trigger to 24, as two cores schedule no more; a ceiling matters only to a group that asks for pods. What the HPA saw is taken
from its own status; growth is the slope of lag in the last third of the spike. An A/A duet of ``lag-4500`` in the same block
shows what two equal groups differ by, with each peak doubled as it is in the claim.

Asserted. CPU stays below the HPA's target and nothing is asked for; lag still grows when the spike ends. On lag the growth is
over by then. From six pairs on (``--repeat 6``): the peak on CPU is more than twice that on lag.

Refuted by an HPA on CPU that asks for a pod in any run, and by peaks whose difference is within the A/A noise or may be 0.
Where the lab halves the rate for the machine's cores, a pod also computes less: then nothing is said of CPU at the whole rate.
"""

import itertools

import allure
import pytest

from lab.judge.pairs import discern, paired
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.lag import hold
from lab.measure.scaling import scale_events
from lab.measure.signal import signal
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import light, slim

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("1 Signal")]

PLAN = {"profile": "plateau", "until": REPLAYED}
ON_CPU = PLAN | {"policy": "cpu", "workload": light()}
ON_LAG = PLAN | {"policy": "lag-4500", "workload": slim()}


@allure.story("CPU is no signal for an I/O-bound consumer; lag is")
def test_cpu_does_not_see_a_backlog(trials, evidence):
    """The HPA on CPU lets lag grow without asking for a pod; the lag trigger stops it."""
    found = trials.duets({"signals": (ON_CPU, ON_LAG), "A/A": (ON_LAG, ON_LAG)})
    (cpu, lag), (one, other) = found["signals"], found["A/A"]

    more = paired(hold(cpu).peak_lag, hold(lag).peak_lag * 2)
    same = paired(hold(one).peak_lag * 2, hold(other).peak_lag * 2)
    evidence.report("peak lag on CPU less twice that on lag", more.figures())
    evidence.noise(one, other)

    with evidence.of({"CPU": cpu, "lag": lag, "A/A, a": one, "A/A, b": other}) as claim:
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
        claim(discern(more, same) > 0, "the right signal at least halves the peak", source="pilot: findings.md section 1")
        claim(unaccounted(*itertools.chain(cpu, lag, one, other)) == 0, DELIVERED, kind="invariant", source=CONTRACT)
