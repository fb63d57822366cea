"""Triggers come, are edited and are forgotten; their number and their names are bounded."""

import pytest

from lab.errors import InputError
from lab.inputs.triggers.common import ScalerError
from lab.programs.lagscaler.registry import Full
from tests.unit.programs.lagscaler.fakes import Scaled


def test_a_trigger_that_is_edited_keeps_what_was_seen(lagging):
    """Another threshold, the same source: no blind window; another topic is another source."""
    scaled, state = lagging
    edited = scaled.state(lagThreshold="50")
    assert edited is not state
    assert scaled.metric(edited) == 500
    with pytest.raises(ScalerError, match="no sample yet"):
        scaled.state(topic="payments").read(scaled.clock())


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


def test_the_number_of_triggers_is_bounded():
    """One more is refused, and those that are there are served."""
    scaled = Scaled(limit=2)
    kept = scaled.state("a"), scaled.state("b")
    with pytest.raises(Full, match="2 triggers are served already"):
        scaled.state("c")
    assert (scaled.state("a"), scaled.state("b")) == kept
    with pytest.raises(InputError, match=r"ScaledObject shop/a: metadata.lagThreshold: '-1'"):
        scaled.state("a", lagThreshold="-1")


def test_a_variables_value_is_checked_as_a_name():
    """KEDA sends the value, whatever the target's container has there."""
    with pytest.raises(InputError, match=r"metadata.topicFromEnv: 'a\\x00b' is not allowed; allowed: a topic's name"):
        Scaled().state(topic="", topicFromEnv="a\0b")


def test_only_the_clusters_of_this_process_may_be_named():
    """In any order of their addresses; another is refused by name."""
    scaled = Scaled(clusters={"b1:9092,b2:9092"})
    assert scaled.state(bootstrapServers="b2:9092, b1:9092")
    with pytest.raises(InputError, match=r"metadata.bootstrapServers: 'evil:9092' is not allowed; allowed: of --clusters: b1"):
        scaled.state(bootstrapServers="evil:9092")
