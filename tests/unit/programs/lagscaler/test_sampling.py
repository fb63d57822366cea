"""From Kafka's answers to the scaler's metric, and what becomes of the metric when something breaks."""

import pytest
from confluent_kafka import KafkaError

from lab.inputs.triggers.common import ScalerError
from lab.kafka.lag import PartitionLag
from lab.programs.lagscaler.sampler import Sampler
from tests.unit.programs.lagscaler.fakes import METADATA, Scaled, error


def test_kafka_that_cant_be_reached_is_an_error_and_never_a_zero(lagging):
    """The last metric stands for three intervals; then an error that says what Kafka said; then the window begins anew."""
    scaled, state = lagging
    scaled.kafka.down = error(KafkaError._TRANSPORT, "connection refused")
    for _ in range(3):
        scaled.after(10)
        assert scaled.metric(state) == 500
    scaled.after(10)
    said = r"partition 0: no sample for 40 s; 30 s are bridged \(Kafka at b:9092: connection refused\)"
    with pytest.raises(ScalerError, match=said):
        state.read(scaled.clock())
    scaled.kafka.down = None
    scaled.after(10)
    with pytest.raises(ScalerError, match="seen for less than sustainSeconds 30"):
        state.read(scaled.clock())
    for _ in range(3):
        scaled.after(10)
    assert scaled.metric(state) == 500


def test_a_short_outage_is_bridged(lagging):
    """Two readings fail: nothing is handed over that was not, and nothing is lost."""
    scaled, state = lagging
    scaled.kafka.down = error(KafkaError._TIMED_OUT)
    scaled.after(10)
    scaled.after(10)
    scaled.kafka.down = None
    scaled.after(10)
    assert scaled.metric(state) == 500


def test_one_partition_without_a_leader_is_an_error_of_the_group(lagging):
    """After three intervals, with Kafka's word for it; the rest alone would be too little."""
    scaled, state = lagging
    scaled.kafka.lags(300, None)
    for _ in range(4):
        scaled.after(10)
    with pytest.raises(ScalerError, match=r"partition 1: no sample for 40 s; .*\(partition 1: "):
        state.read(scaled.clock())


def test_a_deleted_topic_is_an_error_and_a_new_one_of_its_name_begins_anew(lagging):
    """Never a lag of 0 because there is nothing to be behind of."""
    scaled, state = lagging
    scaled.kafka.answers.clear()
    for _ in range(4):
        scaled.after(10)
    with pytest.raises(ScalerError, match="topic orders is not there"):
        state.read(scaled.clock())
    scaled.kafka.lags(0, 70, 0)
    scaled.after(10)
    with pytest.raises(ScalerError, match="partition 1: seen for less than"):
        state.read(scaled.clock())
    for _ in range(3):
        scaled.after(10)
    assert scaled.metric(state) == 70


def test_repartitioned_the_old_lag_stays_and_the_new_must_last(lagging):
    """24 to 48 while it lags: no gap, no jump."""
    scaled, state = lagging
    scaled.kafka.lags(300, 200, 40, 40)
    for _ in range(3):
        scaled.after(10)
        assert scaled.metric(state) == 500
    scaled.after(10)
    assert scaled.metric(state) == 580


