"""Scenario payments: what do the author's behavior and lagThreshold do?

Hypothesis. Inertia (a window up of 60 s, one down of 300 s, two pods a minute) ends the jitter of bursts. The window up takes
the *smallest* recent recommendation, though the text says the highest; "Percent 200" triples, though it says doubles.
lagThreshold = rate x SLO x 0.75 keeps the group within the SLO. Of three answers that the text reads off one graph, two
mislead: where replicas begin to rise depends on the window too, and current replicas hide most of a pod's start.

Method. The author's ScaledObject (manifests/payments), adopted, and its siblings. Pods of 166.7 payments/s. Each sync's rule
is taken from the controller's log.

Asserted. The hypothesis, each with its number.

Refuted by a number on the other side. A promise of the text that does not hold is a breach (docs/payments.md).
"""

import allure
import pytest

from lab.inputs.variant import policy
from lab.judge.quantity import Bound
from lab.measure.cost import cost
from lab.measure.delivery import CONTRACT, DELIVERED, unaccounted
from lab.measure.lag import hold, peak_lag
from lab.measure.lateness import time_behind, timelag
from lab.measure.prediction import agreement
from lab.measure.reaction.step import reaction
from lab.measure.rebalance import rebalances, round_count
from lab.measure.scaling import scale_events
from tests.experiments.measure.cores import control_plane_cpu
from tests.experiments.sources import DESIGN, ORACLES, PATTERN
from tests.scenarios.payments.measure.tuning import one_graph
from tests.scenarios.payments.measure.windows import descent, first_period_factor, steps_in_burst, up_window
from tests.scenarios.payments.trials import BARE, DEFAULTS, INERTIA, SCALEDOBJECT, run

pytestmark = [pytest.mark.scenario, allure.epic("Real systems"), allure.feature("Payments")]

SLO_S = Bound(2, "the objective that lagThreshold 250 follows from at 166.7 payments/s: text 2, pattern 1")


@allure.story("Inertia ends the jitter")
def test_inertia_ends_the_jitter(trials, evidence):
    """Three bursts on the author's behavior, on the same without windows, and on a ScaledObject without an advanced block."""
    policies = {INERTIA: "scaledobject", BARE: "no-inertia", DEFAULTS: "defaults"}
    records = {name: run(trials, "bursty", policy) for name, policy in policies.items()}

    for name, record in records.items():
        steps, moves = scale_events(record), rebalances(record)
        figures = {"flips": steps.flips, "steps up": steps.scale_ups, "steps down": steps.scale_downs}
        figures |= {"rebalance rounds": round_count(record), "in rebalances (s)": moves.total_s}
        figures |= {"partitions handed over": moves.assigned, "pod-minutes": cost(record).pod_minutes}
        evidence.report(name, figures | {"peak lag": peak_lag(record), "reaction (s)": reaction(record).total_s})

    calm, restless = records[INERTIA], records[BARE]
    down = descent(calm)
    figures = {"steps down": down.steps, "shortest low before one (s)": down.least_low_s, "window (s)": down.window_s}
    evidence.report("the way down", figures | {"most pods in a period": down.most_pods, "period (s)": down.period_s})
    rounds, cpu = round_count(calm) / round_count(restless), control_plane_cpu(restless) / control_plane_cpu(calm)
    fewer_rounds = rounds.named("rebalance rounds with inertia over those without")
    handed = rebalances(calm).assigned / rebalances(restless).assigned
    fewer_moves = handed.named("partitions moved with inertia over those without")
    strain = cpu.named("the control plane's CPU without inertia over with it")

    with evidence.of(records) as claim:
        claim.control(scale_events(restless).flips > 0, "the bursts cause jitter on a group without inertia", DESIGN)
        claim(scale_events(calm).flips == 0, "a window down longer than the bursts are apart ends the jitter", PATTERN)
        source = "text 2: sustained low lag of 5 minutes"
        claim(descent(calm).early == 0, "no pod goes before the lag was low for the whole window, 300 s at real time", source)
        claim(descent(calm).most_pods <= 2, "no more than two pods go in a minute of real time", "text 2: 2 pods per minute")
        claim(fewer_rounds < 1, "inertia saves rebalances", PATTERN)
        claim(fewer_moves < 1, "inertia moves fewer partitions, each of which pauses while it moves", PATTERN)
        claim(strain > 1, "jitter costs the control plane CPU", "text 2: unnecessary strain on scheduler and control plane")


