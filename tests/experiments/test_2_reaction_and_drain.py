"""Experiment 2: how fast is a reaction, what are its parts, and how long is the drain?

Hypothesis. KEDA on lag scales out within 90 s of a 10x step, the backlog only falls in the drain, and the group returns to
its floor without flapping or loss.

Method. Profiles ``step-10x`` and ``plateau``. The reaction ends with the first new pod's first receipt, in
stamped parts; the wait is split at the HPA's syncs. The best drain has a pod a partition.
pollingInterval is a minute, with and without useCachedMetrics. Joins are compared in experiment 3's duets.

Asserted. Reactions within 90 s, compressed with a start's undivided part, a sync within a period and a fifth, one that
saw older lag at most. Taken pods leave in order. From six pairs on a pod joins sooner with KIP-848.

Refuted by a longer wait, or joins that differ within A/A noise.
"""

import itertools

import allure
import pytest

from lab.charts.breakdown import reaction_breakdown
from lab.inputs.inputs import REPLAYED
from lab.inputs.variant import policy
from lab.judge.aggregate import largest, median, smallest, spread
from lab.judge.bounds import DRAIN_OVER_BEST, REACTION_S, compressed
from lab.judge.pairs import discern, paired
from lab.measure.dip import worst_dip
from lab.measure.drain import drain
from lab.measure.lag import hold
from lab.measure.reaction.step import IN_TIME, PARTS, POLICY, cold_start, reaction
from lab.measure.reaction.waits import decision
from lab.measure.scaling import scale_events
from lab.measure.scaling_cost import scaling_cost
from lab.measure.signal import signal
from tests.experiments.sources import DESIGN, GIVES_BACK, NO_NOISE, SHUTDOWN, STAMPS, TEXT
from tests.experiments.test_1_signal import ON_LAG
from tests.experiments.test_3_rebalance_dip import KIP_848, OTHERS, OURS
from tests.experiments.workloads import light
from tests.scenarios.payments.measure.shutdown import departures, longest_shutdown

COLD = ("start", "join", "total", "slowest")
SPINE = ("subscribed", "partitions owned", "first receipt")
DECIDED = ("wait_s", "older_s", "held_s", "write_s")
pytestmark = [pytest.mark.extended, allure.epic("Scaling on lag"), allure.feature("2 Reaction and drain")]


@allure.story("A 10x spike scales the group out, drains, and lets it back to the floor")
def test_a_10x_spike_is_absorbed(trials, evidence):
    """A 10x step is answered, drained and given back, and every message is processed exactly once."""
    time = trials.scale.time
    record = trials.run(profile="step-10x", policy="lag")
    evidence.chart_of("reaction, by part", lambda run: reaction_breakdown(reaction(run)), record)
    left = departures(record)
    evidence.report("taken pods", {name: getattr(left, name) for name in left.declared()})
    for kind in ("up", "down"):
        worst = worst_dip(record, kind)
        evidence.report(f"dips {kind}", {name: getattr(worst, name) for name in worst.declared()})

    with evidence.of(record) as claim:
        claim(scale_events(record).above_floor_at_baseline == 0, "no pod is scaled on the noise of a small lag", NO_NOISE)
        claim(reaction(record).divided_s < compressed(REACTION_S, time), IN_TIME)
        claim.control(drain(record).peak_lag >= 100_000, "a backlog worth draining was built", DESIGN)
        claim(
            drain(record).seconds / drain(record).ideal_s <= DRAIN_OVER_BEST,
            "one pod alone serves a partition, so skew and not the number of pods bounds the drain",
        )
        claim(
            drain(record).rise_over_commits <= 1,
            "lag falls until it is at one lagThreshold, but for what arrives between two commits",
            TEXT,
        )
        claim(scale_events(record).flips == 0, "the group scales up once and down once", TEXT)
        claim(scale_events(record).above_floor_at_end == 0, "the group gives back the pods that it took", GIVES_BACK)
        if record[0].inputs.runtime != "kind":  # 1.2 in containers, whose starts take what two cores have (n = 1)
            claim(scaling_cost(record).share < 1, "scaling costs less than the backlog it clears", "text 1, section 1")
        claim(left.out_of_order == 0, "each taken pod ends its work, commits, leaves and exits, in this order", SHUTDOWN)
        claim(left.failed == 0, "each taken pod exits with code 0", SHUTDOWN)
        claim(
            longest_shutdown(record) < record[0].inputs.workload.drain_timeout,
            "the work of each taken pod is done before the drain's time-out",
            "setting drain_timeout, 20 s: the pods' grace of 30 s leaves no more than that of text 2's 60 s",
        )


