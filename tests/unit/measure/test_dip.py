"""Dips of which depth, length and area are known."""

import math
from itertools import pairwise

import pytest

from lab.measure.dip import dips, dry_time, median_step, rate_traces, worst_dip, worst_step

from . import built
from .built import assigned, given_up, receipt, report, sample

T = 1_700_000_000.0  # an epoch time as they are: a double keeps 0.2 µs of it
TIMES = {"settling": T, "driving": T + 1, "ended": T + 60}
UP = built.replicas((T, 2, 2), (T + 20, 4, 2), (T + 24, 4, 4))
DOWN = built.replicas((T, 4, 4), (T + 20, 2, 2))
JOINED = [report(T + 23.5, "c", "subscribed"), assigned(T + 24.5, "c", 2), assigned(T + 30, "c", 3)]


def flow(*steps, end=60, partitions=4):
    """Receipts of (from, messages/s, pods): each rate lasts until the next, spread evenly over pods and partitions."""
    rows = []
    for (start, rate, pods), (until, *_) in pairwise([*steps, (end, 0, 0)]):
        each = rate * (until - start) / max(pods, partitions)
        several = [(f"pod-{n % pods}", n % partitions) for n in range(max(pods, partitions))]
        rows += [receipt(name, T + start, T + until, each, partition) for name, partition in several if each]
    return rows


def group(folder, done, moves=UP, reports=JOINED, dry=(), lag=5000, since=0, until=60, **more):
    """The record of a group whose four partitions have work, but the last one in the time ``dry``.

    Lag is sampled from ``since`` to ``until``.
    """
    times = [half / 2 for half in range(2 * since, 2 * until + 1)]
    samples = [
        sample(T + t, "kafka_consumergroup_lag", 0 if n == 3 and dry and dry[0] <= t <= dry[1] else lag, partition=str(n))
        for t in times
        for n in range(4)
    ]
    tables = {"transitions": moves} if moves else {}
    return built.record(folder, times=TIMES, receipts=done, group_events=reports, samples=samples, **tables, **more)


def only(folder, done, **more):
    """The dip of the one step."""
    (found,) = dips(group(folder, done, **more))
    return found


def test_a_step_that_costs_nothing_has_no_dip(tmp_path):
    """The rate doubles with the pods: nothing falls, nothing is forgone, nothing has to recover."""
    found = only(tmp_path, flow((0, 200, 2), (24.5, 400, 4)))
    assert (found.kind, found.t, found.until) == ("up", T + 20, T + 35)  # 5 s after the last handover
    assert (found.before, found.after, found.moved, found.settle_s) == (2, 4, 0, pytest.approx(10))
    assert (found.depth, found.recovery_s, found.forgone, found.noise) == pytest.approx((0, 0, 0, 0), abs=1e-6)
    assert (found.judged_s, found.dry_s) == pytest.approx((15, 0), abs=0.06)


@pytest.mark.parametrize(("start", "cause"), [(24, 23.5), (26, 23.5)], ids=["in a rebalance", "between two"])
def test_a_trough_counts_wherever_it_lies(tmp_path, start, cause):
    """Half of 200/s for 2 s: the depth of the second, what is forgone, and the time from the member that subscribed."""
    found = only(tmp_path, flow((0, 200, 2), (start, 100, 2), (start + 2, 400, 4)))
    assert (found.reference, found.depth) == pytest.approx((200, 0.5))
    assert found.recovery_s == pytest.approx(start + 2.25 - cause, abs=0.06)  # from x + 0.3 on a second has 95 % again
    assert found.forgone == pytest.approx(100 * 1.5 + 100 * (1 / 6), rel=0.03)


def test_a_partition_without_work_is_no_dip(tmp_path):
    """Its pod has less to do, so the seconds are not judged; nor is what is only done and not committed work."""
    done = flow((0, 200, 2), (26, 100, 2), (28, 400, 4))
    found = only(tmp_path, done, dry=(26, 28))
    assert found.depth == pytest.approx(0)
    assert found.dry_s == pytest.approx(3.4, abs=0.6)
    quick, slow = ({"workload": {"commit_interval_ms": ms}} for ms in (1000, 5000))
    assert only(tmp_path / "quick", done, lag=100, inputs=quick).depth == pytest.approx(0.5)  # 50/s of each in 1 s and a poll
    assert only(tmp_path / "slow", done, lag=100, inputs=slow).depth is None  # 250 in 5 s, and 125 at the least


@pytest.mark.parametrize(("rate", "depth"), [(300, 0.0), (150, 0.5)])
def test_a_pod_that_goes_is_no_dip(tmp_path, rate, depth):
    """One of four is Ready no more: three quarters are all that the others can do."""
    moves = [*built.replicas((T, 3, 3), (T + 20, 4, 3), (T + 22, 4, 4), (T + 26, 4, 3))]
    assert only(tmp_path, flow((0, 400, 4), (26.2, rate, 3)), moves=moves).depth == pytest.approx(depth, abs=1e-6)