@allure.story("Three questions that one graph is to answer")
def test_one_graph_answers_three_questions(trials, evidence):
    """The same bursts and lagThreshold, with and without windows: what the graph shows of each."""
    calm, restless = run(trials, "bursty"), run(trials, "bursty", "no-inertia")
    found = {INERTIA: one_graph(calm), BARE: one_graph(restless)}
    for name, seen in found.items():
        figures = {"lag at the first step up": seen.first_rise_lag, "from the peak to a step down (s)": seen.kept_s}
        evidence.report(name, figures | {"not created (pod-s)": seen.uncreated_pod_s, "not Ready (pod-s)": seen.unready_pod_s})
    first = found[INERTIA].first_rise_lag / found[BARE].first_rise_lag
    rise = first.named("lag at the first step up with inertia over without")
    kept = (found[INERTIA].kept_s / descent(calm).window_s).named("time from the peak lag to a step down over the window")
    gap = (found[INERTIA].uncreated_pod_s / found[INERTIA].unready_pod_s).named("replicas not current over replicas not Ready")

    with evidence.of({INERTIA: calm, BARE: restless}) as claim:
        source = "text 2, observability: is my lagThreshold too high or too low"
        claim(rise <= 1.5, "the lag at which replicas rise tells lagThreshold, whatever the windows are", source)
        claim(kept >= 1, "replicas stay for the window after the peak", "text 2, observability: is my window effective")
        source = "text 2, observability: is my cluster scaling pods quickly enough"
        claim(gap >= 0.5, "the gap between desired and current replicas shows how long pods take to start", source)


@allure.story("The window up takes the smallest recent recommendation")
def test_a_spike_shorter_than_the_window_scales_nothing(trials, evidence):
    """A spike of 10 s and then a flood, with a window up of 60 s and without; each sync judged by both rules."""
    held, bare = run(trials, "payments-spike"), run(trials, "payments-spike", "no-inertia")
    found = up_window(held)
    figures = {"syncs that asked for more": found.asking, "the rules differ": found.told_apart, "stayed": found.stayed}
    evidence.report(INERTIA, figures | {"went up by the smallest": found.followed, "of": found.beyond})

    with evidence.of({INERTIA: held, BARE: bare}, delivery=None) as claim:
        claim.control(steps_in_burst(bare) > 0, "the short spike is large enough to scale a group without a window", DESIGN)
        claim(steps_in_burst(held) == 0, "the window up sits out a spike that is shorter than it", "text 2: the window up")
        claim.control(found.told_apart > 0, "there are syncs at which the two rules differ", DESIGN)
        claim.invariant(found.raised == 0, "the smallest recent recommendation decides, not the highest", ORACLES)
        claim.invariant(found.share == 100, "a step up goes no further than the smallest recommendation of the window", ORACLES)
        claim.invariant(unaccounted(held, bare) == 0, DELIVERED, CONTRACT)
        claim.invariant(
            agreement(held).agreement == 100, "the model, which takes the smallest, decides every sync as the HPA did", ORACLES
        )
        evidence.explain(f"The controller's own reason in the HPA's status: {found.said!r}")
    assert "lowest recent recommendation" in found.said


@allure.story("Percent 200 triples")
def test_percent_200_triples(trials, evidence):
    """With a flood in front of it the first period of the policies takes the group to three times its replicas."""
    bare = run(trials, "payments-spike", "no-inertia")

    with evidence.of(bare, delivery=None) as claim:
        claim.invariant(unaccounted(bare) == 0, DELIVERED, CONTRACT)
        source = "the pinned Go code of the HPA/KEDA (tests/oracles): Percent 200"
        tripled = first_period_factor(bare) == 3
        claim.invariant(tripled, "200 % are added to what is there: three times the replicas, not twice", source)


@pytest.mark.extended
@allure.story("lagThreshold follows from a pod's rate and the SLO")
def test_the_computed_threshold_holds_the_slo(trials, evidence):
    """250 = 166.7/s x 2 s x 0.75 keeps the group within 2 s; ten times that does not."""
    computed, late = run(trials, "plateau"), run(trials, "plateau", policy(SCALEDOBJECT, lag_threshold=37_500))

    for name, record in {"250": computed, "2500": late}.items():
        figures = {"behind (s)": time_behind(record), "time lag p50 (s)": timelag(record).median_s}
        figures |= {"time lag p95 (s)": timelag(record).p95_s, "processed of those due": timelag(record).share}
        evidence.report(name, figures | {"pods": hold(record).replicas, "pod-minutes": cost(record).pod_minutes})

    with evidence.of({"250": computed, "2500": late}) as claim:
        claim(time_behind(computed) <= SLO_S, "the computed lagThreshold keeps the group within the objective")
        claim(timelag(computed).p95_s <= SLO_S, "late in the spike 95 % of the messages are processed within the objective")
        claim.control(time_behind(late) > SLO_S, "ten times the computed lagThreshold breaches the objective")

    evidence.conclude("lagThreshold", 250, "166.7 payments/s x 2 s x 0.75, computed by python -m lab threshold")
