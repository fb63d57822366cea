"""Experiment 3: what does a scale step cost?

Hypothesis. A step costs throughput while partitions change hands. An eager protocol stops every member, an incremental one
only what moves. librdkafka 2.16's fetchers sleep on after an incremental rebalance, so the stock client dips deeper.

Method. Steps by decree under a backlog (profile ``saturate``), also with 200 ms of work per new partition; ``bystanders``
never join. Depth is defined in ``lab.measure.dip``. Then the autoscaler's steps on ``plateau``: each client beside the woken
one, with A/A.

Asserted. Woken cooperative-sticky dips under 20 % and recovers within 5 s, by decree and by autoscaler, on both sides of A/A.
Every client's scaling costs less than the backlog that it clears. From six pairs on stock and range are late for longer.

Refuted by a dip of 20 %, or a run that forgoes as much as it clears.
"""

import allure
import pandas as pd
import pytest

from lab.inputs.inputs import REPLAYED
from lab.judge.aggregate import largest, spread, total
from lab.judge.bounds import DIP, RECOVERY_S, TIME_BEHIND_S
from lab.judge.pairs import discern, paired
from lab.measure.dip import MedianStep, dips, dry_time, median_step, rate_traces, worst_dip, worst_step
from lab.measure.drain import drain_time
from lab.measure.lag import peak_lag
from lab.measure.lateness import behind
from lab.measure.scaling_cost import ScalingCost, scaling_cost
from tests.experiments.dip_chart import dip_traces
from tests.experiments.measure.steps import Stalls, stalls
from tests.experiments.sources import DESIGN
from tests.experiments.test_1_signal import ON_LAG
from tests.experiments.workloads import busy, slim

pytestmark = [allure.epic("Scaling on lag"), allure.feature("3 Rebalance dip")]

PROTOCOLS = {
    "range": busy(balancer="range"),
    "cooperative-sticky, not woken": busy(wake="off"),
    "cooperative-sticky, woken": busy(),
    "consumer (KIP-848), woken": busy(balancer="consumer"),
}
WARM_UP_MS = 200
STEPPED = {"profile": "saturate", "policy": "three-up-and-down", "until": REPLAYED}
COSTLY = STEPPED | {"policy": "up-and-down"}  # steps that cost most: more of them
KIP_848, STOCK = "consumer (KIP-848), woken", "cooperative-sticky, stock"  # STOCK has all of librdkafka's defaults
OTHERS = {  # of the autoscaled spike, each beside the woken cooperative client
    "range": slim(balancer="range"),
    "round-robin": slim(balancer="roundrobin"),
    STOCK: slim(wake="off", client_settings="stock"),
    KIP_848: slim(balancer="consumer"),
}
RANGE, OURS = "range", "cooperative-sticky, woken"
AT_WORK = "every step was taken while there was work for all partitions"


@pytest.fixture
def stepped(trials):
    """Takes groups of these workloads through the steps, in turns; the records and all their dips by name."""

    def run(workloads, control=False, plan=STEPPED):
        plans = {name: plan | {"workload": workload} for name, workload in workloads.items()}
        if control:
            plans["control: pods start, none joins"] = STEPPED | {"policy": "bystanders", "workload": busy()}
        records = trials.blocks(plans)
        return records, {name: [dip for record in runs for dip in dips(record)] for name, runs in records.items()}

    return run


def figures(steps, kind):
    """What the median step of a kind cost, and what it moved."""
    found = median_step(steps, kind)
    return {name: getattr(found, name) for name in MedianStep.declared() if name != "steps"}


def named(traces, configuration, run):
    """The ``traces`` of a run, each step with the run's number."""
    return traces.assign(configuration=configuration, step=f"run {run}, step " + traces["step"].astype(str))


def draw(evidence, records, found):
    """Attach every step's trace and depth."""
    frames = [named(rate_traces(run), name, n) for name, runs in records.items() for n, run in enumerate(runs, 1)]
    lines = pd.concat(frames, ignore_index=True)
    table = pd.DataFrame([vars(dip) | {"configuration": name} for name, steps in found.items() for dip in steps])
    table["recovery_s"] = table["recovery_s"].replace(float("inf"), float("nan"))  # never back
    evidence.chart("every step", lambda: dip_traces(lines, table))


