"""Experiment 10: scaling on lag that lasts.

Hypothesis. A spike that the group works off by itself needs no pods, so a scaler that looks only at lag which has lasted two
minutes does not scale on it, and KEDA's does: that is what its author promises 70-90 % fewer scaling events and 20-40 % less
compute for. The price is paid on a true step, which is answered later by as much. ``excludePersistentLag`` is KEDA's own word
for another thing: it leaves out partitions whose committed offset stands still.

Method. The same traffic, pods of 100 events/s and seed on policies that differ in their trigger alone: ``lag-150`` is KEDA's
kafka trigger, ``lag-150-excluding`` the same with excludePersistentLag, ``lasting-150`` the persistent-lag scaler with
sustainSeconds 120. Profiles: ``transient`` (spikes the floor works off), ``bursty``, ``sawtooth``, ``plateau`` (a sustained
step), and a steady rate with one message that never succeeds and stalls its partition. Then the author's own table, minute by
minute. Late is the time in which the oldest unprocessed event is older than 2 s, as seen.

Asserted. On spikes that the group works off the kafka trigger scales and the persistent-lag scaler never does, though it was
told of lag at every sync. On a sustained step it comes to as many pods, later by sustainSeconds (less a sync and a sampling
interval at most), at a higher peak of lag; with its threshold as an SLO says it, in seconds, as well. On the stalled partition
the kafka trigger takes pods that can't help, and excludePersistentLag doesn't. In the table the lag is the author's and the
scaler waits as he says, but for the minute in which lag has lasted as long as he asks for. Nothing is lost or doubled. How much
less it scales and costs on bursts is the author's claim, which is measured, over ``--repeat`` runs in turns, and reported: it
is not ours to hold.
"""

from functools import partial

import allure
import pytest

from lab.judge import objective
from lab.measure.churn import churn
from lab.measure.cost import cost
from lab.measure.flips import stability
from lab.measure.integrity import integrity
from lab.measure.lateness import behind
from lab.measure.reaction import POLICY, reaction
from lab.measure.signal import unanswered
from lab.measure.spread import spread
from lab.measure.timeline import moments
from lab.spec.inputs import REPLAYED
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("10 Persistent lag")]

BUILT_IN, EXCLUDING, LASTING = "kafka trigger", "excludePersistentLag", "persistent-lag scaler"
IN_SECONDS = "persistent-lag scaler, lagSeconds 30"
TABLE = {"12:00": 30, "12:01": 90, "12:02": 150, "12:03": 210}  # the author's clock, in s after the lag began to build up
HIS_LAG = {"12:00": 15_000, "12:01": 12_000, "12:02": 8_000}
POLICIES = {BUILT_IN: "lag-150", EXCLUDING: "lag-150-excluding", LASTING: "lasting-150"}


def events(record):
    """How often the number of replicas was changed."""
    return stability(record).scale_ups + stability(record).scale_downs


FIGURES = {
    "scaling events": events,
    "flips": lambda record: stability(record).flips,
    "rebalances": lambda record: churn(record).rebalances,
    "pod-minutes": lambda record: cost(record).pod_minutes,
    "most replicas": lambda record: stability(record).most_replicas,
    "peak lag": lambda record: record.peak_lag,
    "late (s)": lambda record: behind(record, objective.BEHIND.bound),
}


def ignoring(judge, record):
    """Who does nothing may as well have seen nothing: there was lag to scale on, and it was told at every sync."""
    judge(objective.SPIKED, lambda: record.peak_lag / (record.policy.min_replicas * record.lag_threshold))
    judge(objective.TOLD, lambda: unanswered(record))


def exact(judge, *records):
    """Each message was processed once."""
    judge(objective.NOT_LOST, lambda: sum(integrity(record).lost for record in records))
    judge(objective.DOUBLED, lambda: sum(integrity(record).doubled for record in records))


def change(figure, found):
    """A figure of the persistent-lag scaler's against the kafka trigger's of the same turn, in words."""
    pairs = zip(found[LASTING], found[BUILT_IN], strict=True)
    percent = spread([100 * (figure(mine) / figure(theirs) - 1) for mine, theirs in pairs])
    return f"{percent.median:+.0f} % ({percent.low:+.0f} to {percent.high:+.0f}, n = {percent.n})"


def row(record):
    """This record's figures."""
    return {figure: of(record) for figure, of in FIGURES.items()}


def run(trials, evidence, profile, policies=POLICIES, **changes):
    """One traffic on these policies, with a row of figures for each."""
    plan = {"profile": profile, "workload": light(), "until": REPLAYED} | changes
    found = {name: trials.run(policy=policy, **plan) for name, policy in policies.items()}
    for name, record in found.items():
        evidence.report(name, partial(row, record))
    return found


@allure.story("Spikes that the group works off scale nothing")
def test_transient_spikes_scale_nothing(trials, evidence):
    """Where the claim comes from: the built-in trigger scales on each spike for nothing."""
    found = run(trials, evidence, "transient")

    with evidence.of(found) as judge:
        judge(objective.SCALES_ON_SPIKES, lambda: stability(found[BUILT_IN]).scale_ups)
        judge(objective.IGNORES_SPIKES, lambda: events(found[LASTING]))
        ignoring(judge, found[LASTING])
        exact(judge, found[LASTING])


