"""Which recommendation an HPA followed upwards, and how it went down: hand-made syncs, and the model's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from lab.model import hpa
from lab.model.hpa import Behavior, HpaSpec, Metric, Policy, Rules, State
from lab.model.hpa_log import Seen, Sync
from tests.scenarios.payments.measure.descent import descended
from tests.scenarios.payments.measure.up_window import count_syncs, period_factor

WINDOW = 60
UP = Rules(WINDOW, "Max", (Policy("Percent", 200, 30), Policy("Pods", 5, 30)))
DOWN = Rules(300, "Max", (Policy("Pods", 2, 60),))
SPEC = HpaSpec(3, 50, (Metric("External", "lag", "AverageValue", 250_000),), Behavior(UP, DOWN))
SYNC_S = 15


def sync(at, current, proposed, desired):
    """A sync of which only the decision is known."""
    return Sync(at, SPEC, current, desired, proposed, (Seen(current, None),))


def modelled(lags, spec=SPEC):
    """The syncs of the pure model that sees ``lags``, messages, one every 15 s, from 3 replicas."""
    state, current, found = State(), 3, []
    for number, lag in enumerate(lags):
        at = 1000.0 + number * SYNC_S
        decision, state = hpa.decide(spec, state, current, [hpa.external(lag)], at)
        found.append(Sync(at, spec, current, decision.desired, decision.proposals[0], (Seen(current, None),)))
        current = decision.desired
    return found


def test_a_sync_that_stays_while_the_highest_asks_for_more_follows_the_smallest():
    """Of two proposals above the replicas one comes within the window of a low one, the other after it."""
    found = count_syncs([sync(0, 3, 3, 3), sync(15, 3, 9, 3), sync(61, 3, 9, 9)], WINDOW)
    assert (found.asking.value, found.told_apart.value, found.stayed.value, found.raised.value) == (2, 1, 1, 0)
    assert (found.beyond.value, found.followed.value) == (1, 1)


def test_a_controller_that_took_the_highest_would_be_seen():
    """Going up at once is counted against the smallest."""
    found = count_syncs([sync(0, 3, 3, 3), sync(15, 3, 9, 9)], WINDOW)
    assert (found.told_apart.value, found.stayed.value, found.raised.value) == (1, 0, 1)


def test_a_step_beyond_the_smallest_is_not_followed():
    """Once the whole window asks for more, the smallest of it is the most there may be."""
    found = count_syncs([sync(0, 3, 3, 3), sync(61, 3, 5, 3), sync(70, 3, 9, 9)], WINDOW)
    assert (found.beyond.value, found.followed.value) == (1, 0)


def test_a_sync_that_the_policies_held_is_no_step():
    """Where a period has had its pods the HPA stays, whatever the window says: neither rule is shown by it."""
    found = count_syncs([sync(0, 3, 9, 9), sync(61, 9, 20, 9)], WINDOW)
    assert (found.asking.value, found.beyond.value, found.followed.value) == (2, 0, 0)


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=40))
def test_the_model_takes_the_smallest_whatever_the_lag(lags):
    """The pure model, which decides as the real controller does, never goes up where the smallest says stay."""
    found = count_syncs(modelled(lags), WINDOW)
    assert found.raised.value == 0
    assert found.told_apart.value == found.stayed.value
    assert found.told_apart.value + found.beyond.value <= found.asking.value
    assert found.followed.value == found.beyond.value


@pytest.mark.parametrize(("syncs", "most"), [(1, 3), (3, 3), (4, 9)])
def test_a_spike_shorter_than_the_window_scales_nothing(syncs, most):
    """The text's own behavior in the model: lag worth 20 pods for so many syncs, and none before or after.

    Four are enough, since the last low recommendation is then 60 s old, and the window's edge does not count.
    """
    lags = [100] * 5 + [5000] * syncs + [100] * 10
    assert max(one.desired for one in modelled(lags)) == most


def test_percent_200_triples_and_does_not_double():
    """3 replicas and no end of lag: 9 after the first step, 8 by the policy of 5 pods, 6 were it a doubling."""
    behavior = Behavior(Rules(0, "Max", UP.policies), DOWN)
    spec = HpaSpec(SPEC.min_replicas, SPEC.max_replicas, SPEC.metrics, behavior)
    assert [one.desired for one in modelled([100_000] * 4, spec)] == [9, 9, 27, 27]


def test_the_stride_is_the_first_that_a_policy_limits():
    """A step that got all it asked for shows no policy; one within another's period is part of it."""
    steps = [sync(0, 3, 5, 5), sync(100, 3, 18, 9), sync(115, 9, 24, 9), sync(140, 9, 24, 24)]
    assert period_factor(steps, 30) == 3
    assert period_factor([sync(0, 4, 50, 7), sync(15, 7, 50, 8), sync(40, 8, 50, 24)], 30) == 2


def test_a_step_within_the_period_of_another_begins_none():
    """What the policies allow it is counted from replicas that are no longer there."""
    chained = [sync(0, 4, 6, 6), sync(20, 6, 8, 8), sync(40, 8, 50, 12), sync(200, 12, 50, 36)]
    assert period_factor(chained, 30) == 3


def test_without_a_limit_there_is_no_stride():
    """No data."""
    with pytest.raises(NoData, match="never in the way"):
        period_factor([sync(0, 3, 5, 5), sync(15, 5, 5, 5)], 30)


def test_two_steps_of_two_pods_a_minute_apart():
    """Low for 300 s before the first, and no more than two in any minute."""
    found = descended([sync(0, 9, 9, 9), sync(60, 9, 3, 9), sync(301, 9, 3, 7), sync(361, 7, 3, 5)])
    assert (found.steps.value, found.window_s.value, found.early.value, found.least_low_s.value) == (2, 300, 0, 301)
    assert (found.allowed.value, found.period_s.value, found.most_pods.value) == (2, 60, 2)


def test_a_controller_that_went_down_early_or_fast_would_be_seen():
    """A step 100 s after the last proposal that asked for more, and three pods within a minute."""
    early = descended([sync(0, 9, 9, 9), sync(100, 9, 3, 7)])
    assert (early.early.value, early.least_low_s.value) == (1, 100)
    fast = descended([sync(0, 9, 9, 9), sync(301, 9, 3, 7), sync(340, 7, 3, 6)])
    assert (fast.early.value, fast.most_pods.value) == (0, 3)


@given(st.lists(st.sampled_from([0, 300, 1_000, 3_000]), min_size=40, max_size=120))
def test_the_hpas_model_goes_down_late_and_slowly(lags):
    """Whatever the lag: the pinned controller's arithmetic never goes before its window is over, nor faster than its policy."""
    try:
        found = descended(modelled(lags))
    except NoData:
        return
    assert found.early.value == 0
    assert found.most_pods.value <= found.allowed.value


def test_a_group_that_never_went_down_has_no_descent():
    """And neither has one without syncs."""
    with pytest.raises(NoData, match="never went down"):
        descended([sync(0, 3, 3, 3)])
    with pytest.raises(NoData, match="no HPA with a window down"):
        descended([])
