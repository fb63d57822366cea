"""Experiment 6: does a scale-down lose or repeat work?

Hypothesis. A consumer that finishes its work, makes it durable, commits and then leaves loses and repeats nothing. Without
that order work is repeated; with commits ahead of it, lost; with too short a grace a drain becomes a kill.

Method. Profile ``peak-to-floor`` without a scale-down window takes pods at work. Drain on; off, with manual commits beside
commit=auto; and on with work of 3 s and a grace of 1 s. In profile ``in-hand`` four of eight pods are taken with up to 20 s of
work each. Spark reconciles every message with its receipts.

Asserted. With drain on processed equals produced and every offset is committed. Without it messages are repeated, with
auto-commit lost. The short grace repeats at least as many messages as pods are taken.

Refuted by fewer than four.
"""

import allure
import pytest

from lab.inputs.variant import policy
from lab.judge.aggregate import spread
from lab.measure.delivery import AT_LEAST_ONCE, CONTRACT, DELIVERED, delivery, unaccounted, undelivered
from lab.measure.scaling import scale_events
from tests.experiments.sources import DELIVERY, DESIGN
from tests.experiments.workloads import light, slim
from tests.scenarios.payments.measure.shutdown import departures

TAKEN = 4  # pods, by half-taken
BRISK = policy("lag-4500", scale_down_window=0, scale_down="100%/30s")
pytestmark = [allure.epic("Scaling on lag"), allure.feature("6 Scale-down safety")]


@pytest.fixture
def scaled_down(trials):
    """Runs the scale-down with consumers of these settings."""

    def run(**settings):
        work = light(**{"poll_ms": 1000} | settings)
        return trials.run(profile="peak-to-floor", policy=BRISK, workload=work)

    return run


@pytest.mark.extended
@allure.story("Drain, commit, leave: nothing lost, nothing repeated")
def test_a_drained_scale_down_is_exact(scaled_down, evidence):
    """processed == produced, and the committed offsets are the log's ends."""
    drained = scaled_down()
    left = departures(drained)
    evidence.report("taken pods", {name: getattr(left, name) for name in left.declared()})

    with evidence.of(drained, delivery=None) as claim:
        claim.control(scale_events(drained).scale_downs > 0, "the autoscaler took pods from the group", DESIGN)
        claim.invariant(unaccounted(drained) == 0, DELIVERED, CONTRACT)
        claim.invariant(delivery(drained).uncommitted == 0, "the committed offsets are the ends of the log", DELIVERY)

    evidence.conclude(
        "terminationGracePeriodSeconds",
        "longer than drain-timeout",
        f"with drain on {delivery(drained).processed:,} of {delivery(drained).stored:,} messages were processed, "
        f"{delivery(drained).doubled} twice",
    )


@pytest.mark.spike
@pytest.mark.duration(65)
@allure.story("Without drain work is repeated, and with auto-commit it is lost")
def test_without_drain_work_is_repeated_or_lost(trials, evidence):
    """Taken pods that die where they stand: what they had in hand is processed again, or never, and the ledger names it."""
    plan = {"profile": "peak-to-floor", "policy": BRISK}
    faults = {"manual commits": {}, "auto-commit": {"commit": "auto"}}
    pair = [plan | {"workload": slim(poll_ms=1000, drain="off", **settings)} for settings in faults.values()]
    killed, automatic = trials.duet(*pair)

    with evidence.of(dict(zip(faults, (killed, automatic), strict=True)), delivery=None) as claim:
        claim.control(
            delivery(killed).doubled > 0,
            "without a graceful shutdown messages are processed twice",
            f"{DESIGN}: the effect that a drain ends",
        )
        claim.invariant(undelivered(*killed) == 0, AT_LEAST_ONCE.sentence, CONTRACT)
        claim.control(
            delivery(automatic).lost > 0,
            "a commit ahead of the work loses messages",
            f"{DESIGN}: shows that the ledger sees loss",
        )


@pytest.mark.extended
@allure.story("A grace period shorter than the work is no grace")
def test_a_short_grace_cuts_the_drain_short(scaled_down, evidence):
    """The kubelet may kill the draining consumer before it has committed; what that repeats depends on what is in hand."""
    cut = scaled_down(process_ms="10-30", poll_ms=3000, grace_s=1)
    evidence.report("processed twice", {"messages": delivery(cut).doubled})

    with evidence.of(cut, delivery=AT_LEAST_ONCE):
        pass


@pytest.mark.extended
@allure.story("A grace period shorter than the work in hand repeats that work")
def test_a_short_grace_repeats_the_work_in_hand(trials, evidence):
    """Four of eight pods are taken in the middle of a batch of several seconds, with a grace of 1 s, which is 2 s."""
    work = light(process_ms="10-30", poll_ms=20_000, grace_s=1)
    cut = trials.blocks({"grace 1 s": {"profile": "in-hand", "policy": "half-taken", "workload": work}})
    (runs,) = cut.values()
    doubled = delivery(runs).doubled
    repeats = spread(doubled.runs or [doubled])
    evidence.report("messages processed twice", {"median": repeats.median, "least": repeats.low, "most": repeats.high})

    with evidence.of(cut, delivery=AT_LEAST_ONCE) as claim:
        claim(
            doubled >= TAKEN,
            "a grace shorter than the work in hand repeats at least as many messages as pods are taken",
            "Kubernetes: SIGKILL after terminationGracePeriodSeconds, and 2 s at least; some 20 s of work",
        )
