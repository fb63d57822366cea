"""Experiment 1: is CPU a signal?

Hypothesis. An HPA on CPU or memory sees no backlog: a consumer that waits for its downstream write stays near 30 % of its CPU
request. KEDA's lag trigger stops the growth.

Method. Profile ``plateau``, pods of 100 events/s: policies ``cpu`` (target 70 %) and ``lag-4500``, alone and in a duet beside
A/A. CPU requests: 70m, 35m, 18m. Memory late in the spike is compared with that before it.

Asserted. At 70m and 35m CPU asks for no pod while lag grows; at 18m it does, since a busy pod is above its target. On lag the
growth ends. Memory stays within the HPA's tolerance. From six pairs on the peak on CPU is more than twice that on lag.

Refuted by a step up at 35m or 70m, none at 18m, memory 10 % up, or peaks that differ within A/A noise.
"""

import allure
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.pairs import discern, paired
from lab.measure.lag import hold, peak_lag
from lab.measure.scaling import scale_events
from lab.measure.signal import signal
from tests.experiments.measure.memory import pod_memory
from tests.experiments.workloads import light, slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("1 Signal")]

PLAN = {"profile": "plateau", "until": REPLAYED}
ON_CPU = PLAN | {"policy": "cpu", "workload": light(cpu_request_m=47)}  # of a duet
ON_LAG = PLAN | {"policy": "lag-4500", "workload": slim()}
UNANSWERED = "the experiment's design: offered rate less capacity"
REQUESTS = (35, 18)  # millicores, of a duet


@pytest.fixture
def signals(trials):
    """The same step on either signal: the runs by its name."""
    plan = PLAN | {"workload": light()}
    return trials.blocks({"CPU": plan | {"policy": "cpu"}, "lag": plan | {"policy": "lag-4500"}})


def claim_blindness(claim, cpu):
    """The HPA on CPU reads nothing of a backlog."""
    claim(
        signal(cpu).utilization < 70,
        "in the median an I/O-bound consumer stays below the HPA's target of 70 %",
        "the HPA's target in manifests/hpa/cpu (70 %)",
    )
    claim(
        signal(cpu).highest_utilization < 77,
        "not even its highest reading under load makes the HPA act",
        "the HPA's target in manifests/hpa/cpu (70 %) and its tolerance of 10 %",
    )
    claim(
        scale_events(cpu).scale_ups == 0,
        "a signal that does not move asks for nothing",
        "follows from the target of 70 % and its tolerance",
    )
    claim.control(hold(cpu).growth > 500, "without a reaction lag grows without bound", UNANSWERED)


@pytest.mark.spike
@pytest.mark.duration(95)
@allure.story("CPU is blind to a backlog that lag answers")
def test_cpu_is_blind_and_lag_is_not(signals, evidence):
    """The HPA on CPU lets lag grow without asking for a pod; the lag trigger leaves half of that backlog at most."""
    cpu, lag = signals.values()

    with evidence.of(signals) as claim:
        claim_blindness(claim, cpu)
        claim(
            (peak_lag(lag) / peak_lag(cpu)).named("peak lag on the lag trigger over that on CPU") <= 0.5,
            "the lag trigger leaves half of the backlog at most",
            "the duets of this experiment: at least half of the peak goes",
        )


@pytest.mark.extended
@allure.story("CPU is no signal for an I/O-bound consumer; lag is")
def test_cpu_does_not_see_a_backlog(signals, evidence):
    """The HPA on CPU lets lag grow without asking for a pod; the lag trigger stops it."""
    cpu, lag = signals.values()

    with evidence.of(signals) as claim:
        claim_blindness(claim, cpu)
        claim(
            hold(lag).growth <= 50,
            "the lag trigger brings the growth to an end",
            "pilot of experiment 1",
            refuted="55.2 messages/s (2026-11-26-cpu-at-real-time)",
        )


@pytest.mark.extended
@allure.story("Memory is no signal either")
def test_memory_does_not_see_a_backlog(trials, evidence):
    """What a pod holds before the spike and late in it, while nothing takes the lag away."""
    plan = PLAN | {"policy": "cpu"}
    clients = {"the lab's client": light(), "librdkafka's own buffers": light(client_settings="stock")}
    found = trials.blocks({name: plan | {"workload": workload} for name, workload in clients.items()})
    for name, runs in found.items():
        held = pod_memory(runs)
        figures = {"before (MB)": held.baseline_mb, "late in the spike (MB)": held.late_mb, "growth (x)": held.growth}
        evidence.report(name, figures | {"lag, growth (x)": held.lag_over_baseline})
    ours = pod_memory(found["the lab's client"])

    with evidence.of(found) as claim:
        claim.control(ours.lag_over_baseline >= 10, "there is a backlog to see", "the experiment's design: 10R")
        claim(
            ours.growth < 1.1,
            "while lag grows, what a pod holds stays within the HPA's tolerance",
            "Kubernetes' docs: tolerance 10 %; text 1, section 9: memory doesn't correlate with backlog",
        )


@pytest.mark.extended
@allure.story("What a pod requests decides what CPU says")
def test_the_request_is_a_free_parameter(trials, evidence):
    """The same pods at the same work, by another request."""
    plans = [PLAN | {"policy": "cpu", "workload": light(cpu_request_m=request)} for request in REQUESTS]
    ample, tight = trials.duet(*plans)
    found = {f"request {request}m": runs for request, runs in zip(REQUESTS, (ample, tight), strict=True)}
    for request, (name, runs) in zip(REQUESTS, found.items(), strict=True):
        seen = signal(runs)
        used = (seen.utilization * (request / 100)).named("CPU used, median", "millicores")
        figures = {"CPU used (m)": used, "of the request (%)": seen.utilization, "at most (%)": seen.highest_utilization}
        evidence.report(name, figures | {"scale-ups": scale_events(runs).scale_ups, "peak lag": peak_lag(runs)})

    with evidence.of(found) as claim:
        claim(
            scale_events(ample).scale_ups == 0,
            "with a request of twice what a busy pod uses, CPU asks for nothing",
            "pilot: 15m of a busy pod at half the rate, 43 % of 35m, under the target of 70 %",
        )
        claim(
            scale_events(tight).scale_ups > 0,
            "with a request near what a busy pod uses, CPU asks for pods: the request decides, not the backlog",
            "pilot: 15m of a busy pod at half the rate, 83 % of 18m, over the target of 70 % and its tolerance",
        )


@pytest.mark.extended
@allure.story("On the same events at the same moment, lag halves the peak that CPU leaves")
def test_the_right_signal_halves_the_peak(trials, evidence):
    """Both signals in a duet, beside what two equal groups differ by."""
    found = trials.duets({"signals": (ON_CPU, ON_LAG), "A/A": (ON_LAG, ON_LAG)})
    (cpu, lag), (one, other) = found["signals"], found["A/A"]

    more = paired(peak_lag(cpu), peak_lag(lag) * 2)
    same = paired(peak_lag(one) * 2, peak_lag(other) * 2)
    evidence.report("peak lag on CPU less twice that on lag", more.figures())
    evidence.noise(one, other)

    with evidence.of({"CPU": cpu, "lag": lag, "A/A, a": one, "A/A, b": other}) as claim:
        claim.control(hold(cpu).growth > 0, "without a reaction lag still grows when the spike ends", UNANSWERED)
        claim(discern(more, same) > 0, "the right signal at least halves the peak", "pilot of experiment 1")
