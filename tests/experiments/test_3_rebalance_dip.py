"""Experiment 3: what does a scale step cost?

Hypothesis. A scale step costs throughput while partitions change hands. An eager protocol (range) stops every member and hands
everything out anew; an incremental one (cooperative-sticky, KIP-848 ``consumer``) takes only what moves. In librdkafka 2.16 the
folklore fails: after an incremental rebalance its fetchers sleep on for up to a second, so the client dips deeper with
cooperative-sticky than with range; woken by a request, it does not (docs/upstream). What a partition costs to take over decides
how much eager loses.

Method. A backlog for every partition (profile ``saturate``), then steps by decree, five up from 6 to 8 members and five down
(``up-and-down``), each observed for 2.5 s once the group has settled; ``--repeat`` runs whole rounds in turns. Rate is that of
the receipts; the depth is the worst rolling window of 1 s (and of 200 ms) against the mean of the 2 s before; recovered is back
at 95 % for good. Once without and once with 200 ms of work per newly assigned partition. The control starts two pods that never
join (``bystanders``): what they cost is the two cores, not the rebalance.

A stock client, with all of librdkafka's defaults, is compared with the woken one in a duet: two groups on one backlog take the
same steps at the same moments. An A/A duet of the woken client in the same block shows what two equal groups differ by.

Asserted. Cooperative-sticky at the recommended settings (woken) stays under 20 % and recovers within 5 s at every step. The
same client that is not woken breaches that. Range is reported beside. From six pairs on (``--repeat 6``): the stock client's
median dip of a step up is deeper than the woken one's. That is refuted by depths whose difference is within the A/A noise or
may be 0.
"""

import itertools

import allure
import pandas as pd
import pytest

from lab.judge.aggregate import largest, total
from lab.judge.bounds import DIP, RECOVERY_S
from lab.judge.pairs import discern, paired
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.dip import MedianStep, dips, dry_partitions, median_step, rate_traces, worst_step
from lab.report.dips import dip_bars, dip_traces
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import busy

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("3 Rebalance dip")]

PROTOCOLS = {
    "range": busy(balancer="range"),
    "cooperative-sticky, not woken": busy(wake="off"),
    "cooperative-sticky, woken": busy(),
    "consumer (KIP-848), woken": busy(balancer="consumer"),
}
STOCK, WOKEN = busy(wake="off", client_settings="stock"), busy()
WARM_UP_MS = 200
STEPPED = {"profile": "saturate", "policy": "up-and-down", "until": REPLAYED}


@pytest.fixture
def stepped(trials):
    """Takes groups of these workloads through the steps, in turns; the records and all their dips by name."""

    def run(workloads, control=False):
        plans = {name: STEPPED | {"workload": workload} for name, workload in workloads.items()}
        if control:
            plans["control: pods start, none joins"] = STEPPED | {"policy": "bystanders", "workload": busy()}
        records = trials.blocks(plans)
        return records, {name: [dip for record in runs for dip in dips(record)] for name, runs in records.items()}

    return run


def figures(steps, kind):
    """What the median step of a kind cost and gained; forgone messages also as the time the group needs to make them up."""
    found = median_step(steps, kind)
    shown = {name: getattr(found, name) for name in MedianStep.declared() if name not in ("steps", "after_rate")}
    return shown | {"drain time forgone (s)": found.forgone / found.after_rate}


def draw(evidence, records, found):
    """Attach every step's trace and depth."""
    frames = [rate_traces(run).assign(configuration=name) for name, runs in records.items() for run in runs]
    lines = pd.concat(frames, ignore_index=True)
    table = pd.DataFrame([vars(dip) | {"configuration": name} for name, steps in found.items() for dip in steps])
    table["recovery_s"] = table["recovery_s"].replace(float("inf"), float("nan"))  # never back
    evidence.chart("every step", lambda: dip_traces(lines, "Consumed rate around each step", "share of the rate before it"))
    evidence.chart("depth of every step", lambda: dip_bars(table))


