"""What a sync saw, from the average that it left in the HPA's status."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lab.model import hpa
from lab.model.hpa_log import KEPT, PROPOSED, Line, Logged
from lab.record import hpas
from lab.record.hpas import EXTERNAL, Current, Status
from lab.record.tables import Watched

counts = st.integers(1, 48)


def seen(name, total, existing, counted):
    """What is told of a metric of that total (thousandths) over ``existing`` replicas, where ``counted`` may have existed."""
    average = -(-total // existing)  # the controller rounds up
    status = Status(1.0, existing, None, (Current(EXTERNAL, name, Fraction(average, 1000)),), (), {})
    spec = hpa.HpaSpec(1, 48, (hpa.Metric("External", name, "AverageValue", 150_000),), None)
    return hpas.possible(spec, status, counted)


@given(st.integers(0, 10**6), counts)
def test_messages_follow_from_their_average(messages, existing):
    """Whole ones: no two totals have the same average over the same replicas."""
    (told,) = seen("s0-kafka-events", messages * 1000, existing, [existing])
    assert (told.existing, told.observed) == (existing, ((messages * 1000,),))


def test_a_number_of_replicas_that_gives_no_whole_messages_did_not_exist():
    """100 messages over 7 replicas are 14.286 on average, which over 24 is no whole number of messages."""
    assert [one.existing for one in seen("s0-kafka-events", 100_000, 7, [24, 7])] == [7]


@given(st.integers(0, 10**9), counts)
def test_what_has_lasted_of_a_lag_is_known_to_a_thousandth_a_replica(total, existing):
    """The greatest and the least it can have been have the true total between them, with less than the replicas between."""
    told = [one.observed[0][0] for one in seen("s0-persistent-lag-events", total, existing, [existing])]
    assert min(told) <= total <= max(told)
    assert max(told) - min(told) < existing


@pytest.mark.parametrize("number", [None, -(2**63), 2**63 - 1])
def test_an_average_over_no_replica_tells_nothing(number):
    """The controller divides by 0 and writes the least int64, or the greatest: the value is not known, and no metric failed.

    Without a status, the metric failed: no value seen, and not a 0.
    """
    status = number and Status(1.0, 0, None, (Current(EXTERNAL, "s0-kafka-events", Fraction(number, 1000)),), (), {})
    spec = hpa.HpaSpec(0, 6, (hpa.Metric("External", "s0-kafka-events", "AverageValue", 150_000),), None)
    told = [(one.existing, one.observed) for one in hpas.possible(spec, status, [0, 1])]
    assert told == ([(0, None)] if status else [(0, (None,)), (1, (None,))])


TARGET = {"metric": {"name": "s0-kafka-events"}, "target": {"type": "AverageValue", "averageValue": "75"}}
SPEC = {"minReplicas": 4, "maxReplicas": 24, "metrics": [{"type": "External", "external": TARGET}]}
HPA = {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "spec": SPEC}


def watched(t, messages, spec=1):
    """A status of 10 replicas as the watch had it at ``t``; ``spec`` tells writes of the spec alone apart."""
    average = Fraction(messages, 10)
    item = HPA | {"metadata": {"generation": spec}, "status": {"average": messages}}
    return Status(t, 10, 10, (Current(EXTERNAL, "s0-kafka-events", average),), (), item)


def logged(at, after, wrote=True):
    """A sync that found 10 replicas right; the next one has its metrics at ``after``."""
    counts = {"currentReplicas": 10, "desiredReplicas": 10}
    return Logged(Line(at, PROPOSED, counts), Line(at, KEPT, counts), at - 0.5, after, lost=False, wrote=wrote)


@pytest.mark.parametrize(
    ("statuses", "wrote", "expected"),
    [
        ([(0.01, 700), (0.51, 710), (1.01, 720), (1.51, 730)], (True,) * 4, [700, 710, 720, 730]),
        ([(0.01, 700), (1.21, 710), (1.22, 720), (1.51, 730)], (True,) * 4, [700, 710, 720, 730]),
        ([(0.01, 700), (1.6, 710), (1.6, 720), (1.6, 730)], (True,) * 4, [700, 710, 720, 730]),
        ([(0.01, 700), (1.21, 710), (1.51, 730)], (True, True, False, True), [700, 710, 710, 730]),
        ([(0.01, 700), (4.0, 710)], (True, True, False, False), [700, None, 700, 700]),
        ([(0.01, 700), (0.7, 700, 2), (1.21, 710), (1.22, 720)], (True,) * 3, [700, 710, 720]),
    ],
    ids=["in time", "one late", "all late", "late, then unchanged", "later than any watch is", "KEDA wrote the spec alone"],
)
def test_a_status_that_the_watch_brings_late_is_of_the_sync_that_wrote_it(statuses, wrote, expected):
    """A machine that stalled for 0.6 s brought two statuses at once: the first one was taken for what no sync had seen."""
    deployment = [Watched(0.0, "consumer", "ADDED", {"status": {"replicas": 10}})]
    lines = [logged(0.5 * place, 0.5 * place + 0.5, one) for place, one in enumerate(wrote)]
    syncs = hpas.syncs(lines, [watched(*one) for one in statuses], deployment)
    assert [sync.seen[0].observed for sync in syncs] == [messages and ((messages * 1000,),) for messages in expected]
