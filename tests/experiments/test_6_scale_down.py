"""Experiment 6: does a scale-down lose or repeat work?

Hypothesis. A consumer that finishes what it took, makes it durable, commits and only then leaves the group loses and repeats
nothing when the autoscaler takes its pod. Without that order work is repeated; with commits that run ahead of the work it is
lost; and a grace period shorter than the work turns a drain into a kill.

Method. Profile ``peak-to-floor`` on policy ``lag-4500-brisk``, which has no scale-down window: pods are taken while they still
work. Consumers take up to 1 s of work at a time and write it to the store as it is done. Four trials: drain on; drain
off; commit=auto without drain; and drain on with work of 3 s and a terminationGracePeriodSeconds of 1, at half the pod's rate:
the autoscaler begins to take pods at 150 messages each, as applied at quick: those 3 s. Spark reconciles every message with its
receipts and names the ranges, with the pods that hold them.

Asserted. With drain on processed == produced and every offset is committed. Each of the other three repeats or loses messages.
"""

import allure
import pytest

from lab.measure.delivery import AT_LEAST_ONCE, CONTRACT, DELIVERED, unaccounted, undelivered
from lab.measure.integrity import integrity
from lab.measure.scaling import scale_events
from tests.experiments.workloads import light

pytestmark = [pytest.mark.spike, allure.epic("Scaling on lag"), allure.feature("6 Scale-down safety")]


@pytest.fixture
def scaled_down(trials):
    """Runs the scale-down with consumers of these settings."""

    def run(**settings):
        work = light(**{"poll_ms": 1000} | settings)
        return trials.run(profile="peak-to-floor", policy="lag-4500-brisk", workload=work)

    return run


@allure.story("Drain, commit, leave: nothing lost, nothing repeated")
def test_a_drained_scale_down_is_exact(scaled_down, evidence):
    """processed == produced, and the committed offsets are the log's ends."""
    drained = scaled_down()

    with evidence.of(drained) as claim:
        claim(
            scale_events(drained).scale_downs > 0,
            "the autoscaler took pods from the group",
            kind="control",
            source="the experiment's design",
        )
        claim(unaccounted(drained) == 0, DELIVERED, kind="invariant", source=CONTRACT)
        claim(
            integrity(drained).uncommitted == 0,
            "the committed offsets are the ends of the log",
            kind="invariant",
            source="delivery contract (docs/decisions/03, 38): every event exactly once where the group drains",
        )

    evidence.conclude(
        "terminationGracePeriodSeconds",
        "longer than drain-timeout",
        f"with drain on {integrity(drained).processed:,} of {integrity(drained).produced:,} messages were processed, "
        f"{integrity(drained).doubled} twice",
    )


@allure.story("Without drain work is repeated")
def test_without_drain_work_is_repeated(scaled_down, evidence):
    """Messages that were processed and not committed are processed again, and the ledger names them."""
    killed = scaled_down(drain="off")

    with evidence.of(killed) as claim:
        claim(
            integrity(killed).doubled > 0,
            "without a graceful shutdown messages are processed twice",
            kind="control",
            source="the experiment's design: the effect that a drain ends",
        )
        claim(undelivered(killed) == 0, AT_LEAST_ONCE, kind="invariant", source=CONTRACT)


@allure.story("Auto-commit loses work")
def test_auto_commit_loses_work(scaled_down, evidence):
    """Offsets are committed when messages are taken, so a pod that is killed takes its work with it."""
    automatic = scaled_down(drain="off", commit="auto")

    with evidence.of(automatic) as claim:
        claim(
            integrity(automatic).lost > 0,
            "a commit ahead of the work loses messages",
            kind="control",
            source="the experiment's design: shows that the ledger sees loss",
        )


@allure.story("A grace period shorter than the work is no grace")
def test_a_short_grace_cuts_the_drain_short(scaled_down, evidence):
    """The kubelet kills the draining consumer before it has committed."""
    cut = scaled_down(process_ms="10-30", poll_ms=3000, grace_s=1)

    with evidence.of(cut) as claim:
        claim(
            integrity(cut).doubled > 0,
            "a drain that is killed repeats messages",
            kind="control",
            source="the experiment's design: shows that the ledger sees doubles",
        )
        claim(undelivered(cut) == 0, AT_LEAST_ONCE, kind="invariant", source=CONTRACT)
