"""A group of four on two partitions, of which every pod's work is known."""

import pytest

from lab.measure.cost import surplus_replicas

from . import built
from .built import assigned, given_up, lags, pod, receipt, replicas, sample
from .conftest import report

PODS = [pod(1, "a"), pod(1, "b"), pod(1, "gone"), pod(1, "leaving"), pod(11, "c"), pod(12, "d")]
PODS += [pod(5, "gone", "DELETED"), pod(5, "leaving", leaving=True), pod(21, "d", leaving=True)]
MOVES = replicas((0, 2, 0), (1, 2, 2), (10, 4, 2), (11, 4, 3), (12, 4, 4), (20, 2, 4), (21, 2, 2))
# The newcomer c takes over from a, which stays: the surplus is not the youngest.
EVENTS = [assigned(2, "a", 0), assigned(2, "b", 1), report(11, "d", "started", created=11.0)]
EVENTS += [given_up(12.0, "a", 0), assigned(12.5, "c", 0), given_up(20.3, "b", 1), assigned(20.5, "a", 1)]
RECEIPTS = [receipt("a", 3, 12, 1800), receipt("b", 3, 12, 900), receipt("b", 12, 12.5, 50), receipt("a", 12.4, 13, 60)]
RECEIPTS += [receipt("b", 13, 20, 1000), receipt("c", 13, 20, 1100), receipt("a", 20.6, 21, 40)]
LAG = {0: 0, 3: 10, 8: 500, 12: 500, 20: 0, 30: 0}


GROWING = {"steps": [{"at": 0, "rate": 1, "phase": "baseline"}, {"at": 50, "rate": 1, "phase": "repartition"}]}


def build(folder, moves=MOVES, reports=EVENTS, receipts=RECEIPTS, samples=(), lag=LAG, **inputs):
    """The record of that group."""
    given = {"partitions": 2} | inputs
    tables = {"group_events": reports, "receipts": receipts, "samples": [*lags(lag), *samples]}
    return built.record(folder, inputs=given, transitions=[*PODS, *moves], **tables)


def test_what_exceeds_the_partitions_is_idle(tmp_path):
    """Two of four own nothing and do nothing once the group is at rest; what the leavers hand over later is not looked at."""
    found = surplus_replicas(build(tmp_path))
    assert (found.partitions.value, found.replicas.value, found.surplus.value, found.idle_pods.value) == (2, 4, 2, 2)
    assert (found.assigned_to_surplus.value, found.messages_by_surplus.value) == (0, 0)
    assert found.pods == (("a", 0, 0), ("b", 1, 1000), ("c", 1, 1100), ("d", 0, 0))
    assert (found.stretch_s.value, found.settled_s.value, found.rebalances_beyond.value) == (9, 7.5, 1)
    # With two Ready, the 8 s with lag count and not the idle end; beyond them, all that was done in the last 7.5 s.
    assert (found.rate_at_p.value, found.rate_beyond.value) == pytest.approx((300, (2100 + 50) / 7.5))
    # c died without a word and started anew: what its first life reported is over.
    again = report(15, "c", "started", created=15.0)
    assert ("c", 0, 1100) in surplus_replicas(build(tmp_path, reports=[*EVENTS, again])).pods


@pytest.mark.parametrize(
    ("change", "rate_beyond"),
    [
        ({"lag": dict.fromkeys(range(0, 30, 2), 0)}, None),
        ({"moves": replicas((0, 4, 0), (10.5, 4, 2), (11, 4, 3), (12, 4, 4), (20, 0, 4))}, pytest.approx((2100 + 50) / 7.5)),
    ],
)
def test_without_time_or_lag_there_is_no_rate_to_compare(tmp_path, change, rate_beyond):
    """A group that waits for messages would pass any bound on its rate, and two Ready for half a second have none."""
    found = surplus_replicas(build(tmp_path, **change))
    assert (found.rate_at_p.value, found.rate_beyond.value) == (None, rate_beyond)


def test_a_surplus_that_works_is_seen(tmp_path):
    """d exports a partition that it never reported, and processes a batch: neither hides the other, and each is seen alone."""
    busy = [sample(15, "assigned_partitions", 1, pod="d"), sample(12.1, "assigned_partitions", 1, pod="a")]
    found = surplus_replicas(build(tmp_path, samples=busy, receipts=[*RECEIPTS, receipt("d", 14, 15, 7)]))
    assert (found.idle_pods.value, found.assigned_to_surplus.value) == (1, 1)
    assert ("d", 1, 7) in found.pods
    alone = surplus_replicas(build(tmp_path, receipts=[*RECEIPTS, receipt("d", 14, 15, 7)]))
    assert (alone.assigned_to_surplus.value, alone.messages_by_surplus.value) == (0, 7)


def test_the_surplus_is_counted_against_the_partitions_there_are_then(tmp_path):
    """Three after the topic grew: one pod too many, and only once four are Ready."""
    found = surplus_replicas(
        build(tmp_path, events=[{"phase": "repartition", "event": "grow", "partitions": 3}], profile=GROWING)
    )
    assert (found.partitions.value, found.surplus.value, found.stretch_s.value) == (3, 1, 8)
    assert found.idle_pods.value == 2  # one more than need be: the third partition has no owner


def test_the_longest_stretch_is_measured(tmp_path):
    """A scale-down to three begins another stretch, as its leaver's rebalance is part of it."""
    moves = replicas((0, 2, 2), (10, 4, 2), (12, 4, 4), (16, 3, 4), (16.5, 3, 3), (40, 2, 3))
    found = surplus_replicas(build(tmp_path, moves=moves))
    assert (found.stretch_s.value, found.replicas.value, found.surplus.value) == (24, 3, 1)
    assert found.settled_s.value == 19.5


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"moves": MOVES[:3]}, "never more replicas than the 2 partitions were Ready and wanted: 2 at most"),
        (
            {"reports": [*EVENTS, assigned(19.5, "b", 1)]},
            "the group never came to rest with more than 2 replicas: only for 0.5 s",
        ),
    ],
)
def test_without_a_surplus_at_rest_there_is_no_data(tmp_path, change, why):
    """A group that stayed within its partitions, and one in which a second after the last handover proves nothing."""
    assert surplus_replicas(build(tmp_path, **change)).surplus.why == why
