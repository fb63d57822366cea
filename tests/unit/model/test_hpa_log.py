"""Replaying syncs through the model: what agrees, what does not, and what the controller's log says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import hpa, hpa_log
from lab.model.hpa_log import CLOCK_S, Seen, Sync, replay

CONTROLLER = hpa.Controller(downscale_stabilization_s=10)
LAG = hpa.Metric("External", "lag", "AverageValue", 100_000)
STEADY = hpa.Behavior(hpa.Rules(0, "Max", (hpa.Policy("Pods", 4, 15),)), hpa.Rules(5, "Max", (hpa.Policy("Percent", 100, 15),)))
SPEC = hpa.HpaSpec(1, 24, (LAG,), STEADY)
BEGUN = 1_700_000_000.0


def synced(*lags, spec=SPEC, replicas=2, every_s=0.5):
    """The syncs of an HPA that decides as the model does, on these lags (messages)."""
    state, found = hpa.State(), []
    for index, lag in enumerate(lags):
        at = BEGUN + index * every_s
        observed = (hpa.external(lag),)
        decision, state = hpa.decide(spec, state, replicas, observed, at, controller=CONTROLLER)
        proposed = decision.proposals[0] if decision.proposals else None
        rescaled = decision.desired != replicas
        found.append(
            Sync(at, spec, replicas, decision.desired, proposed, (Seen(replicas, observed),), at if rescaled else None)
        )
        replicas = decision.desired
    return found


@given(st.lists(st.integers(0, 3000), max_size=40), st.integers(1, 30))
def test_the_models_own_syncs_agree(lags, replicas):
    """Every one of them, with nothing left to the clock."""
    syncs = synced(*lags, replicas=replicas)
    found = replay(syncs, CONTROLLER)
    rescaled = sum(sync.current != sync.desired for sync in syncs)
    assert (found.syncs, found.computed, found.rescaled) == (len(lags), len(lags), rescaled)
    assert (found.at_an_edge, found.alternatives, found.disagreements) == (0, 0, ())
    assert found.agreement == (100 if lags else 0)


@pytest.mark.parametrize(("field", "change"), [("desired", 1), ("proposed", 1), ("proposed", -1)])
def test_another_decision_or_proposal_is_a_disagreement(field, change):
    """At its place, with both decisions, the model's reasons and what was seen."""
    syncs = synced(200, 2400, 2400)
    syncs[1] = replace(syncs[1], **{field: getattr(syncs[1], field) + change})
    found = replay(syncs, CONTROLLER)
    (wrong,) = found.disagreements
    assert (wrong.index, wrong.proposed, wrong.desired) == (1, 24, 6)
    assert found.agreement == pytest.approx(100 * 2 / 3)
    for said in ("sync 1 at", f"real 2 -> {syncs[1].desired} (proposed {syncs[1].proposed})", "model 2 -> 6 (proposed 24)"):
        assert said in str(wrong)
    assert "ceil(2400 / 100) = 24" in str(wrong)


def test_after_a_disagreement_the_model_goes_on_as_it_decided():
    """A real HPA that leaves its window too early is told once for every sync that it is early."""
    syncs = synced(800, *[100] * 12, replicas=8)
    early = [replace(sync, current=1, desired=1, seen=(Seen(1, (hpa.external(100),)),)) for sync in syncs[2:4]]
    early[0] = replace(early[0], current=8, seen=syncs[2].seen)
    found = replay([*syncs[:2], *early], CONTROLLER)
    assert [wrong.index for wrong in found.disagreements] == [2]
    assert found.disagreements[0].desired == 8


def late(sync, by_s, until_s=None):
    """``sync`` as it is logged ``by_s`` before the controller read its clock, not later than ``until_s`` after the log."""
    return replace(sync, at=sync.at - by_s, until=None if until_s is None else sync.at - by_s + until_s)


@pytest.mark.parametrize(
    ("by_s", "until_s", "agrees"),
    [
        (CLOCK_S / 2, None, True),  # a window of 5 s has just ended when the clock is read, and not yet when it is logged
        (0.03, None, False),
        (0.03, 0.04, True),
        (0.03, 0.02, False),
    ],
)
def test_a_clock_read_after_the_log_is_an_edge_as_far_as_is_known(by_s, until_s, agrees):
    """By a millisecond, or by what the outcome's line leaves open; not by more."""
    syncs = synced(800, *[100] * 12, replicas=8)
    (end,) = [index for index, sync in enumerate(syncs) if sync.desired < sync.current]
    assert syncs[end].at - syncs[0].at == 5
    syncs[end] = late(syncs[end], by_s, until_s)
    found = replay(syncs[: end + 1], CONTROLLER)
    assert (found.at_an_edge, not found.disagreements) == (int(agrees), agrees)


@pytest.mark.parametrize(
    ("first", "lags", "shift_s", "desired"),
    [
        ({"until": BEGUN + 0.02}, [800] + [100] * 10, 0.01, 8),  # held up, so that its window ends later
        ({"since": BEGUN - 0.15}, [100] * 10, 0.4, 1),  # it took long; its recommendation is dated before its metrics are read
    ],
)
def test_a_remembered_syncs_clock_may_be_what_was_off(first, lags, shift_s, desired):
    """The sync at the edge of the window is in time; where the first one's clock is known no better, it disagrees."""
    syncs = synced(*lags, replicas=8)
    last = replace(syncs[-1], at=syncs[-1].at + shift_s, desired=desired, scaled_at=None)
    assert [wrong.index for wrong in replay([*syncs[:-1], last], CONTROLLER).disagreements] == [len(lags) - 1]
    known = replay([replace(syncs[0], **first), *syncs[1:-1], last], CONTROLLER)
    assert (known.at_an_edge, known.disagreements) == (1, ())