@pytest.mark.spike
@pytest.mark.duration(75)
@allure.story("A step on cooperative-sticky beside one on range")
def test_a_cooperative_step_beside_one_on_range(stepped, evidence):
    """The woken client holds the objective at every step; what range costs stands beside it."""
    records, found = stepped({name: PROTOCOLS[name] for name in (RANGE, OURS)})
    draw(evidence, records, found)
    for name, steps in found.items():
        for kind in ("up", "down"):
            evidence.report(f"{name}, {kind}", figures(steps, kind))
    worst = [worst_step(found[OURS], kind) for kind in ("up", "down")]

    with evidence.of(records) as claim:
        claim.control(total(map(dry_time, found.values())) == 0, AT_WORK, DESIGN)
        claim(largest(step.depth for step in worst) < DIP, "a step costs less than a fifth of the throughput")
        claim(largest(step.recovery_s for step in worst) < RECOVERY_S, "the group soon has its throughput back")


@pytest.mark.extended
@allure.story("A cooperative step costs less than a fifth of the throughput, for less than 5 s")
def test_a_cooperative_step_costs_little(stepped, evidence):
    """The woken client holds the objective at every step; one that sleeps breaches it; range and KIP-848 beside them."""
    records, found = stepped(PROTOCOLS, control=True)
    woken, asleep = found["cooperative-sticky, woken"], found["cooperative-sticky, not woken"]
    control = found["control: pods start, none joins"]
    draw(evidence, records, found)
    worst = [worst_step(woken, kind) for kind in ("up", "down")]
    dry = total(dry_time(steps) for steps in found.values())

    with evidence.of(records) as claim:
        claim.control(dry == 0, AT_WORK, DESIGN)
        claim(largest(step.depth for step in worst) < DIP, "a step costs less than a fifth of the throughput")
        claim(largest(step.recovery_s for step in worst) < RECOVERY_S, "the group soon has its throughput back")
        claim(median_step(asleep, "up").depth >= DIP, "a client that is not woken breaches the objective")
        claim.control(
            median_step(control, "control").depth < DIP, "starting pods cost cores, and that is not the dip of a rebalance"
        )
        for name, steps in found.items():
            for kind in ("up", "down") if name in PROTOCOLS else ("control",):
                evidence.report(f"{name}, {kind}", figures(steps, kind))
            paused = stalls(records[name])
            evidence.report(f"{name}, members", {field: getattr(paused, field) for field in Stalls.declared()})

    up = {name: median_step(steps, "up") for name, steps in found.items() if name in PROTOCOLS}
    ours = up["cooperative-sticky, woken"]
    evidence.conclude(
        "partition.assignment.strategy",
        "cooperative-sticky, woken after each rebalance",
        f"median dip of a step up {ours.depth:.0%}, not woken {up['cooperative-sticky, not woken'].depth:.0%}, "
        f"range {up['range'].depth:.0%}; a step went without {ours.forgone:,.0f} messages (range {up['range'].forgone:,.0f})",
    )


@pytest.mark.extended
@allure.story("What a partition costs to take over is what eager pays for all of them")
def test_a_warm_up_is_paid_for_what_moves(stepped, evidence):
    """With 200 ms of work per newly assigned partition eager forgoes more messages a step than incremental."""
    names = ("range", "cooperative-sticky, woken", "consumer (KIP-848), woken")
    warm = {name: busy(balancer=PROTOCOLS[name].balancer, partition_warmup_ms=WARM_UP_MS) for name in names}
    records, found = stepped(warm, plan=COSTLY)
    draw(evidence, records, found)
    eager, incremental = (median_step(found[name], "up") for name in names[:2])
    more = (eager.forgone - incremental.forgone).named("messages that range forgoes beyond cooperative-sticky's")
    dry = total(dry_time(steps) for steps in found.values())

    with evidence.of(records) as claim:
        claim.control(dry == 0, AT_WORK, DESIGN)
        claim(more > 0, "an eager protocol pays for all partitions, not only for those that move")
        for name, steps in found.items():
            for kind in ("up", "down"):
                evidence.report(f"{name}, {kind}", figures(steps, kind))