@pytest.mark.parametrize("profile", ["bursty", "sawtooth"])
@allure.story("The author's claim, on bursts that need pods")
def test_what_the_claim_comes_to_on_bursts(trials, evidence, profile):
    """70-90 % fewer scaling events and 20-40 % less compute: measured, beside the lateness they are bought with."""
    plan = {"profile": profile, "workload": light(), "until": REPLAYED}
    found = trials.interleaved({name: plan | {"policy": policy} for name, policy in POLICIES.items()})

    def medians(runs):
        figures = {figure: spread([of(record) for record in runs]).median for figure, of in FIGURES.items()}
        return figures | {"runs": len(runs)}

    for name, runs in found.items():
        evidence.report(name, partial(medians, runs))
    evidence.explain(
        lambda: (
            "Of the persistent-lag scaler against the kafka trigger: "
            f"scaling events {change(events, found)} (claimed: 70-90 % fewer), pod-minutes "
            f"{change(FIGURES['pod-minutes'], found)} (claimed: 20-40 % fewer), "
            f"late {change(FIGURES['late (s)'], found)}."
        )
    )

    with evidence.of(found) as judge:
        judge(objective.SCALED_UP, lambda: min(stability(record).scale_ups for record in found[LASTING]))
        exact(judge, *found[LASTING])


@allure.story("A true step is answered later")
def test_a_sustained_step_is_answered_later(trials, evidence):
    """Where it loses: the same pods, later by sustainSeconds, with the lag that has come meanwhile."""
    found = run(trials, evidence, "plateau", POLICIES | {IN_SECONDS: "lasting-30s"})

    def decided(name):
        return reaction(found[name]).parts[POLICY]

    def most(name):
        return stability(found[name]).most_replicas

    def sustain():
        triggers = found[LASTING].policy.content["spec"]["triggers"]
        return float(triggers[0]["metadata"]["sustainSeconds"])

    with evidence.of(found) as judge:
        judge(objective.AS_MANY, lambda: most(LASTING) / most(BUILT_IN))
        judge(objective.LATER, lambda: (decided(LASTING) - decided(BUILT_IN)) / sustain())
        judge(objective.HIGHER_PEAK, lambda: found[LASTING].peak_lag / found[BUILT_IN].peak_lag)
        judge(objective.REACTION_REAL, lambda: reaction(found[BUILT_IN]).real_s)
        judge(objective.AS_MANY_TOO, lambda: most(IN_SECONDS) / most(BUILT_IN))
        exact(judge, found[LASTING], found[IN_SECONDS])


@allure.story("A partition that one message stalls")
def test_a_stalled_partition(trials, evidence):
    """Pods don't help a partition whose consumer retries one message for ever; its lag lasts like no other."""
    found = run(trials, evidence, "stalled", partitions=6, workload=light(poison="2:100", dlq="off"))

    with evidence.of(found) as judge:
        judge(objective.SCALED_FOR_NOTHING, lambda: stability(found[BUILT_IN]).scale_ups)
        judge(objective.EXCLUDED, lambda: stability(found[EXCLUDING]).scale_ups)
        ignoring(judge, found[EXCLUDING])
        judge(objective.LASTS_TOO, lambda: stability(found[LASTING]).scale_ups)


@allure.story("The author's table, minute by minute")
def test_the_authors_table(trials, evidence):
    """12:00 to 12:03: lag of 15, 12, 8 and 2 thousand on which his scaler does nothing, at a tenth."""
    plan = {"profile": "catching-up", "workload": light(), "until": REPLAYED}
    policies = {BUILT_IN: "lag-150", f"{LASTING}, 120 s": "lasting-150", f"{LASTING}, 300 s": "lasting-150-long"}
    found = {name: trials.run(policy=policy, **plan) for name, policy in policies.items()}
    short, long = list(found)[1:]
    seen = {name: dict(zip(TABLE, moments(record, list(TABLE.values())), strict=True)) for name, record in found.items()}
    for name, row in seen.items():
        figures = {f"{clock} lag": moment.lag for clock, moment in row.items()}
        evidence.report(name, figures | {f"{clock} replicas": moment.wanted for clock, moment in row.items()})
    floor = found[short].policy.min_replicas

    def off():
        """How far the lag of the group that is left alone is from the author's, both against their own at 12:00."""
        shares = {clock: seen[long][clock].lag / seen[long]["12:00"].lag for clock in HIS_LAG}
        return max(abs(share * HIS_LAG["12:00"] / HIS_LAG[clock] - 1) for clock, share in shares.items())

    with evidence.of(found) as judge:
        judge(objective.AS_HIS, off)
        judge(objective.SCALES_AT_ONCE, lambda: seen[BUILT_IN]["12:01"].wanted - floor)
        judge(objective.WAITS, lambda: seen[short]["12:01"].wanted - floor)
        judge(objective.BY_ITS_OWN_RULE, lambda: stability(found[short]).scale_ups)
        judge(objective.NEVER_ACTS, lambda: events(found[long]))
        ignoring(judge, found[long])
        exact(judge, *found.values())
