"""Scenario payments: what the author's behavior and lagThreshold do.

Hypothesis. Inertia (a window up of 60 s, one down of 300 s, two pods a minute) ends the jitter that bursts cause. The window
up takes the *smallest* recent recommendation, though the text says the highest, so a spike shorter than it scales nothing;
"Percent 200" triples, though the text says it doubles. lagThreshold = rate x SLO x 0.75 keeps the group within the SLO.

Method. The author's ScaledObject (manifests/payments), with the two field names put right that KEDA does not know, adopted:
only what ties it to his cluster is replaced. Pods of 166.7 payments/s, for which the author's lagThreshold 250 follows from
an SLO of 2 s. Its siblings differ in what their first line says. Which rule an HPA followed is taken from the controller's
own log, sync by sync.

Asserted. What the hypothesis says, each with its number. What the text promises and does not hold is a breach here, and in
docs/payments.md.
"""

from functools import partial

import allure
import pytest

from lab.errors import NoData
from lab.judge import objective
from lab.measure.agreement import agreement
from lab.measure.churn import churn
from lab.measure.cost import cost
from lab.measure.flips import stability
from lab.measure.hold import hold
from lab.measure.reaction import reaction
from lab.measure.rounds import rounds
from lab.measure.timelag import timelag
from lab.measure.upwindow import first_burst, first_stride, upwindow
from tests.scenarios.payments import BARE, DEFAULTS, INERTIA, run

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]


@allure.story("Inertia ends the jitter")
def test_inertia_ends_the_jitter(trials, evidence):
    """Three bursts on the author's behavior, on the same without windows, and on a ScaledObject without an advanced block."""
    records = {
        INERTIA: run(trials, "bursty"),
        BARE: run(trials, "bursty", "no-inertia"),
        DEFAULTS: run(trials, "bursty", "defaults"),
    }

    def row(record):
        figures: dict[str, float] = {"flips": stability(record).flips, "steps up": stability(record).scale_ups}
        figures |= {"steps down": stability(record).scale_downs, "rebalance rounds": len(rounds(record))}
        figures |= {"in rebalances (s)": churn(record).total_s, "partitions handed over": churn(record).assigned}
        figures |= {"pod-minutes": cost(record).pod_minutes, "peak lag": record.peak_lag}
        return figures | {"reaction (s)": reaction(record).total_s}

    for name, record in records.items():
        evidence.report(name, partial(row, record))

    with evidence.of(records) as judge:
        judge(objective.RESTLESS, lambda: stability(records[BARE]).flips)
        judge(objective.INERT, lambda: stability(records[INERTIA]).flips)
        judge(objective.FEWER_REBALANCES, lambda: len(rounds(records[INERTIA])) / len(rounds(records[BARE])))
        judge(objective.FEWER_MOVES, lambda: churn(records[INERTIA]).assigned / churn(records[BARE]).assigned)


@allure.story("The window up takes the smallest recent recommendation")
def test_a_spike_shorter_than_the_window_scales_nothing(trials, evidence):
    """A spike of 10 s and then a flood, with a window up of 60 s and without; each sync judged by both rules."""
    held, bare = run(trials, "payments-spike"), run(trials, "payments-spike", "no-inertia")
    found = upwindow(held)
    evidence.explain(f"The controller's own reason in the HPA's status: {found.said!r}")
    figures = {"syncs that asked for more": found.asking, "the rules differ": found.told_apart, "stayed": found.stayed}
    evidence.report(INERTIA, figures | {"went up by the smallest": found.followed, "of": found.beyond})

    with evidence.of({INERTIA: held, BARE: bare}) as judge:
        judge(objective.SHORT_SPIKE_SEEN, lambda: first_burst(bare))
        judge(objective.SHORT_SPIKE, lambda: first_burst(held))
        judge(objective.TOLD_APART, lambda: found.told_apart)
        judge(objective.NOT_HIGHEST, lambda: found.raised)
        judge(objective.SMALLEST, lambda: share(found.followed, found.beyond))
        judge(objective.AGREES, lambda: agreement(held).agreement)
    assert "lowest recent recommendation" in found.said


@allure.story("Percent 200 triples")
def test_percent_200_triples(trials, evidence):
    """With a flood in front of it the first period of the policies takes the group to three times its replicas."""
    bare = run(trials, "payments-spike", "no-inertia")

    with evidence.of(bare) as judge:
        judge(objective.TRIPLES, lambda: first_stride(bare))


@allure.story("lagThreshold follows from a pod's rate and the SLO")
def test_the_computed_threshold_holds_the_slo(trials, evidence):
    """250 = 166.7/s x 2 s x 0.75 keeps the group within 2 s; ten times that does not."""
    computed, late = run(trials, "plateau"), run(trials, "plateau", "late")

    def row(record):
        figures = {"behind (s)": hold(record).behind_s, "time lag p50 (s)": timelag(record).median_s}
        figures |= {"time lag p95 (s)": timelag(record).p95_s, "processed of those due": timelag(record).share}
        return figures | {"pods": hold(record).replicas, "pod-minutes": cost(record).pod_minutes}

    for name, record in {"250": computed, "2500": late}.items():
        evidence.report(name, partial(row, record))

    with evidence.of({"250": computed, "2500": late}) as judge:
        judge(objective.BEHIND, lambda: hold(computed).behind_s)
        judge(objective.AGED, lambda: timelag(computed).p95_s)
        judge(objective.OVER_SLO, lambda: hold(late).behind_s)

    evidence.conclude("lagThreshold", 250, "166.7 payments/s x 2 s x 0.75, computed by python -m lab threshold")


def share(part, whole):
    """Percent; no data of nothing."""
    if not whole:
        raise NoData("no sync at which all of the window asked for more")
    return 100 * part / whole
