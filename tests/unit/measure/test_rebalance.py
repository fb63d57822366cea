"""Rebalances of a group whose every handover is known."""

import pytest

from lab.measure.rebalance import gained_wait, rebalance_spans, rebalances

from . import built
from .built import assigned, given_up, receipt, sample
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
