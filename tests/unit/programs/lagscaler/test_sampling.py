"""From Kafka's answers to the scaler's metric, and what becomes of the metric when something breaks."""

import pytest
from confluent_kafka import KafkaError

from lab.inputs.triggers.common import ScalerError
from lab.kafka.lag import PartitionLag
from tests.unit.programs.lagscaler.fakes import Scaled, error


def test_kafka_that_cant_be_reached_is_an_error_and_never_a_zero(lagging):
    """The last metric stands for three intervals; then an error that says what Kafka said; then the window begins anew."""
    scaled, state = lagging
    scaled.kafka.down = error(KafkaError._TRANSPORT, "connection refused")
    for _ in range(3):
        scaled.after(10)
        assert scaled.metric(state) == 500
    scaled.after(10)
    said = "partition 0: no sample for 40 s; 30 s are bridged (Kafka at b:9092: connection refused)"
    assert said in scaled.unknown(state)
    scaled.kafka.down = None
    scaled.after(10)
    assert "seen for less than sustainSeconds 30" in scaled.unknown(state)
    scaled.after(10, 3)
    assert scaled.metric(state) == 500


def test_one_partition_without_a_leader_is_an_error_of_the_group(lagging):
    """After three intervals, with Kafka's word for it; the rest alone would be too little."""
    scaled, state = lagging
    scaled.kafka.lags(300, None)
    scaled.after(10, 3)
    assert scaled.metric(state) == 500
    scaled.after(10)
    assert "partition 1: no sample for 40 s; 30 s are bridged (partition 1: " in scaled.unknown(state)


def test_a_deleted_topic_is_an_error_and_a_new_one_of_its_name_begins_anew(lagging):
    """Never a lag of 0 because there is nothing to be behind of."""
    scaled, state = lagging
    scaled.kafka.answers.clear()
    scaled.after(10, 4)
    assert "topic orders is not there" in scaled.unknown(state)
    scaled.kafka.lags(0, 70, 0)
    scaled.after(10)
    assert "partition 1: seen for less than" in scaled.unknown(state)
    scaled.after(10, 3)
    assert scaled.metric(state) == 70


def test_a_restart_in_the_middle_of_a_window_says_nothing_until_it_has_seen_it():
    """For a lag that may or may not have lasted; that there is one is known, and a group without is answered, at once."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    state = scaled.state()
    for _ in range(3):
        scaled.after(10)
        assert "seen for less than sustainSeconds 30" in scaled.unknown(state)
        assert scaled.active(state)
    scaled.after(10)
    assert scaled.metric(state) == 500


def test_a_restart_in_seconds_is_no_zero():
    """One sample of the log's end says nothing of how old a record is, whatever was committed."""
    for committed in (None, 1000):
        scaled = Scaled()
        state = scaled.in_seconds()
        scaled.kafka.partitions(PartitionLag(100_000, committed, 0))
        scaled.after(10)
        assert scaled.unknown(state)
        with pytest.raises(ScalerError):
            scaled.active(state)
    for index in range(1, 4):
        scaled.kafka.partitions(PartitionLag(100_000 + 100 * index, 1000))
        scaled.after(10)
        assert scaled.active(state)
        assert "seen for less than" in scaled.unknown(state)
    scaled.after(10)
    assert scaled.metric(state) > 5


@pytest.mark.parametrize("ages", [False, True])
def test_a_group_without_lag_is_answered_at_once(ages):
    """Nothing lasts, in messages or in seconds."""
    scaled = Scaled()
    state = scaled.in_seconds() if ages else scaled.state()
    scaled.kafka.lags(0, 0)
    scaled.after(10)
    assert (scaled.metric(state), scaled.active(state)) == (0, False)


@pytest.mark.parametrize("ages", [False, True])
def test_a_topic_made_again_within_three_intervals_begins_anew(ages):
    """Nothing has lasted across two logs, and nothing says that there was no lag; an edit keeps where the first log ended."""
    scaled = Scaled()
    make = scaled.in_seconds if ages else scaled.state
    state = make()
    for index in range(5):
        scaled.kafka.partitions(PartitionLag(10_300 + 10 * index, 10_000))
        scaled.after(10)
    edited = make(sustainSeconds="31")
    assert scaled.metric(state) > 0
    for index in range(5):
        scaled.kafka.partitions(PartitionLag(400 + index, None, 0))
        scaled.after(10)
        if index < (4 if ages else 3):
            for one in (state, edited):
                assert scaled.unknown(one).startswith(("partition 0: seen for less than", "partition 0: no sample yet"))
    assert scaled.metric(state) > 0


