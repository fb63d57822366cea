"""Rebalances of a group whose every handover is known, what they cost, and what the scaling that caused them cleared."""

import pytest

from lab.measure.rebalance import gained_wait, rebalance_spans, rebalances, round_count
from lab.measure.scaling_cost import rebalance_costs, scaling_cost
from tests.experiments.measure.repartition import forced_rebalance
from tests.experiments.measure.steps import surplus_steps

from . import built, whole
from .built import assigned, given_up, lags, receipt, sample
from .conftest import report

SETTLING = [assigned(4.0, "a", 0, 1), assigned(4.5, "b", 2, 3)]
FIRST = [given_up(20.0, "a", 0), assigned(20.8, "b"), assigned(21.7, "c", 0)]
SECOND = [given_up(23.0, "b", 2, 3, event="lost"), assigned(23.25, "c", 2, 3)]
EVENTS = [*SETTLING, *SECOND, *FIRST, report(20.1, "a", "commit_failed", partitions=[0])]
TIMES = {"settling": 0, "driving": 10, "ended": 100}


@pytest.fixture
def record(tmp_path):
    """A group that settles, then rebalances twice."""
    return built.record(tmp_path, times=TIMES, group_events=EVENTS)


def test_rebalances_are_runs_without_a_pause(record):
    """Handovers up to a second apart are one rebalance, 1.3 s apart two; settling is none."""
    found = rebalances(record)
    assert found.rebalances.value == 2
    assert (found.median_s.value, found.longest_s.value, found.total_s.value) == pytest.approx((0.975, 1.7, 1.95))
    assert (found.revoked.value, found.assigned.value, found.commits_refused.value) == (3, 3, 1)


@pytest.mark.parametrize(("times", "counts"), [(TIMES, (2, 3, 3, 1, 0)), ({"settling": 0, "driving": 10}, (3, 4, 4, 2, 1))])
def test_the_groups_end_is_no_rebalance(tmp_path, times, counts):
    """What is handed over, and refused, once the trial has ended; a record that never ended has it all."""
    over = [report(102, "b", "left"), given_up(103, "a", 0), assigned(103.4, "c", 0), report(103.5, "a", "commit_failed")]
    ended = built.record(tmp_path, times=times, group_events=[*EVENTS, *over])
    found = rebalances(ended)
    seen = (found.rebalances, found.revoked, found.assigned, found.commits_refused, round_count(ended))
    assert tuple(one.value for one in seen) == counts


def test_rebalances_can_be_asked_of_a_stretch(record):
    """All of them with the settling, or those between two times."""
    assert rebalance_spans(record) == [(4.0, 4.5), (20.0, 21.7), (23.0, 23.25)]
    assert rebalance_spans(record, 20.5, 23.1) == [(20.8, 21.7), (23.0, 23.0)]
    assert rebalance_spans(record, 50) == []


def test_giving_up_nothing_is_no_handover(tmp_path):
    """A member without partitions that is told to give them up changes nothing; being assigned none ends its rebalance."""
    idle = built.record(tmp_path, group_events=[given_up(20.0, "a"), assigned(30.0, "a")])
    assert [change.t for change in idle.handovers] == [30.0]


def test_a_quiet_group_has_no_length_of_a_rebalance(tmp_path):
    """No rebalance is a count of 0, and no median; a refused commit of the settling does not count. Not begun is no data."""
    quiet = built.record(tmp_path, times=TIMES, group_events=[*SETTLING, report(5.0, "a", "commit_failed")])
    found = rebalances(quiet)
    assert (found.rebalances.value, found.total_s.value, found.commits_refused.value) == (0, 0, 0)
    assert (found.median_s.value, found.longest_s.value) == (None, None)
    assert "driving" in rebalances(built.record(tmp_path, times={"settling": 0}, group_events=EVENTS)).rebalances.why


# "a" gains 2 and 3 beside 0, and begins them 0.5 and 8 s later; 1 was its own in a batch before. "b" goes; "n" is new.
OWNED = [assigned(4.0, "a", 0, 1), assigned(4.0, "b", 2, 3), assigned(5.0, "a", 4, owned=3)]
GAINED = [given_up(20.0, "b", 2, 3), assigned(20.5, "a", 2, 3, owned=4), assigned(21.0, "n", 5)]
BEGUN = [
    receipt("a", 19.9, 20.1, 9, 2),
    receipt("a", 20.9, 21.0, 9, 2),
    receipt("a", 28.4, 28.5, 9, 3),
    receipt("n", 50, 51, 9, 5),
]


