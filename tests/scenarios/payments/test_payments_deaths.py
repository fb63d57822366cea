"""Scenario payments: what contains a poison pill that crashes, hangs or spins its consumer?

Hypothesis. No retry contains it, as the process that counts is gone or stands; a restart repeats it. It takes something that
takes the message from its consumer (the crash, max.poll.interval, or the liveness probe), and a count of deaths that outlives
it.

Method. Steady traffic that 3 pods take on 6 partitions, and one poison message. The count is in the metadata of the group's
commits (docs/decisions/20). Restarts are the pods' status. A CPU trigger stands beside lag for the spinning one, and alone in
the text's trace.

Asserted. Without a count the partition stands, in CrashLoopBackOff. With it the message is the one dead letter. The CPU
trigger buys pods where a request is small, and none in the trace.

Refuted by a partition that goes on without the count, or stands with it.
"""

from typing import Any

import allure
import pytest

from lab.errors import NoData
from lab.inputs.consumer import CRASH, HANG, SPIN
from lab.judge.measure import quantity
from lab.measure.delivery import AT_LEAST_ONCE, delivery
from lab.record.hpas import RESOURCE
from tests.experiments.sources import DESIGN
from tests.scenarios.payments.measure.poison import casualties, poison_stall
from tests.scenarios.payments.trials import processor, run

pytestmark = [pytest.mark.scenario, pytest.mark.extended, allure.epic("Real systems"), allure.feature("Payments")]

PARTITIONS = 6
POISON: dict[str, Any] = {"poison": "3:400", "cpu_request_m": 150, "grace_s": 2, "drain_timeout": 1}
HANGING = "hang, max.poll.interval 10 s, a dead letter after 1"
MODES: dict[str, tuple[str, dict[str, Any]]] = {
    "crash, restarted": ("scaledobject", {"poison_mode": CRASH}),
    "crash, a dead letter after 2 deaths": ("scaledobject", {"poison_mode": CRASH, "most_deaths": 2}),
    HANGING: ("scaledobject", {"poison_mode": HANG, "most_deaths": 1, "max_poll_ms": 10_000}),
    "spin, liveness 12 s, a dead letter after 1": ("lag-and-cpu", {"poison_mode": SPIN, "most_deaths": 1, "liveness_s": 12}),
}
UNCONTAINED, *_, SPINNING = MODES
TRACE = "spin, as the text's trace has it: CPU alone"
# Three such pods are what two cores have room for. The one that spins takes a core, 182 % of it: the trace's 100 % and more.
MODES[TRACE] = ("payments-cpu", {"poison_mode": SPIN, "cpu_request_m": 550})


@pytest.fixture
def fallen(trials, evidence):
    """Runs the poisoned traffic with one of MODES, and shows what became of it."""

    def once(name):
        policy, settings = MODES[name]
        record = run(trials, "payments-deaths", policy, processor(**POISON | settings), partitions=PARTITIONS)
        stall, died = poison_stall(record), casualties(record)
        figures = {"restarts": died.restarts, "pods restarted": died.pods, "in CrashLoopBackOff": died.backed_off}
        figures |= {"first restart after (s)": died.first_s, "most replicas": stall.most, "steps up": stall.scale_ups}
        figures |= {"committed past the poison": stall.progress, "waiting on its partition": stall.waiting}
        figures |= {"waiting on the others": stall.others, "dead letters": delivery(record).dead}
        evidence.report(name, figures | {"pod-minutes": stall.pod_minutes})
        return record

    return once


@allure.story("Poison that kills: a restart repeats it")
def test_a_restart_does_not_contain_a_poison_that_kills(fallen, evidence):
    """The container is restarted, takes the message again and ends again, until it waits in CrashLoopBackOff."""
    record = fallen(UNCONTAINED)

    with evidence.of({UNCONTAINED: record}, delivery=AT_LEAST_ONCE) as claim:
        claim.control(poison_stall(record).progress == 0, "no restart brings the partition past its poison", DESIGN)
        claim.control(casualties(record).restarts >= 2, "the poison ends its consumer again and again", DESIGN)
        claim(casualties(record).backed_off > 0, "pods are seen in CrashLoopBackOff", "text 2: poison pill, crash")


@allure.story("Poison that spins: CPU is no safety net")
def test_cpu_buys_pods_for_one_that_spins(fallen, evidence):
    """The HPA's CPU is the average over the pods: one of three that uses its whole core, 667 % of its request, is 222 %."""
    record = fallen(SPINNING)
    evidence.report("the HPA's status", {"highest CPU over its target of 75 %": cpu_over_target(record)})

    with evidence.of({SPINNING: record}, delivery=None) as claim:
        source = "arithmetic: 1 core / 150 millicores / 3 pods = 222 % of the requests, and the target is 75 %"
        claim(cpu_over_target(record) > 1, "one pod of three that spins takes the average over the target", source)
        claim(poison_stall(record).scale_ups > 0, "the CPU trigger adds pods, which is all it can do", "text 2: safety net")


@allure.story("Poison that spins: the text's trace")
def test_cpu_asks_for_no_pod_in_the_texts_trace(fallen, evidence):
    """(100 % + 5 % + 5 %) / 3 is 37 %. The HPA asks for ceil(3 x 37 / 75) = 2 pods, and has 3."""
    record = fallen(TRACE)
    highest = cpu_over_target(record)
    evidence.report("the HPA's status", {"highest CPU over its target of 75 %": highest})

    with evidence.of({TRACE: record}, delivery=AT_LEAST_ONCE) as claim:
        source = "arithmetic: 1 core / 550 millicores / 3 pods = 61 %, and 61 / 75 = 0.81"
        claim.control(highest >= 0.5, "one pod of three spins: it alone is 61 % of what the three ask for", source)
        claim(highest < 1, "one pod of three that spins stays under the target", "text 2: (100 + 5 + 5) / 3 = 36 %")
        source = "HPA algorithm: ceil(replicas x utilization / target)"
        claim(poison_stall(record).scale_ups == 0, "CPU asks for no pod, where the text says 4 or 5", source)


@pytest.mark.parametrize("name", [name for name in MODES if name not in (UNCONTAINED, TRACE)])
@allure.story("Poison that kills, hangs or spins: what contains it")
def test_a_count_of_deaths_contains_it(fallen, evidence, name):
    """The message becomes a dead letter untried, and its partition goes on."""
    record = fallen(name)

    with evidence.of({name: record}, delivery=AT_LEAST_ONCE) as claim:
        claim(poison_stall(record).progress > 0, "the partition goes on past its poison", "text 2: poison pill, contained")
        claim.invariant(delivery(record).dead == 1, "the one poison is the one dead letter", DESIGN)


@quantity("x", "highest CPU in the HPA's status over its target")
def cpu_over_target(record):
    """The average CPU of the pods since the profile began, where it was highest."""
    start = record.profile_start
    seen = [status.metric(RESOURCE, "cpu") for status in record.hpa_statuses if status.t >= start]
    values = [one.utilization for one in seen if one is not None and one.utilization is not None]
    if not values:
        raise NoData("the HPA's status never had a CPU")
    return max(values) / 75