def test_what_may_have_been_seen_is_tried_in_turn():
    """Replicas that changed at that moment: the first is the likeliest, another is counted, and none agrees with nothing."""
    syncs = synced(1800, 2350, replicas=18)
    last = syncs[-1]
    assert (last.current, last.proposed) == (18, 24)
    other = Seen(23, last.seen[0].observed)  # within the tolerance of 23 replicas, so that these would stay
    both = replace(last, seen=(other, *last.seen))
    found = replay([*syncs[:-1], both], CONTROLLER)
    assert (found.alternatives, found.disagreements) == (1, ())
    for seen, computed in (((other,), 2), ((), 1)):
        alone = replay([*syncs[:-1], replace(last, seen=seen)], CONTROLLER)
        assert (alone.computed, [wrong.index for wrong in alone.disagreements]) == (computed, [1])


def test_limits_are_replayed_where_only_the_proposal_is_known():
    """As for a CPU metric, whose samples no one keeps."""
    syncs = [replace(sync, seen=(Seen(sync.current, None),)) for sync in synced(200, 2400, 2400, 100, 100)]
    found = replay(syncs, CONTROLLER)
    assert (found.syncs, found.computed, found.disagreements) == (5, 0, ())
    other = replace(syncs[1], desired=syncs[1].desired + 1)
    assert [wrong.index for wrong in replay([syncs[0], other], CONTROLLER).disagreements] == [1]


METRIC = 'metric="external metric s0-kafka-events(&LabelSelector{MatchLabels:map[string]string{name: consumer,},})"'
TARGET = 'scaleTarget="Deployment/trial/consumer"'
LOG = f"""\
I1231 23:59:59.500000    4769 horizontal.go:907] "Proposing desired replicas" desiredReplicas=24 {METRIC} {TARGET}
I1231 23:59:59.512345    4769 horizontal.go:981] "Successfully rescaled" HPA="trial/h" currentReplicas=2 desiredReplicas=6
I1231 23:59:59.530000    4769 horizontal.go:1507] "Successfully updated status" HPA="trial/h"
E0101 00:00:00.000001    4769 horizontal.go:289] "Unhandled Error" err="failed to compute desired number of replicas based on x"
I0101 00:00:00.250000    4769 replica_set.go:1] "Proposing desired replicas" desiredReplicas=99
not a line of klog's
E0101 00:00:00.300000    4769 horizontal.go:289] "Unhandled Error" err="failed to query scale subresource for Deployment/x"
I0101 00:00:00.500000    4769 horizontal.go:907] "Proposing desired replicas" desiredReplicas=6 {METRIC} {TARGET}
I0101 00:00:00.500042    4769 horizontal.go:1008] "Decided not to scale" {TARGET} desiredReplicas=6 lastScaleTime=""
I0101 00:00:01.000000    4769 horizontal.go:981] "Successfully rescaled" HPA="trial/h" currentReplicas=40 desiredReplicas=24
"""
NEW_YEAR = 1_798_761_600.0  # 2027-01-01 00:00 UTC


def test_the_controllers_log_is_read_to_the_microsecond_and_over_new_year():
    """Only the HPA controller's lines, each with its words and the replicas it names."""
    lines = list(hpa_log.parse(LOG, NEW_YEAR - 60))
    assert [(line.t - NEW_YEAR, line.replicas) for line in lines if line.replicas] == [
        (pytest.approx(-0.5, abs=1e-6), {"desiredReplicas": 24}),
        (pytest.approx(-0.487655, abs=1e-6), {"currentReplicas": 2, "desiredReplicas": 6}),
        (pytest.approx(0.5, abs=1e-6), {"desiredReplicas": 6}),
        (pytest.approx(0.500042, abs=1e-6), {"desiredReplicas": 6}),
        (pytest.approx(1, abs=1e-6), {"currentReplicas": 40, "desiredReplicas": 24}),
    ]
    assert [line.words for line in lines if not line.replicas] == [
        "Successfully updated status",
        hpa_log.FAILED,
        "Unhandled Error",
    ]


def test_lines_become_syncs():
    """A proposal belongs to the outcome after it; a sync its bounds decide has none; one without a metric only where asked."""
    lines = list(hpa_log.parse(LOG, NEW_YEAR - 60))
    found = list(hpa_log.syncs(lines))
    assert [(sync.outcome.words, sync.proposal and sync.proposal.replicas["desiredReplicas"]) for sync in found] == [
        (hpa_log.RESCALED, 24),
        (hpa_log.KEPT, 6),
        (hpa_log.RESCALED, None),
    ]
    assert [sync.at - NEW_YEAR for sync in found] == pytest.approx([-0.5, 0.5, 1], abs=1e-6)
    assert [sync.after - NEW_YEAR for sync in found] == pytest.approx([0.5, 1, float("inf")], abs=1e-6)
    with_failures = list(hpa_log.syncs(lines, (*hpa_log.DECIDED, hpa_log.FAILED)))
    assert [sync.outcome.words for sync in with_failures] == [hpa_log.RESCALED, hpa_log.FAILED, hpa_log.KEPT, hpa_log.RESCALED]
    assert with_failures[1].proposal is None
    assert list(hpa_log.syncs(lines[:1])) == []  # a proposal without its outcome tells of no decision