@pytest.mark.parametrize(("rate", "depth"), [(200, 0), (300, 0), (100, 0.5), (0, 1)])
def test_a_smaller_group_is_measured_by_what_it_can_do(tmp_path, rate, depth):
    """400/s by four, then two: half of it. What leaves works on for half a second."""
    found = only(tmp_path, flow((0, 400, 4), (20.5, rate, 2)), moves=DOWN, reports=[assigned(T + 21, "a", 2, 3)])
    assert (found.kind, found.depth) == ("down", pytest.approx(depth, abs=1e-6))


def test_pods_beyond_the_partitions_are_no_loss(tmp_path):
    """From six to four pods on four partitions the group does what it did."""
    moves = built.replicas((T, 6, 6), (T + 20, 4, 4))
    assert only(tmp_path, flow((0, 400, 4), (20.5, 300, 4)), moves=moves).depth == pytest.approx(0.25)


def test_it_is_back_when_it_stays_back(tmp_path):
    """Back after 2 s, and below again 3 s later within the same step; a group that stays down is never back."""
    done = flow((0, 200, 2), (24, 100, 2), (26, 200, 2), (29, 120, 2), (30, 400, 4))
    found = only(tmp_path, done)
    assert (found.depth, found.recovery_s) == pytest.approx((0.5, 30.2 - 23.5), abs=0.06)
    assert only(tmp_path / "down", flow((0, 200, 2), (24, 100, 2))).recovery_s == math.inf


def test_a_rate_that_sinks_slowly_is_not_back(tmp_path):
    """Back after a trough, it sinks twice by 3.5 %: no second is far below its own reference, and some below the trough's.

    That is a fall of its own, from when it begins until the rate is back at 95 % of the trough's reference.
    """
    done = flow((0, 200, 2), (24, 100, 2), (26, 200, 2), (28, 193, 2), (33, 186, 2), (40, 400, 4))
    found = only(tmp_path, done, reports=[*JOINED[:2], assigned(T + 38, "c", 3)])
    assert (found.reference, found.depth) == pytest.approx((200, 0.5))
    assert found.recovery_s == pytest.approx(40 - 32.45, abs=0.06)
    assert found.forgone == pytest.approx(199 + 91, rel=0.03)


@pytest.mark.parametrize(("at", "event", "back_s"), [(29, "subscribed", 2.66), (29, "joined", 2.96), (21, "subscribed", 2.96)])
def test_falls_that_lie_apart_are_judged_apart(tmp_path, at, event, back_s):
    """A quarter less for 1 s at the step, and for 2 s from 29.5 s on: that counts from the member that came, or from itself.

    What came before the group was back from the first fall is no cause of the second.
    """
    done = flow((0, 200, 2), (20, 150, 2), (21, 200, 2), (29.5, 150, 2), (31.5, 400, 4))
    found = only(tmp_path, done, reports=[report(T + at, "c", event), assigned(T + 30, "c", 2)])
    assert (found.depth, found.recovery_s) == (pytest.approx(0.25), pytest.approx(back_s, abs=0.06))
    assert found.forgone == pytest.approx(50 * (1 + 2), rel=0.15)


def test_a_trough_is_not_its_own_reference(tmp_path):
    """Half of the rate for longer than the look-back, then an eighth: seven eighths are lost, and not three quarters."""
    assert only(tmp_path, flow((0, 200, 2), (24, 100, 2), (31, 25, 2), (33, 400, 4))).depth == pytest.approx(0.875)


def test_a_slow_fall_is_seen_over_three_seconds(tmp_path):
    """A thirtieth less each second is no fall from one to the next, and 9 % in three."""
    found = only(tmp_path, flow((0, 200, 2), (24, 194, 2), (25, 188, 2), (26, 182, 2), (35, 400, 4)))
    assert (found.reference, found.depth) == pytest.approx((200, 0.09))


def test_a_fall_ends_with_the_work(tmp_path):
    """With other work, more than 3 s later, it goes on until the step ends, and not for good; it was never seen back."""
    found = only(tmp_path, flow((0, 200, 2), (24, 100, 2)), dry=(25.5, 32))
    assert (found.depth, found.recovery_s) == (pytest.approx(0.5), math.inf)
    assert found.forgone < 250


def test_a_step_that_is_hardly_seen_is_no_dip_of_0(tmp_path):
    """A second of it had work, and its last handover came 9 s later."""
    done, dry = flow((0, 200, 2), (24.5, 400, 4)), (21, 34)
    assert only(tmp_path, done, dry=dry).depth is None
    assert "too little of 1" in worst_dip(group(tmp_path / "worst", done, dry=dry)).depth.why


