"""One thread reads all that is due, when it is due, and no more."""

import gc
import weakref
from unittest.mock import Mock

import pytest

from lab.errors import InputError
from lab.programs.lagscaler.__main__ import settle
from lab.programs.lagscaler.registry import Full
from lab.wait import until
from tests.unit.programs.lagscaler.fakes import Scaled


def test_all_that_is_due_is_one_reading_of_each_group_and_topic(lagging):
    """Three triggers on the same group: asked once."""
    scaled, _ = lagging
    scaled.state(lagThreshold="50")
    scaled.state("other")
    assert scaled.after(10) == 3
    assert scaled.kafka.asked[-1] == [("enrich", "orders")]


def test_a_long_reading_is_spread_over_the_interval_and_a_new_trigger_is_not_made_to_wait():
    """Ten topics are ten batches here: with pauses between them, none when one of them has never been read, or one is added."""
    scaled = Scaled(limit=20)
    for number in range(10):
        scaled.kafka.lags(300, topic=f"t{number}")
        scaled.state(topic=f"t{number}")
    pauses = []
    scaled.sampler._woken.wait = lambda seconds: bool(pauses.append(seconds)) or len(pauses) == 13
    assert scaled.after(10) == 10
    assert pauses == []
    scaled.after(10)
    assert pauses == [0.1] * 9
    scaled.after(10)
    assert pauses == [0.1] * 13
    assert len({state.is_active(scaled.clock()) for _, _, state in scaled.registry.all()}) == 1


def test_a_reading_is_spread_over_the_shortest_interval_on_the_cluster():
    """Whether or not a trigger with that interval is due itself: with three of them between two samples it begins anew."""
    scaled = Scaled(limit=20)
    for number in range(10):
        scaled.kafka.lags(300, topic=f"t{number}")
        scaled.state(topic=f"t{number}")
    scaled.after(10)
    pauses = []
    scaled.sampler._woken.wait = lambda seconds: bool(pauses.append(seconds))
    scaled.sampler.sample(scaled.registry.of("b:9092"), 0.1)
    assert pauses == [0.05] * 9


def test_the_thread_reads_a_new_trigger_at_once_and_ends_with_the_last():
    """No interval is waited for; when nothing is asked for any more the thread is gone, and comes again when something is."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    started = []

    def start(servers):
        started.append(scaled.sampling())
        started[-1].start()
        return started[-1]

    scaled.registry.sampled_by(start)
    first = scaled.state()
    until(lambda: first.tried, 10, "the first reading")
    second = scaled.state("second")
    until(lambda: second.tried, 10, "the second's first reading")
    assert len(started) == 1
    assert scaled.registry.healthy()
    scaled.clock.now += 901
    started[0].wake()
    until(lambda: not started[0].is_alive(), 10, "the thread to end")
    assert scaled.registry.healthy()
    third = scaled.state()
    until(lambda: third.tried, 10, "the first reading after")
    scaled.registry.stop()
    until(lambda: not started[1].is_alive(), 10, "the thread to end")
    assert (len(started), scaled.registry.healthy()) == (2, False)


def test_a_first_reading_is_told_and_a_failed_one_too():
    """How many triggers a reading was for, failed for, and read for the first time."""
    told: list = []
    scaled = Scaled(sampled=lambda *given: told.append(given[1:]))
    scaled.kafka.lags(300, 200)
    scaled.state()
    scaled.after(10)
    scaled.state(topic="payments")
    scaled.after(10)
    scaled.after(10)
    assert told == [(1, 0, 1), (2, 1, 1), (2, 1, 0)]


def test_a_thread_that_died_is_replaced():
    """With the next trigger of its cluster; until then the process is not healthy."""
    scaled, started = Scaled(), []
    scaled.registry.sampled_by(lambda _: started.append(Mock(is_alive=lambda alive=bool(started): alive)) or started[-1])
    scaled.state()
    assert not scaled.registry.healthy()
    scaled.state("second")
    assert scaled.registry.healthy()
    scaled.state("third")
    assert [sampler.wake.call_count for sampler in started] == [0, 1]


def test_what_is_forgotten_is_freed_without_the_collector():
    """What a trigger needs has no cycles, so it may be frozen out of the collector's rounds and is no leak for it."""
    scaled = Scaled()
    scaled.kafka.lags(300, 200)
    gone = weakref.ref(scaled.state())
    scaled.after(10)
    before = gc.get_freeze_count()
    settle()
    try:
        assert gc.get_freeze_count() > before
        gc.disable()
        scaled.after(901)
        assert gone() is None
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_trigger_that_is_edited_keeps_what_was_seen(lagging):
    """Another threshold, the same source: no blind window; another topic is another source."""
    scaled, state = lagging
    edited = scaled.state(lagThreshold="50")
    assert edited is not state
    assert scaled.metric(edited) == 500
    assert "no sample yet" in scaled.unknown(scaled.state(topic="payments"))


def test_what_keda_no_longer_asks_for_is_forgotten(lagging):
    """After --forget-after; an open stream is a question. Without triggers the cluster is let go."""
    scaled, state = lagging
    for _ in range(3):  # asked for again and again it stays for ever
        scaled.after(600)
        assert scaled.state() is state
    other = scaled.state("other")
    other.streams += 1
    scaled.after(901)
    assert [name for _, name, _ in scaled.registry.all()] == ["other"]
    other.streams -= 1
    scaled.after(901)
    assert scaled.registry.all() == []


def test_at_the_limit_an_edited_trigger_makes_room():
    """Once KEDA has asked for the new metadata alone for a minute. A stream is a question; what is asked seldom stays."""
    scaled = Scaled(limit=3)
    before = scaled.state("a")
    scaled.clock.now += 1
    scaled.state("a", lagThreshold="50")
    seldom = scaled.state("b")
    scaled.clock.now += 61
    with pytest.raises(Full):  # of neither it has asked since
        scaled.state("c")
    scaled.state("a", lagThreshold="50")
    before.streams += 1
    with pytest.raises(Full):
        scaled.state("c")
    before.streams -= 1
    new = scaled.state("c")
    states = [state for _, _, state in scaled.registry.all()]
    assert (before in states, seldom in states, new in states) == (False, True, True)
    with pytest.raises(Full):
        scaled.state("d")


def test_what_a_trigger_may_name_is_bounded():
    """So many triggers, of these clusters in any order of their addresses; a variable's value is checked, and not shown."""
    scaled = Scaled(limit=2, clusters={"b:9092", "b1:9092,b2:9092"})
    kept = scaled.state("a"), scaled.state("b", bootstrapServers="b2:9092, b1:9092")
    with pytest.raises(Full, match="2 triggers are served already"):
        scaled.state("c")
    assert (scaled.state("a"), scaled.state("b", bootstrapServers="b2:9092, b1:9092")) == kept
    for change, line in (
        ({"lagThreshold": "-1"}, r"ScaledObject shop/a: metadata.lagThreshold: '-1'"),
        (
            {"bootstrapServers": "evil:9092"},
            "metadata.bootstrapServers: 'evil:9092' is not allowed; allowed: of --clusters: b1",
        ),
        ({"topic": "", "topicFromEnv": "a\0b"}, r"topicFromEnv: '\(not shown\)' is not allowed; allowed: a topic's name"),
    ):
        with pytest.raises(InputError, match=line):
            scaled.state("a", **change)
