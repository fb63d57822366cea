"""What a sync saw, from the average that it left in the HPA's status."""

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from lab.model import hpa
from lab.record import hpas
from lab.record.hpas import EXTERNAL, Current, Status

counts = st.integers(1, 48)


def seen(name, total, existing, counted):
    """What is told of a metric of that total (thousandths) over ``existing`` replicas, where ``counted`` may have existed."""
    average = -(-total // existing)  # the controller rounds up
    status = Status(1.0, existing, None, (Current(EXTERNAL, name, Fraction(average, 1000)),), (), {})
    spec = hpa.HpaSpec(1, 48, (hpa.Metric("External", name, "AverageValue", 150_000),), None)
    return hpas._seen(spec, status, counted)


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


def test_a_metric_that_failed_is_told_as_none():
    """No value in the status is no value seen, and not a 0."""
    spec = hpa.HpaSpec(1, 48, (hpa.Metric("External", "s0-persistent-lag-events", "AverageValue", 150_000),), None)
    assert [one.observed for one in hpas._seen(spec, None, [4])] == [(None,)]