@pytest.mark.parametrize(("until", "depth"), [(22, None), (25, None), (26, 0), (60, 0)])
def test_a_step_of_which_samples_end_early_is_no_dip_of_0(tmp_path, until, depth):
    """Less than half of the 11 s until a second after its last handover was seen, though all that was seen is judged."""
    assert only(tmp_path, flow((0, 200, 2)), until=until).depth == (depth if depth is None else pytest.approx(depth))


def test_a_fall_belongs_to_the_step_in_which_it_begins(tmp_path):
    """Its deepest second comes in the next step, which has none of its own."""
    moves = [*UP[:2], *built.replicas((T + 25, 6, 2), (T + 25.5, 6, 6))]
    made = group(tmp_path, flow((0, 200, 2), (23.5, 150, 2), (25, 50, 2), (27, 400, 4)), moves=moves)
    first, second = dips(made)
    assert (first.until, first.depth, second.depth) == (T + 25, pytest.approx(0.75), pytest.approx(0))
    assert first.recovery_s == pytest.approx(27.4 - 23.5, abs=0.1)
    assert worst_dip(made).steps.value == 2


def test_a_small_fall_before_a_step_hides_no_deep_one_in_it(tmp_path):
    """It begins in no step, and no second is back at its reference until the trough in the step is over."""
    found = only(tmp_path, flow((0, 200, 2), (18.5, 186, 2), (24, 100, 2), (26, 400, 4)))
    assert (found.reference, found.depth, found.noise) == pytest.approx((200, 0.5, 0.07), abs=0.005)
    assert found.recovery_s == pytest.approx(26.25 - 20, abs=0.1)


def test_it_is_back_when_it_is_seen_so(tmp_path):
    """A partition has no work from 26 s to 32 s. The group still does half until 33 s, and it is back after that."""
    found = only(tmp_path, flow((0, 200, 2), (24, 100, 2), (33, 400, 4)), dry=(26, 32))
    assert (found.depth, found.recovery_s) == (pytest.approx(0.5), pytest.approx(33.3 - 23.5, abs=0.3))


def test_noise_is_what_falls_while_nothing_happens(tmp_path):
    """A fifth less at 45 s, long after the step: the record's noise, and none of the step's depth."""
    found = only(tmp_path, flow((0, 200, 2), (24.5, 400, 4), (45, 320, 4), (47, 400, 4)))
    assert (found.depth, found.noise) == pytest.approx((0, 0.2), abs=1e-6)


# Half seconds of rolling steps of 4 to 24 pods on 24 partitions, from real records: (first, messages, Ready pods, depth, s, s).
BETWEEN = [103, 103, 119, 139, 215, 260, 297, 183, 55, 56, 80, 113, 231, 252, 238, 299]
WHOLE = [299, 331, 407, 438, 416, 543, 581, 591, 436, 285, 369, 588]


@pytest.mark.parametrize(
    ("counts", "ready", "handovers_at", "depth"),
    [
        (BETWEEN, [4, 4, 4, 5, 5, 5, 5, 8, 8, 9, 9, 14, 15, 19, 24, 24], [3, 5, 6.5, 7.5], 0.80),
        (WHOLE, [8, 8, 8, 8, 8, 9, 16, 21, 24, 24, 24, 24], [0.2, 1, 3, 3.5], 0.44),
    ],
    ids=["a trough between two rebalances", "one rebalance of 7 s"],
)
def test_troughs_of_real_groups(tmp_path, counts, ready, handovers_at, depth):
    """Messages in each half second of two real groups that an autoscaler took to 24 pods."""
    steps = [(10 + n / 2, 2 * count, 4) for n, count in enumerate(counts)]
    moves = built.replicas((T, 4, 4), (T + 11, 24, 4), *((T + 11 + n / 2, 24, max(4, pods)) for n, pods in enumerate(ready)))
    done = flow((0, 2 * counts[0], 4), *steps, end=10 + len(counts) / 2)
    found = only(
        tmp_path,
        done,
        moves=moves,
        reports=[assigned(T + 10 + at, "a", 0) for at in handovers_at],
        dry=(10 + len(counts) / 2, 60),
    )
    assert found.depth == pytest.approx(depth, abs=0.03)


DECREED = {"t": T + 20, "kind": "up", "before": 2, "after": 3, "settled": T + 21, "until": T + 26}
HOLE = flow((0, 200, 2), (21, 0, 2), (21.5, 200, 2))
CONTROL = DECREED | {"kind": "control", "after": 2}


def test_seconds_before_the_first_sample_are_neither_judged_nor_dry(tmp_path):
    """Those that begin within a second of the step, before it and after it, begin before the first sample."""
    (early,) = decreed(tmp_path / "early")
    (late,) = decreed(tmp_path / "late", since=21)
    assert (early.dry_s, late.dry_s) == (0, 0)
    assert early.judged_s - late.judged_s == pytest.approx(2, abs=0.06)