@pytest.fixture
def spiked(trials):
    """Runs the spike with each of OTHERS beside the woken client: their runs, the woken client's, and those of the A/A duet."""
    pairs = {name: (ON_LAG | {"workload": work}, ON_LAG) for name, work in OTHERS.items()}
    found = trials.duets(pairs | {"A/A": (ON_LAG, ON_LAG)})
    same = found.pop("A/A")
    return {name: other for name, (other, _) in found.items()}, {name: ours for name, (_, ours) in found.items()}, same


def of_scaling(runs):
    """What the scaling of some runs cost and cleared, how late and how fast it drained: medians with their least and most."""
    cost = scaling_cost(runs)
    quantities = {name: getattr(cost, name) for name in ScalingCost.declared() if name != "each"}
    quantities |= {"forgone over cleared": cost.share, "peak lag": peak_lag(runs), "drain (s)": drain_time(runs)}
    shown = {name: spread(one.runs or [one]) for name, one in quantities.items()}
    return {name: one.median for name, one in shown.items()} | {f"{name}, most": one.high for name, one in shown.items()}


@pytest.mark.extended
@allure.story("Scaling costs less than the backlog it clears, whatever the protocol")
@allure.label("known", "docs/upstream/librdkafka-incremental-rebalance-stall")
def test_scaling_costs_less_than_it_clears(spiked, evidence):
    """The same spike on five clients: the autoscaler's own rebalances, priced in messages, against what its pods cleared."""
    others, beside, (one, other) = spiked
    sides = others | {f"{OURS}, beside {name}": runs for name, runs in beside.items()} | {"A/A, a": one, "A/A, b": other}
    for name, runs in sides.items():
        evidence.report(name, of_scaling(runs))
    late = {name: behind(runs, TIME_BEHIND_S) for name, runs in sides.items()}
    same = paired(late["A/A, a"], late["A/A, b"])
    later = {name: paired(late[name], late[f"{OURS}, beside {name}"]) for name in OTHERS}
    for name, difference in later.items():
        evidence.report(f"late, {name} less woken", difference.figures())
    evidence.noise(one, other)

    with evidence.of(sides) as claim:
        for name, runs in (others | {OURS: one}).items():
            claim(
                scaling_cost(runs).share < 1,
                f"scaling costs less than the backlog it clears: {name}",
                "text 1, section 1: scaling costs less throughput than the backlog it clears",
            )
        claim(
            discern(later[STOCK], same) > 0,
            "a stock client's group is late for longer, as its fetchers sleep on after each rebalance",
            "docs/decisions/19 (direction only)",
        )
        claim(
            discern(later["range"], same) > 0,
            "a group on range is late for longer, as each of its rebalances stops all members",
            "text 1, section 10: the cooperative variant drains faster (direction only)",
        )


@pytest.mark.extended
@allure.story("A step that doubles the group is no small step")
def test_the_autoscalers_steps_dip(spiked, evidence):
    """The dip of each step of the autoscaler: with a barrier between two rounds, on both sides of A/A, and without one."""
    others, _, (one, other) = spiked
    without = others[KIP_848]
    sides = {f"{OURS}, A/A a": one, f"{OURS}, A/A b": other, KIP_848: without}
    for name, runs in sides.items():
        for number, run in enumerate(runs, 1):
            worst = worst_dip(run)
            evidence.report(f"{name}, run {number}", {field: getattr(worst, field) for field in worst.declared()})
    both = [worst_dip(one), worst_dip(other)]
    evidence.report("dip, one side of A/A less the other", paired(both[0].depth, both[1].depth).figures())

    with evidence.of(sides) as claim:
        claim(
            largest(worst.depth for worst in both) < DIP,
            "cooperative-sticky keeps the objective where the autoscaler doubles the group",
        )
        claim(largest(worst.recovery_s for worst in both) < RECOVERY_S, "the autoscaled group soon has its throughput back")
        claim(worst_dip(without).depth < DIP, "a protocol without a barrier keeps the objective at the same steps")
        claim(worst_dip(without).recovery_s < RECOVERY_S, "without a barrier the group soon has its throughput back")