def test_a_restart_in_the_middle_of_a_window_says_nothing_until_it_has_seen_it():
    """For a lag that may or may not have lasted; that there is one is known, and a group without is answered, at once."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    state = scaled.state()
    for _ in range(3):
        scaled.after(10)
        with pytest.raises(ScalerError, match="seen for less than sustainSeconds 30"):
            state.read(scaled.clock())
        assert state.is_active(scaled.clock())
    scaled.after(10)
    assert scaled.metric(state) == 500
    other = Scaled()
    other.kafka.lags(0, 0)
    fresh = other.state()
    other.after(10)
    assert (other.metric(fresh), fresh.is_active(other.clock())) == (0, False)


def in_seconds(scaled, name="consumer", **changes):
    """A trigger whose threshold is an age, 5 s unless told otherwise."""
    given = {key: value for key, value in METADATA.items() if key != "lagThreshold"}
    return scaled.registry.state("shop", name, given | {"lagSeconds": "5"} | changes)


def unknown(scaled, state):
    """Whether neither the metric nor the activity is answered."""
    for ask in (state.read, state.is_active):
        with pytest.raises(ScalerError):
            ask(scaled.clock())
    return True


def test_a_restart_in_seconds_is_no_zero():
    """One sample of the log's end says nothing of how old a record is; a group without lag is answered at once."""
    scaled = Scaled()
    state = in_seconds(scaled)
    for index in range(4):
        scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(100_000 + 100 * index, 1000)}
        scaled.after(10)
        if not index:
            assert unknown(scaled, state)
        else:
            assert state.is_active(scaled.clock())
            with pytest.raises(ScalerError, match="seen for less than"):
                state.read(scaled.clock())
    scaled.after(10)
    assert scaled.metric(state) > 5
    idle, other = Scaled(), Scaled()
    fresh = in_seconds(idle)
    idle.kafka.lags(0, 0)
    idle.after(10)
    assert (idle.metric(fresh), fresh.is_active(idle.clock())) == (0, False)
    never = in_seconds(other)
    other.kafka.answers["enrich", "orders"] = {0: PartitionLag(900, None, 0)}
    other.after(10)
    assert unknown(other, never)


@pytest.mark.parametrize("ages", [False, True])
def test_a_topic_made_again_within_three_intervals_begins_anew(ages):
    """Nothing has lasted across two logs, and nothing says that there was no lag."""
    scaled = Scaled()
    state = in_seconds(scaled) if ages else scaled.state()
    for index in range(5):
        scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(10_300 + 10 * index, 10_000)}
        scaled.after(10)
    assert scaled.metric(state) > 0
    for index in range(5):
        scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(400 + index, None, 0)}
        scaled.after(10)
        if index < (4 if ages else 3):
            with pytest.raises(ScalerError, match=r"seen for less than|no sample yet"):
                state.read(scaled.clock())
    assert scaled.metric(state) > 0


def test_a_topic_made_again_after_an_edit_begins_anew_too(lagging):
    """Where its partitions' logs ended is kept with their samples."""
    scaled, _ = lagging
    edited = scaled.state(lagThreshold="50")
    scaled.kafka.answers["enrich", "orders"] = {number: PartitionLag(400, None, 0) for number in range(2)}
    scaled.after(10)
    with pytest.raises(ScalerError, match="seen for less than"):
        edited.read(scaled.clock())


def test_ages_of_an_edited_trigger_go_on():
    """The log has stopped growing: from its ends before the edit it is known since when."""
    scaled = Scaled()
    state = in_seconds(scaled)
    for index in range(10):
        end = 1000 + 100 * index
        scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(end, end - 300)}
        scaled.after(10)
    edited = in_seconds(scaled, lagSeconds="6")
    for _ in range(2):
        scaled.after(10)
        assert edited.read(scaled.clock()).now == state.read(scaled.clock()).now
    assert edited.read(scaled.clock()).now == pytest.approx(50)


def test_a_partition_that_is_gone_leaves_nothing_behind():
    """Neither samples nor ends, when it is no longer bridged."""
    scaled = Scaled()
    state = in_seconds(scaled)
    scaled.kafka.lags(300, 200)
    scaled.after(10)
    scaled.after(10)
    before = state.samples
    scaled.kafka.lags(300)
    for _ in range(3):
        scaled.after(10)
    assert state.samples == before // 2 + 2 * 3
    assert (state._ends.keys(), state._end.keys()) == ({0}, {0})


def test_a_group_that_never_committed_in_seconds():
    """latest: it is woken, and no replica more is asked for, however small the threshold and however many the partitions."""
    scaled = Scaled()
    state = in_seconds(scaled, lagSeconds="0.1", offsetResetPolicy="latest")
    answer = {number: PartitionLag(1000, 1000) for number in range(999)} | {999: PartitionLag(0, None)}
    scaled.kafka.answers["enrich", "orders"] = answer
    for _ in range(5):
        scaled.after(10)
    assert state.is_active(scaled.clock())
    assert scaled.metric(state) <= 0.1