def decreed(folder, done=HOLE, *steps, **more):
    """The dips of decreed steps, whose record needs no watch of the replicas."""
    return dips(group(folder, done, moves=(), steps=steps or (DECREED,), **more))


def test_steps_of_a_kind_have_a_median_and_a_worst(tmp_path):
    """Of a kind: the middle, and the most; a step without a second of work is counted, and is in neither."""
    (hole,) = decreed(tmp_path)
    assert (hole.until, hole.depth, hole.forgone) == (T + 26, pytest.approx(0.5), pytest.approx(100, rel=0.01))
    assert hole.recovery_s == pytest.approx(2.45, abs=0.06)  # from the step to the end of 21.45 to 22.45
    later = DECREED | {"t": T + 30, "settled": T + 31, "until": T + 36}
    several = decreed(
        tmp_path / "several", HOLE, DECREED, later, DECREED | later | {"t": T + 40, "until": T + 46}, dry=(38, 60)
    )
    middle, worst = median_step(several, "up"), worst_step(several, "up")
    assert (middle.steps.value, worst.steps.value, worst.unjudged.value) == (2, 2, 1)
    assert (middle.depth.value, worst.depth.value) == pytest.approx((0.25, 0.5))
    assert worst_step(several).depth.value == pytest.approx(0.5)
    assert dry_time(several).value == pytest.approx(5.05, abs=0.06)
    assert "no down step is judged: there is none" in median_step(several, "down").depth.why
    assert "too little of 1" in worst_step(several[2:], "up").depth.why


def test_traces_are_shares_of_the_reference(tmp_path):
    """The hole of half a second is half of each second that has it whole."""
    traces = rate_traces(group(tmp_path, HOLE, moves=(), steps=(DECREED,)))
    assert set(traces["kind"]) == {"up"}
    assert (traces["share"].min(), traces["share"].max()) == pytest.approx((0.5, 1))
    assert (traces["t"].min(), traces["t"].max()) == pytest.approx((-1.5, 5.5))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"moves": UP[:1]}, "never changed"),
        ({"done": []}, "no receipts"),
        ({"dry": (0, 60)}, "too little of 1 had a rate before it and work"),
        ({"done": flow((31, 200, 2))}, "too little of 1"),
        ({"done": flow((0, 200, 2), (10, 0, 2), (45, 200, 2)), "dry": (8, 15)}, "too little of 1"),
    ],
)
def test_without_a_step_or_work_there_is_no_data(tmp_path, change, why):
    """And never a pass."""
    assert why in worst_dip(group(tmp_path, **{"done": HOLE, "reports": JOINED[:1]} | change)).depth.why


def test_without_samples_of_lag_there_is_no_data(tmp_path):
    """No work is known."""
    record = built.record(tmp_path, times=TIMES, receipts=HOLE, group_events=[], samples=[], steps=(DECREED,))
    assert "kafka_consumergroup_lag" in worst_dip(record).depth.why


OWNED = [assigned(T - 9, "a", 0, 1), assigned(T - 9, "b", 2, 3)]
EAGER = [given_up(T + 20.5, "a", 0, 1), given_up(T + 20.6, "b", 2, 3)]
EAGER += [assigned(T + 21, "a", 0), assigned(T + 21.1, "b", 2, 3), assigned(T + 21.2, "c", 1)]


@pytest.mark.parametrize(
    ("events", "moved", "settle"),
    [
        ([], 0, None),
        (EAGER, 1, 1.2),
        ([given_up(T + 20.5, "a", 1), assigned(T + 22, "c", 1)], 1, 2.0),
        ([assigned(T + 22, "c", 0), assigned(T + 22.5, "b")], 1, 2.5),
        ([given_up(T + 20.5, "a", 0, 1, event="lost")], 2, 0.5),
        ([assigned(T + 19, "c", 1), given_up(T + 21.5, "a", 1, event="lost")], 0, 1.5),
        ([assigned(T + 26.5, "c", 1)], 0, None),
        ([given_up(T + 19.9, "a", 1), assigned(T + 21, "a", 1)], 0, 1.0),
    ],
)
def test_partitions_are_followed_to_their_owners(tmp_path, events, moved, settle):
    """Moved are those that end with another pod or none. The pods of a control step never join: what changes is not theirs."""
    (found,) = decreed(tmp_path, reports=[*OWNED, *events])
    assert (found.moved, found.settle_s) == (moved, None if settle is None else pytest.approx(settle, abs=1e-6))
    (control,) = decreed(tmp_path / "control", HOLE, CONTROL, reports=[*OWNED, *events])
    assert (control.kind, control.settle_s, control.moved) == ("control", None, moved)
