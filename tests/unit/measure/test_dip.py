"""Dips of which depth, length and area are known."""

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.measure.dip import dips, dry_partitions, median_step, worst_step
from lab.measure.throughput import GRID_S, Throughput

from . import built
from .built import assigned, given_up, receipt, sample

T = 1_700_000_000.0  # an epoch time as they are: a double keeps 0.2 µs of it
UP = {"t": T, "kind": "up", "before": 2, "after": 3, "settled": T + 1, "until": T + 6}
DOWN = UP | {"kind": "down", "before": 4, "after": 2}
STEADY = [receipt("a", T - 3, T + 1.02, 402)]
HOLE = [*STEADY, receipt("a", T + 1.52, T + 6, 448)]  # 100/s, and nothing for half a second
LAGGED = [sample(T + 1, "kafka_consumergroup_lag", 50, partition="0")]
OWNED = [assigned(T - 9, "a", 0, 1), assigned(T - 9, "b", 2, 3)]


def step(folder, given=UP, receipts=HOLE, events=OWNED, samples=LAGGED):
    """The dip of one decreed step."""
    record = built.record(folder, steps=[given], receipts=receipts, group_events=events, samples=samples)
    (found,) = dips(record)
    return found


def test_a_hole_has_its_depth_length_and_area(tmp_path):
    """Half a second without a message: half of a second's window, all of a fifth's, and 50 messages forgone."""
    found = step(tmp_path)
    assert (found.baseline, found.after_rate) == pytest.approx((100, 100))
    assert (found.depth_1s, found.depth_200ms) == pytest.approx((0.5, 1.0))
    assert found.recovery_s == pytest.approx(2.35)  # windows from 0.10-1.10 to 1.45-2.45 miss more than a twentieth
    assert found.forgone == pytest.approx(50)
    assert found.cleared == pytest.approx(0, abs=1e-3)


def test_a_gain_is_no_dip(tmp_path):
    """100/s before, 150/s from the first moment on: nothing forgone; 50/s cleared in all windows."""
    found = step(tmp_path, receipts=[receipt("a", T - 3, T, 300), receipt("a", T, T + 6, 900)])
    assert (found.depth_1s, found.depth_200ms, found.recovery_s, found.forgone) == pytest.approx((0, 0, 0, 0), abs=1e-6)
    assert found.after_rate == pytest.approx(150)
    assert found.cleared == pytest.approx(50 * (5.8 + GRID_S))


def test_a_group_that_stays_down_never_recovers(tmp_path):
    """The last window is still below: no length, however the step is cut."""
    found = step(tmp_path, receipts=STEADY)
    assert found.recovery_s == math.inf
    assert found.depth_1s == pytest.approx(1)
    assert found.after_rate == 0


@pytest.mark.parametrize(
    ("down", "rate", "baseline", "depth"),
    [
        (DOWN, 60, 60, 0.0),
        (DOWN, 120, 100, 0.0),
        (DOWN, 20, 50, 0.6),
        (DOWN, 0, 50, 1.0),
        (DOWN | {"before": 8, "after": 4}, 50, 100, 0.5),
    ],
)
def test_a_smaller_group_is_measured_by_what_it_can_do(tmp_path, down, rate, baseline, depth):
    """100/s by four, then two, on 4 partitions: the rate at the end, but from the half that two did to the whole."""
    found = step(tmp_path, down, [receipt("a", T - 3, T, 300), receipt("b", T, T + 6, 6 * rate)])
    assert found.baseline == pytest.approx(baseline)
    assert found.depth_1s == pytest.approx(depth, abs=1e-6)


EAGER = [given_up(T + 0.5, "a", 0, 1), given_up(T + 0.6, "b", 2, 3)]
EAGER += [assigned(T + 1, "a", 0), assigned(T + 1.1, "b", 2, 3), assigned(T + 1.2, "c", 1)]


@pytest.mark.parametrize(
    ("events", "moved", "touched", "settle"),
    [
        ([], 0, 0, None),
        (EAGER, 1, 4, 1.2),
        ([given_up(T + 0.5, "a", 1), assigned(T + 2, "c", 1)], 1, 1, 2.0),
        ([assigned(T + 2, "c", 0), assigned(T + 2.5, "b")], 1, 1, 2.5),
        ([given_up(T + 0.5, "a", 0, 1, event="lost")], 2, 2, 0.5),
        ([assigned(T - 1, "c", 1), given_up(T + 1.5, "a", 1, event="lost")], 0, 1, 1.5),
        ([assigned(T + 6.5, "c", 1)], 0, 0, None),
        ([given_up(T - 0.1, "a", 1), assigned(T + 1, "a", 1)], 0, 1, 1.0),
    ],
)
def test_partitions_are_followed_to_their_owners(tmp_path, events, moved, touched, settle):
    """Moved are those that end with another pod or none, touched those handed over at all."""
    found = step(tmp_path, events=[*OWNED, *events])
    assert (found.moved, found.touched) == (moved, touched)
    assert found.settle_s == (None if settle is None else pytest.approx(settle, abs=1e-6))
    # The pods of a control step never join, so what the group does meanwhile is not theirs.
    control = step(tmp_path, UP | {"kind": "control", "after": 2}, events=[*OWNED, *events])
    assert (control.kind, control.settle_s, control.moved) == ("control", None, moved)


