"""Which broker coordinates a group, and whether all copies are in sync: pure, from a cluster's metadata."""

from types import SimpleNamespace

import pytest

from lab.cluster import broker
from lab.cluster.quorum import Node, Quorum
from lab.errors import LabFault
from lab.host import processes
from lab.kafka.replicas import Partition, Replicas, coordinating, whole
from lab.wait import until

ALL, TWO = frozenset({1, 2, 3}), frozenset({1, 3})


@pytest.mark.parametrize(
    ("group", "hashed"),
    [
        ("a", 97),
        ("ab", 31 * 97 + 98),
        ("enrich", 1_298_335_483),  # -1298335483 in Java: its amount counts
        ("polygenelubricants", 0),  # the least int, whose amount is no int: Kafka takes 0
    ],
)
def test_a_groups_coordinator_follows_from_javas_hash_of_its_name(group, hashed):
    """As Kafka takes it; for 50 partitions, which is its default, and for 4."""
    assert coordinating(group, 50) == hashed % 50
    assert coordinating(group, 4) == hashed % 4


def test_a_topic_is_whole_when_every_copy_is_in_sync():
    """A copy that lags behind, and a partition that no broker leads, are not."""
    good = Partition(1, ALL, ALL)
    assert whole([good, good])
    assert not whole([good, Partition(1, ALL, TWO)])
    assert not whole([good, Partition(None, ALL, ALL)])


def test_the_partitions_of_several_topics_are_read_together(monkeypatch):
    """Topic by topic; the broker that leads most of all is the one that leads most."""
    leaders = {"events": [1, 2], "events-2": [2, 3]}

    def described(topic, timeout):
        parts = dict(enumerate(SimpleNamespace(leader=one, replicas=[one], isrs=[one]) for one in leaders[topic]))
        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=parts)})

    made = Replicas("127.0.0.1:1")
    monkeypatch.setattr(made, "_admin", SimpleNamespace(list_topics=described))
    assert [one.leader for one in made.read("events", "events-2")] == [1, 2, 2, 3]
    assert [one.leader for one in made.read("events")] == [1, 2]
    assert made.leads_most("events", "events-2") == 2


def test_a_dead_brokers_copies_of_every_topic_are_lost(tmp_path):
    """And of no other topic, whose name may begin alike."""
    names = ["events-0", "events-11", "events-2-0", "events-3-0", "receipts-0"]
    for name in names:
        (tmp_path / "data" / name).mkdir(parents=True)
    (tmp_path / "data" / "meta.properties").write_text("")
    assert Quorum(tmp_path, tmp_path, {1: Node("b:1", tmp_path)}).lose(1, "events", "events-2") == 3
    assert sorted(path.name for path in (tmp_path / "data").iterdir()) == ["events-3-0", "meta.properties", "receipts-0"]


@pytest.mark.parametrize("end", [Quorum.roll, Quorum.fill])
def test_a_broker_that_is_rolled_or_full_ends_and_is_started_again(tmp_path, monkeypatch, end):
    """Meanwhile it is no fault that it is down. This one writes all the time."""

    def begin(run, _folder, name):
        return processes.start(run, name, ["sh", "-c", "while echo more; do sleep 0.01; done"])

    monkeypatch.setattr(broker, "begin", begin)
    made = Quorum(tmp_path, tmp_path / "nodes", {1: Node("b:1", tmp_path)})
    made.start([1])
    first = made.running(1)
    again = end(made, 1)
    until(lambda: first.process.poll() is not None, 10, "ended", made.check, every_s=0.01)
    again()
    assert made.running(1).process.poll() is None
    made.check()
    made.close()
    with pytest.raises(LabFault, match="broker 1 is down already"):
        end(made, 1)