def waited(folder, events=GAINED, receipts=BEGUN, dry=(), samples=(10.0, 20.4, 20.6, 90.0)):
    """How long partitions wait of which ``dry`` have no work after 20.5, sampled then."""
    lag = [
        sample(t, "kafka_consumergroup_lag", 0 if number in dry and t > 20.5 else 500, partition=str(number))
        for t in samples
        for number in range(6)
    ]
    return gained_wait(built.record(folder, times=TIMES, group_events=[*OWNED, *events], receipts=receipts, samples=lag))


def test_a_gained_partition_waits_for_its_first_receipt(tmp_path):
    """By the member that gained it, from its report on; a new member gains nothing beside others, and settling is none."""
    found = waited(tmp_path)
    assert (found.gained.value, found.unserved.value, found.idle.value) == (2, 0, 0)
    assert (found.longest_s.value, found.median_s.value) == pytest.approx((8.0, 4.25))


@pytest.mark.parametrize(
    ("more", "until"),
    [
        ([], 100.0),
        ([given_up(24.0, "a", 3)], 24.0),
        ([assigned(24.0, "b", 3)], 24.0),  # "a" died, and nobody heard it give anything up
    ],
)
def test_one_that_is_never_begun_waits_until_it_is_another_members(tmp_path, more, until):
    """It waited that long at least. What its next owner does counts for nothing, nor what it does itself later."""
    stale = [receipt("a", 40, 41, 9, 3)] if more else []
    done = [*BEGUN[:2], receipt("b", 30, 31, 9, 3), receipt("a", 19, 20, 9, 3), *stale]
    found = waited(tmp_path, [*GAINED, *more], done)
    assert (found.gained.value, found.unserved.value) == (2, 1)
    assert found.longest_s.value == pytest.approx(until - 20.5)


def test_a_partition_without_work_does_not_starve(tmp_path):
    """Nor one of which no sample tells; without a gain that has work, and for an eager group, there is no data."""
    found = waited(tmp_path, dry=(3,))
    assert (found.gained.value, found.idle.value, found.longest_s.value) == (1, 1, pytest.approx(0.5))
    why = "no member at work gained a partition with work, of "
    assert waited(tmp_path / "dry", dry=(2, 3)).gained.why == f"{why}2 that members at work gained"
    assert waited(tmp_path / "unseen", samples=(10.0, 20.4)).gained.why == f"{why}2 that members at work gained"
    eager = [given_up(20.0, "a", 0, 1, 4), given_up(20.0, "b", 2, 3), assigned(20.5, "a", 0, 1, 2, 3, 4)]
    assert waited(tmp_path / "eager", eager).gained.why == f"{why}0 that members at work gained"


# Pods of 100 messages/s; two until 20 s, four Ready from 22 s on. The lag is above one lagThreshold of 100 from 10 s to 40 s.
WORK = {"process_ms": "10", "concurrency": 1}
PROFILE, TOLD = built.profile(0, 100, (0, "baseline"), (5, "spike"))
MOVES = built.replicas((0, 2, 2), (20, 4, 2), (22, 4, 4))
LAG = lags({0: 0, 10: 1000, 20: 2000, 30: 1500, 40: 50, 50: 0})
AT_WORK = [sample(half / 2, "kafka_consumergroup_lag", 5000, partition="0") for half in range(100)]
JOINED = [report(22, "c", "subscribed"), given_up(22.5, "a", 1), assigned(23.5, "c", 1)]
SETTLED = [assigned(0, "a", 0, 1), assigned(0, "b", 2, 3)]
DRIVEN = {"settling": 0, "driving": 0, "ended": 60}


def group(folder, receipts, moves=MOVES, reports=JOINED, lag=LAG, times=DRIVEN, **inputs):
    """A record of these receipts."""
    given = {"profile": PROFILE["profile"], "workload": WORK, "policy": whole.scaled(100)} | inputs
    told = [*TOLD, *SETTLED, *reports]
    return built.record(folder, inputs=given, times=times, transitions=moves, receipts=receipts, group_events=told, samples=lag)