def test_dry_partitions_are_counted(tmp_path):
    """Two partitions ran dry within the step, one of them twice; one only before it."""
    points = [(-1, 3, 0), (1, 0, 0), (1.5, 0, 0), (2, 1, 0), (2, 2, 9)]
    samples = [sample(T + at, "kafka_consumergroup_lag", value, partition=str(number)) for at, number, value in points]
    found = step(tmp_path, samples=samples)
    assert found.dry == 2
    assert dry_partitions([found, found]).value == 4


def test_saturation_is_not_told_without_a_sample(tmp_path):
    """No sample within the step is no proof of lag; an autoscaler's trial has no step that was decreed."""
    found = step(tmp_path, samples=[sample(T - 1, "kafka_consumergroup_lag", 5, partition="0")])
    assert found.dry is None
    assert "sample" in dry_partitions([found]).why
    assert "no step" in dry_partitions(dips(built.record(tmp_path, receipts=HOLE, samples=LAGGED))).why


@pytest.mark.parametrize(
    ("given", "receipts"), [(UP, [receipt("a", T, T + 6, 600)]), (UP | {"until": T + 0.5}, HOLE)], ids=["idle", "short"]
)
def test_no_baseline_is_no_dip(tmp_path, given, receipts):
    """Nothing consumed before the step, or no room for a window: not a number, which no summary passes over."""
    found = step(tmp_path, given, receipts)
    assert math.isnan(found.depth_1s)
    for one in (median_step([found], "up"), worst_step([found], "up")):
        assert "nothing was consumed before it, or it is too short" in one.depth_1s.why


def test_steps_of_a_kind_have_a_median_and_a_worst(tmp_path):
    """Of a kind: the middle, and the most; of what was cleared the least."""
    hole = step(tmp_path)
    gain = [receipt("a", T - 3, T, 300), receipt("a", T, T + 6, 900)]
    better = step(tmp_path, receipts=gain, events=[*OWNED, *EAGER])
    control = step(tmp_path, UP | {"kind": "control"}, STEADY)
    middle, worst = median_step([hole, better, control], "up"), worst_step([hole, better, control], "up")
    assert middle.steps.value == 2
    assert (middle.depth_1s.value, worst.depth_1s.value) == pytest.approx((0.25, 0.5))
    assert (middle.recovery_s.value, worst.recovery_s.value) == pytest.approx((2.35 / 2, 2.35))
    assert (worst.cleared.value, worst.moved.value, middle.settle_s.value) == pytest.approx((0, 1, 1.2), abs=1e-3)
    assert middle.after_rate.value == pytest.approx(125)
    assert (median_step([hole], "up").settle_s.value, worst_step([hole], "up").settle_s.value) == (None, None)
    assert median_step([hole], "down").depth_1s.why == worst_step([hole], "down").depth_1s.why == "no down step was decreed"


def table(rows):
    """Receipts of (start ms, length ms, count), a little after the whole millisecond, so that no window ends on one."""
    return pd.DataFrame([receipt("a", T + (at + 0.4) / 1000, T + (at + 0.4 + takes) / 1000, n) for at, takes, n in rows])


def share(one, start, end):
    """Messages of a receipt that were done from ``start`` to ``end``: the oracle."""
    if one.end == one.start:
        return one.count if start < one.start <= end else 0
    return one.count * max(0.0, min(one.end, end) - max(one.start, start)) / (one.end - one.start)


RECEIPTS = st.lists(st.tuples(st.integers(0, 3000), st.integers(0, 1500), st.integers(1, 1000)), min_size=1, max_size=12)


@given(RECEIPTS.map(table), st.integers(-500, 3000), st.integers(0, 3000), st.sampled_from([200, 1000]))
def test_the_rolling_rate_is_that_of_each_window_alone(receipts, start, length, window):
    """The cumulative line gives every window what the shares of all receipts in it add up to."""
    begin, wide = T + start / 1000, window / 1000
    starts, rates = Throughput(receipts).rolling(begin, begin + length / 1000, wide)
    assert len(starts) == max(0, (length - window) // 50 + 1)
    assert starts == pytest.approx([begin + GRID_S * k for k in range(len(starts))])
    alone = [sum(share(one, at, at + wide) for one in receipts.itertuples()) / wide for at in starts]
    assert rates == pytest.approx(alone, rel=1e-6, abs=0.1)  # 0.2 µs of an epoch time, in a receipt of 1 ms