@allure.story("A reaction's parts, over repeated trials")
def test_a_reaction_is_known_with_its_spread(trials, evidence):
    """Median and interval of each part over ``--repeat`` runs of the same step; the bound holds for the median."""
    plan = {"profile": "plateau", "policy": "lag-4500", "workload": light(), "until": REPLAYED}
    runs = trials.blocks({"step": plan})["step"]
    time = trials.scale.time
    found = [reaction(run) for run in runs]
    total = median(one.total_s for one in found)

    decided = [decision(run) for run in runs]
    for part in (*PARTS, "total"):
        seconds = spread([one.part(part) if part in PARTS else one.total_s for one in found])
        figures = {"median (s)": seconds.median, "least (s)": seconds.low, "most (s)": seconds.high, "runs": seconds.n}
        evidence.report(part, figures | {"share of the total": seconds.median / total})
    for name in DECIDED:
        seconds = spread([getattr(one, name) for one in decided])
        figures = {"median (s)": seconds.median, "least (s)": seconds.low, "most (s)": seconds.high, "runs": seconds.n}
        evidence.report(f"{POLICY}: {seconds.median.name}", figures | {"share of the total": seconds.median / total})

    with evidence.of({"step": runs}) as claim:
        claim(median(one.divided_s for one in found) < compressed(REACTION_S, time), f"in the median {IN_TIME}")
        claim.control(
            smallest(one.part(part) for one in found for part in SPINE) > 0,
            "a new pod subscribes, owns and works only after it was created, so no part of its start is 0",
            STAMPS,
        )
        claim(
            largest(one.phase for one in decided) <= 1.2,
            "the HPA syncs once in its period",
            "the HPA's sync period, and a fifth of it for what a sync takes",
        )
        claim(
            largest(one.older_s / run.scale.hpa_sync_s for one, run in zip(decided, runs, strict=True)) <= 1.2,
            "at most one sync sees an older lag: KEDA asks Kafka at each sync",
            "KEDA's docs: useCachedMetrics false asks at each sync; lag is sampled once in a sync period",
        )


@allure.story("pollingInterval is not in the way from 1 to N, unless metrics are cached")
def test_polling_matters_only_with_cached_metrics(trials, evidence):
    """Each HPA sync asks Kafka by itself; with useCachedMetrics it gets the value of the last poll."""
    plan = {"profile": "plateau", "workload": light(), "until": REPLAYED}
    cached = policy("lag-4500", use_cached_metrics=True)
    found = trials.blocks({"live": plan | {"policy": "lag-4500"}, "cached": plan | {"policy": cached}})
    live, cached = found["live"], found["cached"]
    polling_s = 60 / trials.scale.time
    in_syncs = (signal(live).median_refresh_s / trials.scale.hpa_sync_s).named("time between changes over the sync period")
    in_polls = (signal(cached).median_refresh_s / polling_s).named("time between changes over pollingInterval")

    for name, runs in found.items():
        reacted = reaction(runs)
        evidence.report(name, {f"{POLICY} (s)": reacted.part(POLICY), "reaction (s)": reacted.total_s})

    with evidence.of(found) as claim:
        claim(
            in_syncs <= 1.5, "each sync of the HPA asks Kafka itself", "KEDA's docs: useCachedMetrics false asks at each sync"
        )
        claim(
            in_polls >= 0.5,
            "with cached metrics pollingInterval decides how often the metric changes",
            "KEDA's docs: useCachedMetrics true answers with the last poll's value; without it a sync of 15 s is a quarter",
        )
        claim(
            reaction(live).divided_s < compressed(REACTION_S, trials.scale.time),
            "with a pollingInterval of a minute the first new pod is at work in time",
        )

    evidence.conclude("useCachedMetrics", "false", "with it the lag that the HPA sees changes once in a pollingInterval")


@allure.story("The longest part that is no waiting, attacked: the join")
def test_the_join_by_another_protocol(trials, evidence):
    """From subscribing to the first partitions, with a barrier that every member has to come to and without one."""
    without, barrier = ON_LAG | {"workload": OTHERS[KIP_848]}, ON_LAG
    found = trials.duets({"protocols": (without, barrier), "A/A": (ON_LAG, ON_LAG)})
    sides = dict(zip((KIP_848, OURS, "A/A, a", "A/A, b"), itertools.chain(*found.values()), strict=True))
    joined = {name: cold_start(runs).join for name, runs in sides.items()}
    for name, runs in sides.items():
        figures = {f"{field} (s)": getattr(cold_start(runs), field) for field in COLD}
        evidence.report(name, figures | {"reaction (s)": reaction(runs).total_s, "peak lag": hold(runs).peak_lag})
    sooner, same = paired(joined[OURS], joined[KIP_848]), paired(joined["A/A, a"], joined["A/A, b"])
    evidence.report("join, cooperative-sticky less KIP-848", sooner.figures())
    evidence.noise(sides["A/A, a"], sides["A/A, b"])

    with evidence.of(sides) as claim:
        claim(
            discern(sooner, same) > 0,
            "without a barrier a new pod has its first partitions sooner",
            "KIP-848: members reconcile by themselves (direction only)",
        )