def test_what_ready_pods_could_do_and_did_not_is_the_cost(tmp_path):
    """Four pods that do 150/s for the 2.5 s of the rebalance miss 250/s of it; before and after they do what they can.

    Pods that have no work go without nothing, at 45 s, and what came before the first step up is none of its cost.
    """
    done = [receipt("a", 0, 22, 4400), receipt("a", 22, 24.5, 375), receipt("a", 24.5, 40, 6200)]
    others = [given_up(45, "a", 0), assigned(46, "b", 0), given_up(12, "a", 0), assigned(13, "b", 0)]
    found = scaling_cost(group(tmp_path, done, reports=[*JOINED, *others]))
    (only,) = found.each
    assert (only.t, only.until, only.before, only.after) == (22, 24.5, 4, 4)
    assert found.forgone.value == pytest.approx(250 * 2.35)  # windows of 200 ms lie wholly within
    assert found.unowned_s.value == pytest.approx(1)
    # From 20 s to 40 s: 400 at 200/s, 375 in the rebalance, 6,200 after it; the two pods of before could do 4,000.
    assert found.cleared.value == pytest.approx(400 + 375 + 6200 - 4000)
    assert found.share.value == pytest.approx(250 * 2.35 / 2975)


STEADY = [receipt("a", 0, 40, 8000)]


@pytest.mark.parametrize(
    ("measured", "change", "why"),
    [
        (lambda one: scaling_cost(one).share, {}, "cleared nothing"),  # four pods that do what two can do at their best
        (lambda one: scaling_cost(one).forgone, {"moves": MOVES[:1]}, "never raised"),
        (lambda one: scaling_cost(one).forgone, {"lag": lags({0: 0, 10: 1000, 19: 0, 30: 0})}, "never above"),
        (lambda one: forced_rebalance(one).depth, {}, "no partitions were added"),
        (lambda one: surplus_steps(one).depth, {}, "beyond its 4 partitions"),
    ],
)
def test_without_scaling_or_a_backlog_there_is_no_data(tmp_path, measured, change, why):
    """And never a pass."""
    assert why in measured(group(tmp_path, STEADY, **change)).why


def test_a_rebalance_ends_where_the_next_one_begins(tmp_path):
    """A second after its last handover, or at the next one's first cause."""
    events = [*JOINED, report(24, "d", "subscribed"), assigned(26, "d", 3)]
    first, second = rebalance_costs(group(tmp_path, STEADY, reports=events), 20)
    assert (first.t, first.until, second.t, second.until) == (22, 24, 24, 27)


def test_what_a_member_loses_late_is_its_next_owners(tmp_path):
    """The member b was given partition 0 at 20 s, and a reports at 21 s that it lost it: it never was without an owner."""
    events = [assigned(20, "b", 0), given_up(21, "a", 0, event="lost"), report(50, "c", "subscribed"), assigned(54, "c")]
    found = rebalance_costs(group(tmp_path, STEADY, reports=events), 20)
    assert [(one.t, one.until, one.unowned_s) for one in found] == [(20, 22, 0), (50, 55, 0)]


def test_new_partitions_force_a_rebalance(tmp_path):
    """Added at 30 s, seen at 31 s, all handed over at 32 s while a quarter of the rate is lost for a second."""
    events = [*JOINED, *(assigned(at, "c", number, owned=9) for at, number in ((31, 4), (32, 5)))]
    done = [receipt("a", 0, 31, 12_400), receipt("a", 31, 32, 300), receipt("a", 32, 50, 7200)]
    given = {"events": [{"phase": "repartition", "event": "grow", "partitions": 6}]}
    given["profile"] = {"steps": [*PROFILE["profile"]["steps"], {"at": 30, "rate": 1, "phase": "repartition"}], "duration": 100}
    found = forced_rebalance(
        group(tmp_path, done, reports=events, lag=[*LAG, *AT_WORK], times=DRIVEN | {"repartitioned": 30}, **given)
    )
    assert (found.after_s.value, found.seconds.value, found.handed_over.value) == pytest.approx((1, 1, 2))
    assert found.depth.value == pytest.approx(0.25)
    assert found.recovery_s.value == pytest.approx(2.8, abs=0.06)  # from the addition, which nobody sees for a second
    assert found.forgone.value == pytest.approx(100, rel=0.1)


def test_only_steps_beyond_p_are_the_surplus_pods(tmp_path):
    """From 4 pods on 4 partitions to 6: the one that joins then; the way to 4 is no surplus."""
    moves = [*MOVES, *built.replicas((28, 6, 4), (30.5, 6, 6))]
    events = [*JOINED, report(30, "e", "subscribed"), assigned(31, "e")]
    done = [receipt("a", 0, 24, 4800), receipt("a", 24, 25, 100), receipt("a", 25, 30, 1500), receipt("a", 31, 50, 5700)]
    found = surplus_steps(group(tmp_path, done, moves=moves, reports=events, lag=[*LAG, *AT_WORK]))
    assert found.steps.value == 1
    assert found.depth.value == pytest.approx(1.0, abs=0.01)
    assert found.recovery_s.value == pytest.approx(1.9, abs=0.06)