def test_a_partition_that_is_gone_leaves_nothing_behind():
    """Neither samples nor ends, when it is no longer bridged."""
    scaled = Scaled()
    state = scaled.in_seconds()
    scaled.kafka.lags(300, 200)
    scaled.after(10, 2)
    before = state.samples
    scaled.kafka.lags(300)
    scaled.after(10, 3)
    assert state.samples == before // 2 + 2 * 3
    assert (state._ends.keys(), state._end.keys()) == ({0}, {0})


def test_a_group_that_never_committed():
    """latest: 1 a partition, as KEDA counts, which wakes it; earliest: all there is in the log, and its start is asked for.

    In seconds it is woken, and no replica more is asked for, however small the threshold and however many the partitions.
    """
    scaled = Scaled()
    scaled.kafka.partitions(PartitionLag(900, None, 600), PartitionLag(50, 10))
    earliest, latest = scaled.state(), scaled.state(offsetResetPolicy="latest")
    scaled.after(10, 5)
    assert (scaled.metric(earliest), scaled.metric(latest)) == (340, 41)
    assert scaled.kafka.asked[-1] == scaled.kafka.starts[-1] == [("enrich", "orders")]
    aged = scaled.in_seconds(lagSeconds="0.1", offsetResetPolicy="latest")
    scaled.kafka.partitions(PartitionLag(0, None), *[PartitionLag(1000, 1000)] * 999)
    scaled.after(10, 5)
    assert scaled.active(aged)
    assert scaled.metric(aged) <= 0.1


def test_in_seconds_the_oldest_record_of_any_partition_counts():
    """10 messages/s each: 300 behind is 30 s old, on two partitions 60 s, of which each replica may hold lagSeconds.

    An edited trigger goes on: when the log stops growing, it is known from its ends before the edit since when.
    """
    scaled = Scaled()
    state = scaled.in_seconds(offsetResetPolicy="latest")
    for index in range(10):
        end = 1000 + 100 * index
        scaled.kafka.partitions(PartitionLag(end, end - 300), PartitionLag(end, end - 10))
        scaled.after(10)
    read = state.read(scaled.clock())
    assert (read.now, read.metric) == (pytest.approx(30), pytest.approx(2 * 30))
    edited = scaled.in_seconds(lagSeconds="6", offsetResetPolicy="latest")
    assert scaled.metric(edited) == read.metric
    scaled.after(10, 2)
    assert edited.read(scaled.clock()).now == state.read(scaled.clock()).now == pytest.approx(50)


def test_only_the_chosen_partitions_count():
    """partitionLimitation; none of them there is an error."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200, 100)
    some, none = scaled.state(partitionLimitation="0,2"), scaled.state(partitionLimitation="7-9")
    scaled.after(10, 4)
    assert scaled.metric(some) == 400
    assert "no partition of topic orders is within partitionLimitation" in scaled.unknown(none)


def test_what_is_not_foreseen_costs_one_reading():
    """Nothing is raised, Kafka is connected to anew, and whoever was asking is told why."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    state, read = scaled.state(), scaled.kafka.read

    def broken(*_):
        raise ValueError("embedded null character")

    scaled.kafka.read = broken
    scaled.after(10)
    assert "no sample yet (the reading of Kafka at b:9092 failed: ValueError('embedded" in scaled.unknown(state)
    scaled.kafka.read = read
    scaled.after(10)
    assert scaled.active(state)
    assert scaled.connected == 2


@pytest.mark.parametrize("step", [-7200, -8, 8, 7200])
def test_a_step_of_the_wall_clock_changes_no_window(lagging, step):
    """Samples are stamped by the monotonic clock; the wall only says when to read, so that replicas read together."""
    scaled, state = lagging
    scaled.clock.step += step
    assert 2 <= sum(scaled.after(1) for _ in range(20)) <= 3
    assert scaled.metric(state) == 500


def test_two_replicas_read_at_the_same_moments_and_answer_the_same():
    """They share nothing but Kafka and the wall clock's seconds; each agrees once it has seen enough."""
    one, two = Scaled(), Scaled()
    two.clock.now += 12_345.6
    two.clock.step -= 12_345.6 - 0.4  # 0.4 s apart, as synchronized clocks are
    first, second = one.state(), two.state()
    for second_ in range(200):
        lag = 300 if second_ > 60 else 40
        for scaled in (one, two):
            scaled.kafka.lags(lag, 200)
            scaled.after(1)
        if second_ > 45 and not 90 <= second_ <= 112:
            assert one.metric(first) == two.metric(second)
        elif second_ > 45:
            assert one.metric(first) == pytest.approx(two.metric(second), abs=260 / 10 * 1.5)
