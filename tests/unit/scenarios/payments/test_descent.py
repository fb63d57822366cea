"""How an HPA went down: hand-made syncs, and the model's own, which holds the window and the policy by construction."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.errors import NoData
from tests.scenarios.payments.measure.descent import descended
from tests.unit.scenarios.payments.test_up_window import modelled, sync


def test_two_steps_of_two_pods_a_minute_apart():
    """Low for 300 s before the first, and no more than two in any minute."""
    found = descended([sync(0, 9, 9, 9), sync(60, 9, 3, 9), sync(301, 9, 3, 7), sync(361, 7, 3, 5)])
    assert (found.steps.value, found.window_s.value, found.early.value, found.least_low_s.value) == (2, 300, 0, 301)
    assert (found.allowed.value, found.period_s.value, found.most_pods.value) == (2, 60, 2)


def test_a_controller_that_went_early_or_fast_would_be_seen():
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
