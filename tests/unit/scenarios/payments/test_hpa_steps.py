"""Which recommendation an HPA followed upwards, and how it went down: hand-made syncs, and the model's own."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from lab.model import hpa
from lab.model.hpa import Behavior, HpaSpec, Metric, Policy, Rules, State
from lab.model.hpa_log import Seen, Sync
from tests.scenarios.payments.measure.windows import count_syncs, descended, period_factor

WINDOW = 60
UP = Rules(WINDOW, "Max", (Policy("Percent", 200, 30), Policy("Pods", 5, 30)))
DOWN = Rules(300, "Max", (Policy("Pods", 2, 60),))
SPEC = HpaSpec(3, 50, (Metric("External", "lag", "AverageValue", 250_000),), Behavior(UP, DOWN))
SYNC_S = 15


def sync(at, current, proposed, desired):
    """A sync of which only the decision is known."""
    return Sync(at, SPEC, current, desired, proposed, (Seen(current, None),))


def modelled(lags):
    """The syncs of the pure model that sees ``lags``, messages, one every 15 s, from 3 replicas."""
    state, current, found = State(), 3, []
    for number, lag in enumerate(lags):
        at = 1000.0 + number * SYNC_S
        decision, state = hpa.decide(SPEC, state, current, [hpa.external(lag)], at)
        found.append(Sync(at, SPEC, current, decision.desired, decision.proposals[0], (Seen(current, None),)))
        current = decision.desired
    return found


@pytest.mark.parametrize(
    ("syncs", "counts"),
    [
        ([(0, 3, 3, 3), (15, 3, 9, 3), (61, 3, 9, 9)], (2, 1, 1, 0, 1, 1)),  # within the window of a low one, and after it
        ([(0, 3, 3, 3), (15, 3, 9, 9)], (1, 1, 0, 1, 0, 0)),  # a controller that took the highest
        ([(0, 3, 3, 3), (61, 3, 5, 3), (70, 3, 9, 9)], (2, 0, 0, 0, 1, 0)),  # beyond the smallest
        ([(0, 3, 9, 9), (61, 9, 20, 9)], (2, 1, 0, 1, 0, 0)),  # the last is held by the policies: neither rule is shown
    ],
)
def test_syncs_are_sorted_by_the_rule_that_they_follow(syncs, counts):
    """Of those that ask for more: told apart, stayed, raised, beyond the window's smallest, and of these no further."""
    found = count_syncs([sync(*one) for one in syncs], WINDOW)
    names = ("asking", "told_apart", "stayed", "raised", "beyond", "followed")
    assert tuple(found.values[name] for name in names) == counts


@given(st.lists(st.integers(0, 20_000), min_size=1, max_size=40))
def test_the_model_takes_the_smallest_whatever_the_lag(lags):
    """The pure model, which decides as the real controller does, never goes up where the smallest says stay."""
    found = count_syncs(modelled(lags), WINDOW)
    assert found.raised.value == 0
    assert found.told_apart.value == found.stayed.value
    assert found.told_apart.value + found.beyond.value <= found.asking.value
    assert found.followed.value == found.beyond.value


@pytest.mark.parametrize(
    ("syncs", "factor"),
    [
        ([(0, 3, 5, 5), (100, 3, 18, 9), (115, 9, 24, 9), (140, 9, 24, 24)], 3),  # the first that a policy limits
        ([(0, 4, 50, 7), (15, 7, 50, 8), (40, 8, 50, 24)], 2),  # a step within another's period is part of it
        ([(0, 4, 6, 6), (20, 6, 8, 8), (40, 8, 50, 12), (200, 12, 50, 36)], 3),  # and begins none
    ],
)
def test_the_stride_is_of_the_first_period_that_a_policy_limits(syncs, factor):
    """A step that got all it asked for shows no policy."""
    assert period_factor([sync(*one) for one in syncs], 30) == factor
    with pytest.raises(NoData, match="never in the way"):
        period_factor([sync(0, 3, 5, 5), sync(15, 5, 5, 5)], 30)


@pytest.mark.parametrize(
    ("syncs", "found"),
    [
        ([(0, 9, 9, 9), (60, 9, 3, 9), (301, 9, 3, 7), (361, 7, 3, 5)], (2, 0, 301, 2)),
        ([(0, 9, 9, 9), (100, 9, 3, 7)], (1, 1, 100, 2)),  # 100 s after the last proposal that asked for more
        ([(0, 9, 9, 9), (301, 9, 3, 7), (340, 7, 3, 6)], (2, 0, 301, 3)),  # three pods within a minute
    ],
)
def test_a_way_down_is_early_or_fast_by_the_window_and_the_policy(syncs, found):
    """Low for 300 s before the first step, and no more than two pods in any minute; none without a step, or a sync."""
    way = descended([sync(*one) for one in syncs])
    assert tuple(way.values[name] for name in ("steps", "early", "least_low_s", "most_pods")) == found
    assert (way.window_s.value, way.allowed.value, way.period_s.value) == (300, 2, 60)
    for none, why in (([sync(0, 3, 3, 3)], "never went down"), ([], "no HPA with a window down")):
        with pytest.raises(NoData, match=why):
            descended(none)


@given(st.lists(st.sampled_from([0, 300, 1_000, 3_000]), min_size=40, max_size=120))
def test_the_hpas_model_goes_down_late_and_slowly(lags):
    """Whatever the lag: the pinned controller's arithmetic never goes before its window is over, nor faster than its policy."""
    try:
        found = descended(modelled(lags))
    except NoData:
        return
    assert found.early.value == 0
    assert found.most_pods.value <= found.allowed.value