@allure.story("A cooperative step costs less than a fifth of the throughput, for less than 5 s")
def test_a_cooperative_step_costs_little(stepped, evidence):
    """The woken client holds the objective at every step; one that sleeps breaches it; range and KIP-848 beside them."""
    records, found = stepped(PROTOCOLS, control=True)
    woken, asleep = found["cooperative-sticky, woken"], found["cooperative-sticky, not woken"]
    control = found["control: pods start, none joins"]
    draw(evidence, records, found)
    worst = [worst_step(woken, kind) for kind in ("up", "down")]
    dry = total(dry_partitions(steps) for steps in found.values())

    with evidence.of(records) as claim:
        claim(
            dry == 0,
            "every step was taken while there was work for all partitions",
            kind="control",
            source="the experiment's design",
        )
        claim(largest(step.depth_1s for step in worst) < DIP, "a step costs less than a fifth of the throughput")
        claim(largest(step.recovery_s for step in worst) < RECOVERY_S, "the group soon has its throughput back")
        claim(median_step(asleep, "up").depth_1s >= DIP, "a client that is not woken breaches the objective")
        claim(
            median_step(control, "control").depth_1s < DIP,
            "starting pods cost cores, and that is not the dip of a rebalance",
            kind="control",
        )
        claim(unaccounted(*itertools.chain(*records.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)
        for name, steps in found.items():
            for kind in ("up", "down") if name in PROTOCOLS else ("control",):
                evidence.report(f"{name}, {kind}", figures(steps, kind))

    up = {name: median_step(steps, "up") for name, steps in found.items() if name in PROTOCOLS}
    ours = up["cooperative-sticky, woken"]
    evidence.conclude(
        "partition.assignment.strategy",
        "cooperative-sticky, woken after each rebalance",
        f"median dip of a step up {ours.depth_1s:.0%}, not woken {up['cooperative-sticky, not woken'].depth_1s:.0%}, "
        f"range {up['range'].depth_1s:.0%}; while it was observed a step cleared {ours.cleared:,.0f} messages more than the "
        f"group did before and went without {ours.forgone:,.0f} (range {up['range'].forgone:,.0f})",
    )


@allure.story("A stock client falls deeper than a woken one, on the same backlog at the same moment")
def test_a_stock_client_falls_deeper(trials, evidence):
    """Stock and woken in a duet; each step is taken by both at once."""
    stock, woken = STEPPED | {"workload": STOCK}, STEPPED | {"workload": WOKEN}
    found = trials.duets({"clients": (stock, woken), "A/A": (woken, woken)})
    sides = dict(zip(("stock", "woken", "A/A, a", "A/A, b"), itertools.chain(*found.values()), strict=True))
    steps = {name: [dips(run) for run in runs] for name, runs in sides.items()}
    depths = {name: [median_step(each, "up").depth_1s for each in runs] for name, runs in steps.items()}
    deeper, same = paired(depths["stock"], depths["woken"]), paired(depths["A/A, a"], depths["A/A, b"])
    draw(evidence, sides, {name: list(itertools.chain(*runs)) for name, runs in steps.items()})
    evidence.report("stock less woken", deeper.figures())
    evidence.noise(sides["A/A, a"], sides["A/A, b"])

    with evidence.of(sides) as claim:
        claim(
            total(dry_partitions(each) for runs in steps.values() for each in runs) == 0,
            "every step was taken while there was work for all partitions",
            kind="control",
            source="the experiment's design",
        )
        claim(
            discern(deeper, same) > 0,
            "the stock client's median dip of a step up is deeper",
            source="the A/A duets of the same session: the least difference that can be told",
        )
        claim(unaccounted(*itertools.chain(*sides.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)


@allure.story("What a partition costs to take over is what eager pays for all of them")
def test_a_warm_up_is_paid_for_what_moves(stepped, evidence):
    """With 200 ms of work per newly assigned partition eager forgoes more messages a step than incremental."""
    names = ("range", "cooperative-sticky, woken", "consumer (KIP-848), woken")
    warm = {name: busy(balancer=PROTOCOLS[name].balancer, partition_warmup_ms=WARM_UP_MS) for name in names}
    records, found = stepped(warm)
    draw(evidence, records, found)
    eager, incremental = (median_step(found[name], "up") for name in names[:2])
    ratio = (eager.forgone / incremental.forgone).named("messages that range forgoes over cooperative-sticky's")
    dry = total(dry_partitions(steps) for steps in found.values())

    with evidence.of(records) as claim:
        claim(
            dry == 0,
            "every step was taken while there was work for all partitions",
            kind="control",
            source="the experiment's design",
        )
        claim(ratio > 1, "an eager protocol pays for all partitions, not only for those that move")
        claim(unaccounted(*itertools.chain(*records.values())) == 0, DELIVERED, kind="invariant", source=CONTRACT)
        for name, steps in found.items():
            for kind in ("up", "down"):
                evidence.report(f"{name}, {kind}", figures(steps, kind))
