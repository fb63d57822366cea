"""Rebalances of a group whose every handover is known."""

import pytest

from lab.measure.rebalance import rebalance_spans, rebalances

from . import built
from .built import assigned, given_up
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
