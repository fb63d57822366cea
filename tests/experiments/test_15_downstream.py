"""Experiment 15: what happens when more pods slow the downstream?

Hypothesis. Where pods share a downstream that each waiting write slows, a trigger on lag answers with more pods, which make it
slower. The rate of arrivals asks for the pods that the traffic needs, as does maxReplicaCount at the downstream's capacity.

Method. A 10x step (``plateau``, and ``beyond-the-store`` under a lasting backlog). Pods of 200 events/s share a real store
that takes 12 writes at a time; contention (100 or 0) slows it. Policies ``lag-4500`` (to 24),
the same to 12, and ``arrivals-170``.

Asserted. On lag alone the group goes beyond 12, processes three quarters of 12 pods' rate at most, peaks twice as high and
costs more. By arrivals it has at most 12 and processes 95 %. Without contention 24 pods process no more than 12.

Refuted by more, by less, or by a 13th pod.
"""

import allure
import pytest

from lab.errors import NoData
from lab.inputs.variant import policy
from lab.judge.bounds import TIME_BEHIND_S
from lab.judge.measure import quantity
from lab.measure.cost import cost
from lab.measure.lag import peak_lag
from lab.measure.lateness import behind
from lab.measure.scaling import scale_events
from lab.measure.throughput import Throughput
from tests.experiments.sources import DESIGN
from tests.experiments.workloads import light

pytestmark = [pytest.mark.stretch, allure.epic("Scaling on lag"), allure.feature("15 Downstream")]

SLOTS = 12
LAG, CAPPED, ARRIVALS = "lag", "lag, at most 12 pods", "arrivals"
POLICIES = {LAG: "lag-4500", CAPPED: policy("lag-4500", max_replicas=12), ARRIVALS: "arrivals-170"}
SHARED = {"concurrency": 2, "cpu_request_m": 50, "store_slots": SLOTS}  # pods of 200 events/s
LAW = "arithmetic: 12 slots of 200 events/s are 2,400; with 24 pods a write takes twice as long, and they are 1,200 of 1,800"
QUEUED = "arithmetic: 12 slots are 2,400 events/s with 12 pods and with 24; a tenth for batches between two pods"
PAID = "keda#7092 (direction only)"


def second_half(record):
    """From the middle of the spike until its end, epoch s: by then each group has reacted."""
    start, end = record.span("spike")
    return (start + end) / 2, end


@quantity("messages/s", "processed in the spike's second half")
def carried(record):
    """The group's mean throughput while the spike's second half lasts."""
    return Throughput(record.receipts).rate(*second_half(record))


@quantity("of them", "share of what arrives that is processed in the spike's second half")
def share(record):
    """Above 1 while a backlog is worked off."""
    return carried(record).number / max(step.rate for step in record.profile.steps)


@quantity("writes", "writes that are open in the shared store in the spike's second half")
def open_writes(record):
    """The median of the store's own metric, in work and waiting. No data without a sample."""
    samples = record.samples
    within = samples[(samples["metric"] == "store_open_writes") & samples["t"].between(*second_half(record))]
    if within.empty:
        raise NoData("the store's metric was not scraped")
    return float(within["value"].median())


FIGURES = {
    "most replicas": lambda runs: scale_events(runs).most_replicas,
    "open writes": open_writes,
    "processed (messages/s)": carried,
    "peak lag": peak_lag,
    "late (s)": lambda runs: behind(runs, TIME_BEHIND_S),
    "pod-minutes": lambda runs: cost(runs).pod_minutes,
}


@quantity("messages", "least lag in the spike's second half")
def least_lag(record):
    """Above 0 where a backlog waits all the time. No data without a sample."""
    seen = record.lag_within(*second_half(record))
    if seen.empty:
        raise NoData("lag was not sampled")
    return float(seen["lag"].min())


def run(trials, evidence, names, contention, profile="plateau"):
    """The policies ``names`` on a store of this ``contention``, with a row of figures for each."""
    workload = light(**SHARED, store_contention=contention)
    plan = {"profile": profile, "workload": workload}
    found = trials.blocks({name: plan | {"policy": POLICIES[name]} for name in names})
    for name, runs in found.items():
        evidence.report(name, {figure: of(runs) for figure, of in FIGURES.items()})
    return found


