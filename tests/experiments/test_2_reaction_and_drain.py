"""Experiment 2: scale-out reaction and drain.

Hypothesis. KEDA on lag scales group ``enrich`` out within 90 s of a 10x step, the backlog drains without a plateau once
every partition has a pod, and the group returns to its floor without flapping and without losing or repeating a message.

Method. Profile ``step-10x`` (R, then 10R, then R) on policy ``lag``: 4 to 24 cooperative-sticky consumers of 1,000
messages/s each and P = 24, so that 10R is more than all of them can take. The reaction is that of the first new pod to be
Ready, assigned and at work, in stamped parts that sum to the total. The drain is from the spike's end to total lag at or
below one lagThreshold; its best possible time is that of the hottest partition, which one pod alone can serve. After the
last message Spark reconciles what was produced with the receipts, range by range. ``--repeat`` runs it more than once.

What pollingInterval has to do with it: profile ``plateau`` with an interval of a minute, once as KEDA is by default and once
with useCachedMetrics. The age of what the HPA sees is the time between two changes of the metric in its status.

What is longest is the cold start, from a created pod to one at work: eight Python interpreters start at once on two cores.
``lag-150-stream`` asks for as many pods in small portions, so that each has the cores almost to itself. The median pod of the
scale-out is compared.
"""

from functools import partial

import allure
import pytest

from lab.errors import known
from lab.judge import objective
from lab.measure.coldstart import cold_start
from lab.measure.drain import drain
from lab.measure.flips import stability
from lab.measure.hold import hold
from lab.measure.integrity import integrity
from lab.measure.reaction import PARTS, POLICY, reaction
from lab.measure.signal import signal
from lab.measure.spread import spread
from lab.report.evidence import breakdown_of
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import light

COLD = ("start", "join", "total", "slowest")
pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("2 Reaction and drain")]


@allure.story("A 10x spike scales the group out, drains, and lets it back to the floor")
def test_a_10x_spike_is_absorbed(trials, evidence):
    """A 10x step is answered, drained and given back, and every message is processed exactly once."""
    record = trials.run(profile="step-10x", policy="lag")
    evidence.chart("reaction, by part", lambda: breakdown_of(reaction(record)))

    with evidence.of(record) as judge:
        judge(objective.BASELINE, lambda: stability(record).above_floor_at_baseline)
        judge(objective.REACTION, lambda: reaction(record).total_s)
        judge(objective.REACTION_REAL, lambda: reaction(record).real_s)
        judge(objective.BACKLOG, lambda: drain(record).peak_lag)
        judge(objective.DRAINED, lambda: drain(record).seconds / drain(record).ideal_s)
        judge(objective.MONOTONE, lambda: drain(record).rise_in_thresholds)
        judge(objective.FLIPS, lambda: stability(record).flips)
        judge(objective.FLOOR, lambda: stability(record).above_floor_at_end)
        judge(objective.UNKNOWN, lambda: integrity(record).unknown_or_failed)
        judge(objective.UNPROCESSED, lambda: integrity(record).produced - integrity(record).processed)
        judge(objective.DOUBLED, lambda: integrity(record).doubled)
        judge(objective.MISMATCHED, lambda: integrity(record).mismatched)


@allure.story("A reaction's parts, over repeated trials")
def test_a_reaction_is_known_with_its_spread(trials, evidence):
    """Median and interval of each part over ``--repeat`` runs of the same step; the median is held to the objective."""
    runs = trials.interleaved({"step": {"profile": "plateau", "policy": "lag-150", "workload": light(), "until": REPLAYED}})[
        "step"
    ]

    def over_runs(figure):
        return spread([figure(reaction(run)) for run in runs])

    def row(part):
        seconds = over_runs(lambda one: one.parts[part] if part in PARTS else one.total_s)
        figures = {"median (s)": seconds.median, "least (s)": seconds.low, "most (s)": seconds.high, "runs": seconds.n}
        return figures | {"share of the total": seconds.median / over_runs(lambda one: one.total_s).median}

    for part in (*PARTS, "total"):
        evidence.report(part, partial(row, part))

    with evidence.of({"step": runs}) as judge:
        judge(objective.REACTION, lambda: over_runs(lambda one: one.total_s).median)
        judge(objective.REACTION_REAL, lambda: over_runs(lambda one: one.real_s).median)


@allure.story("pollingInterval is not in the way from 1 to N, unless metrics are cached")
def test_polling_matters_only_with_cached_metrics(trials, evidence):
    """Each HPA sync asks Kafka by itself; with useCachedMetrics it is handed what the last poll saw."""
    live = trials.run(profile="plateau", policy="lag-150", workload=light(), until=REPLAYED)
    cached = trials.run(profile="plateau", policy="lag-150-cached", workload=light(), until=REPLAYED)
    polling_s = 60 / trials.scale.time

    def row(record):
        return {f"{POLICY} (s)": reaction(record).parts[POLICY], "reaction (s)": reaction(record).total_s}

    for name, record in (("live", live), ("cached", cached)):
        evidence.report(name, partial(row, record))

    with evidence.of({"live": live, "cached": cached}) as judge:
        judge(objective.LIVE, lambda: known(signal(live).median_refresh_s, "change seen") / trials.scale.hpa_sync_s)
        judge(objective.CACHED, lambda: known(signal(cached).median_refresh_s, "change seen") / polling_s)
        judge(objective.REACTION, lambda: reaction(live).total_s)

    evidence.conclude("useCachedMetrics", "false", "with it the HPA sees lag as old as pollingInterval")


@allure.story("The longest part, attacked: pods in small portions")
def test_the_cold_start_is_shortened(trials, evidence):
    """As many pods, asked for a few at a time, start sooner each."""
    plan = {"profile": "plateau", "policy": "lag-150", "workload": light(), "until": REPLAYED}
    found = trials.interleaved({"8 at once": plan, "2 at a time": plan | {"policy": "lag-150-stream"}})

    def start(name):
        return spread([cold_start(run).start for run in found[name]]).median

    def row(runs):
        figures = {f"{field} (s)": spread([getattr(cold_start(run), field) for run in runs]).median for field in COLD}
        figures["reaction (s)"] = spread([reaction(run).total_s for run in runs]).median
        return figures | {"peak lag": spread([hold(run).peak_lag for run in runs]).median, "runs": len(runs)}

    for name, runs in found.items():
        evidence.report(name, partial(row, runs))

    with evidence.of(found) as judge:
        judge(objective.SHORTENED, lambda: start("2 at a time") / start("8 at once"))