def test_what_is_not_foreseen_costs_one_reading():
    """Nothing is raised, Kafka is connected to anew, and whoever was asking is told why."""
    scaled, connected = Scaled(), []
    connect = lambda servers: connected.append(servers) or scaled.kafka  # noqa: E731
    scaled.sampler = Sampler("b:9092", scaled.registry, connect, lambda *_: None, scaled.clock.wall)
    scaled.kafka.lags(300, 200)
    state, read = scaled.state(), scaled.kafka.read

    def broken(*_):
        raise ValueError("embedded null character")

    scaled.kafka.read = broken
    scaled.after(10)
    with pytest.raises(ScalerError, match=r"no sample yet \(the reading of Kafka at b:9092 failed: ValueError\('embedded"):
        state.read(scaled.clock())
    scaled.kafka.read = read
    scaled.after(10)
    assert state.is_active(scaled.clock())
    assert connected == ["b:9092"] * 2


def test_a_thread_that_died_is_replaced():
    """With the next trigger of its cluster; until then the process is not healthy."""
    scaled, started = Scaled(), []

    class Dead:
        def __init__(self, alive):
            self.is_alive, self.woken = (lambda: alive), 0

        def wake(self):
            self.woken += 1

    scaled.registry.sampled_by(lambda _: started.append(Dead(bool(started))) or started[-1])
    scaled.state()
    assert not scaled.registry.healthy()
    scaled.state("second")
    assert scaled.registry.healthy()
    scaled.state("third")
    assert [sampler.woken for sampler in started] == [0, 1]


@pytest.mark.parametrize("step", [-7200, -8, 8, 7200])
def test_a_step_of_the_wall_clock_changes_no_window(lagging, step):
    """Samples are stamped by the monotonic clock; the wall only says when to read, so that replicas read together."""
    scaled, state = lagging
    scaled.clock.step += step
    read = [scaled.after(1) for _ in range(20)]
    assert 2 <= sum(read) <= 3
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


def test_only_the_chosen_partitions_count():
    """partitionLimitation; none of them there is an error."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200, 100)
    some, none = scaled.state(partitionLimitation="0,2"), scaled.state(partitionLimitation="7-9")
    for _ in range(4):
        scaled.after(10)
    assert scaled.metric(some) == 400
    with pytest.raises(ScalerError, match="no partition of topic orders is within partitionLimitation"):
        none.read(scaled.clock())


def test_a_group_that_never_committed():
    """latest: 1 a partition, as KEDA counts, which wakes it; earliest: all there is in the log, and its start is asked for."""
    scaled = Scaled()
    scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(900, None, 600), 1: PartitionLag(50, 10)}
    earliest, latest = scaled.state(), scaled.state(offsetResetPolicy="latest")
    for _ in range(5):
        scaled.after(10)
    assert scaled.metric(earliest) == 340
    assert scaled.metric(latest) == 41
    assert scaled.kafka.asked[-1] == scaled.kafka.starts[-1] == [("enrich", "orders")]


def test_in_seconds_the_oldest_record_of_any_partition_counts():
    """10 messages/s each: 300 behind is 30 s old, on two partitions 60 s, of which each replica may hold lagSeconds."""
    scaled = Scaled()
    state = in_seconds(scaled, offsetResetPolicy="latest")
    for index in range(10):
        end = 1000 + 100 * index
        scaled.kafka.answers["enrich", "orders"] = {0: PartitionLag(end, end - 300), 1: PartitionLag(end, end - 10)}
        scaled.after(10)
    read = state.read(scaled.clock())
    assert read.now == pytest.approx(30)
    assert read.metric == pytest.approx(2 * 30)
    edited = in_seconds(scaled, lagSeconds="6", offsetResetPolicy="latest")
    assert edited.read(scaled.clock()).metric == read.metric