def over_capped(found):
    """What lag alone processes in the second half, and what it costs, each over that with 12 pods."""
    processed = carried(found[LAG]) / carried(found[CAPPED])
    paid = cost(found[LAG]).pod_minutes / cost(found[CAPPED]).pod_minutes
    return (
        processed.named("processed with lag alone over that with 12 pods, in the second half"),
        paid.named("pod-minutes with lag alone over those with 12 pods"),
    )


def larger(claim, found):
    """The control without which nothing is shown."""
    most = scale_events(found[LAG]).most_replicas
    claim.control(most > SLOTS, "on lag alone the group goes beyond the store's capacity", DESIGN)


def beyond(claim, found):
    """The controls: the group is larger than the store, and the store is what it waits for."""
    larger(claim, found)
    claim.control(open_writes(found[LAG]) > SLOTS, "on lag alone writes wait in the store", DESIGN)
    claim.control(
        scale_events(found[CAPPED]).most_replicas <= SLOTS,
        "maxReplicaCount holds the group at the store's capacity",
        "policy: maxReplicaCount 12",
    )


@allure.story("On lag the group makes its own downstream slower")
def test_lag_scales_into_a_slow_downstream(trials, evidence):
    """A store that gets slower with each write that waits: three signals."""
    found = run(trials, evidence, POLICIES, contention=100)
    lag, capped, arrivals = (found[name] for name in POLICIES)
    slower, dearer = over_capped(found)
    higher = (peak_lag(lag) / peak_lag(capped)).named("peak lag with lag alone over that with 12 pods")

    with evidence.of(found) as claim:
        claim(slower <= 0.75, "beyond the downstream's capacity more pods process less", LAW)
        beyond(claim, found)
        claim(
            higher >= 2,
            "scaling on lag makes the backlog that it scales on",
            "arithmetic: 600 events/s are left over for 14 s of the spike; with 12 pods none after some 6 s",
        )
        claim(dearer > 1, "the group that is slower costs more", PAID)
        claim(
            scale_events(arrivals).most_replicas <= SLOTS,
            "arrivals ask for no more pods than the traffic needs, whatever the backlog is",
            "arithmetic: 1,800 events/s / 170 are 11 pods, and 12 with a tenth for the rate's window",
        )
        claim(
            share(arrivals) >= 0.95,
            "pods by arrivals carry the spike",
            "arithmetic: 11 pods of 200 events/s take 2,200 of 1,800; a twentieth for uneven shares",
        )

    evidence.conclude(
        f"maxReplicaCount before a downstream of {SLOTS} slots",
        SLOTS,
        f"up to 24 pods process {slower:.2f} of what {SLOTS} do, for {dearer:.1f} times the pod-minutes",
    )


@allure.story("Where a downstream only queues, more pods are paid and do nothing")
def test_pods_beyond_the_capacity_are_paid_for_nothing(trials, evidence):
    """A store that is as fast however many wait."""
    found = run(trials, evidence, (LAG, CAPPED), contention=0)
    gain, dearer = over_capped(found)

    with evidence.of(found) as claim:
        claim(gain <= 1.1, "pods beyond the downstream's capacity process nothing more", QUEUED)
        claim(dearer > 1, "pods beyond the downstream's capacity are paid", PAID)
        larger(claim, found)


@allure.story("While a backlog waits, pods beyond the store's slots process less, or nothing more")
@pytest.mark.parametrize("contention", [100, 0])
def test_more_pods_than_slots_while_a_backlog_waits(trials, evidence, contention):
    """A step that the store can't carry: neither group catches up before its end."""
    found = run(trials, evidence, (LAG, CAPPED), contention, "beyond-the-store")
    ratio, dearer = over_capped(found)

    with evidence.of(found) as claim:
        if contention:
            claim(ratio <= 0.75, "while a backlog waits, pods beyond the downstream's capacity make it process less", LAW)
        else:
            claim(ratio <= 1.1, "while a backlog waits, pods beyond the downstream's capacity process nothing more", QUEUED)
        claim(dearer > 1, "pods beyond the downstream's capacity are paid", PAID)
        beyond(claim, found)
        for name, runs in found.items():
            claim.control(
                least_lag(runs) >= SLOTS * 200,
                f"a backlog of a second or more waits all the time: {name}",
                f"{DESIGN}: 3,600 events/s arrive, and the store carries 2,400 at most",
            )
