"""What a member tells of a rebalance: how long it took, where that was seen."""

import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from confluent_kafka import TopicPartition

from lab import clock
from lab.inputs.consumer import flags, settings
from lab.programs.consumer import __main__ as main
from lab.programs.consumer import member as members
from lab.programs.consumer.member import Member, configuration

CLIENT = SimpleNamespace(incremental_assign=lambda parts: None, incremental_unassign=lambda parts: None)
PARTS = [TopicPartition("events", 0), TopicPartition("events", 1)]


@pytest.fixture
def now(monkeypatch):
    """The clock of the member; a test moves it."""
    clock = SimpleNamespace(t=100.0)
    monkeypatch.setattr(members, "time", SimpleNamespace(monotonic=lambda: clock.t))
    return clock


@pytest.fixture
def member(monkeypatch, now):
    """The callbacks of a member without a broker, and what it tells: the lengths of rebalances, the counts of partitions."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    chosen = settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:1", "--wake=off"]))
    made = Member(chosen, lambda event, **fields: None)
    lengths, owns = [], []
    made.on_rebalanced, made.on_owned = lengths.append, owns.append
    made.subscribe()
    return SimpleNamespace(assigned=made._assigned, revoked=made._revoked, lost=made._lost, lengths=lengths, owns=owns)


def test_the_first_assignment_is_counted_from_subscribing(member, now):
    """Three seconds in the group's first rebalance, and not the moment that the callback takes."""
    now.t += 3
    member.assigned(CLIENT, PARTS)
    assert (member.lengths, member.owns) == ([3.0], [2])


def test_a_rebalance_that_took_something_is_counted_from_there(member, now):
    """Revoked, or lost, and two seconds later assigned."""
    member.assigned(CLIENT, PARTS)
    for take in (member.revoked, member.lost):
        take(CLIENT, PARTS[:1])
        now.t += 2
        member.assigned(CLIENT, PARTS[:1])
    assert member.lengths[1:] == [2.0, 2.0]
    assert member.owns == [2, 1, 2, 1, 2]


def test_of_a_rebalance_that_only_gave_nobody_knows_the_beginning(member, now):
    """It took nothing from this member: no length is better than one near 0."""
    member.assigned(CLIENT, PARTS[:1])
    now.t += 5
    member.assigned(CLIENT, PARTS[1:])
    assert member.lengths == [0.0, None]


@pytest.mark.parametrize(("balancer", "whole"), [("range", True), ("roundrobin", True), ("cooperative-sticky", False)])
def test_an_eager_member_takes_its_whole_assignment_anew(monkeypatch, balancer, whole):
    """librdkafka refuses an incremental assignment under an eager protocol, and a whole one under an incremental protocol."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    chosen = settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:1", "--wake=off", f"--balancer={balancer}"]))
    made, calls = Member(chosen, lambda event, **fields: None), []
    client = SimpleNamespace(assign=lambda parts: calls.append(True), incremental_assign=lambda parts: calls.append(False))
    made._assigned(client, PARTS)
    assert calls == [whole]


@pytest.mark.parametrize(
    ("servers", "asked"), [("127.0.0.1:1", [0]), ("127.0.0.1:1,127.0.0.1:2", [0, 1])], ids=["one broker", "two"]
)
def test_every_leader_of_kept_partitions_is_woken(monkeypatch, servers, asked):
    """One broker leads all, and one request wakes it; of several each partition may have another leader."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    made = Member(settings(flags().parse_args([f"--bootstrap-servers={servers}"])), lambda event, **fields: None)
    woken = []
    made._consumer = SimpleNamespace(get_watermark_offsets=lambda part, timeout, cached: woken.append(part.partition))
    made._assigned(CLIENT, PARTS)
    assert woken == []  # nothing was kept
    made._assigned(CLIENT, [])
    assert woken == asked


@pytest.mark.parametrize(("membership", "left"), [("dynamic", ["unsubscribe", "close"]), ("static", ["close"])])
def test_a_static_member_goes_without_a_word(monkeypatch, membership, left):
    """unsubscribe() would send its LeaveGroup; close() alone keeps its place for the pod of the same name."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    monkeypatch.setenv("HOSTNAME", "consumer-2")
    chosen = settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:1", f"--membership={membership}"]))
    assert configuration(chosen).get("group.instance.id") == ("consumer-2" if membership == "static" else None)
    made, calls = Member(chosen, lambda event, **fields: None), []
    named = {name: lambda name=name: calls.append(name) for name in ("unsubscribe", "close")}
    made._consumer = SimpleNamespace(pause=lambda parts: None, **named)
    assert made.leave(1)
    assert calls == left


class Client:
    """A consumer of two topics that keeps what it was asked, and has these messages."""

    def __init__(self, messages=()):
        self.messages, self.said = list(messages), []

    def subscribe(self, topics, **_):
        """Keep the topics."""
        self.said.append(("subscribe", topics))

    def consume(self, count, timeout_s):
        """All at once."""
        return self.messages

    def pause(self, parts):
        """Keep the places."""
        self.said.append(("pause", [(part.topic, part.partition) for part in parts]))

    def resume(self, parts):
        """Keep the places."""
        self.said.append(("resume", [(part.topic, part.partition) for part in parts]))

    def commit(self, offsets, asynchronous):
        """Keep the places with their offsets."""
        self.said.append(("commit", sorted((part.topic, part.partition, part.offset) for part in offsets)))

    def committed(self, parts, timeout_s):
        """An offset and metadata of each."""
        return [TopicPartition(part.topic, part.partition, 10 + part.partition, "9:") for part in parts]

    def incremental_assign(self, parts):
        """As Kafka says."""

    incremental_unassign = incremental_assign


def message(topic, partition, offset):
    """A message there."""
    fields = {"topic": topic, "partition": partition, "offset": offset, "key": b"k", "value": b"v", "headers": None}
    return SimpleNamespace(**{name: lambda value=value: value for name, value in fields.items()}, error=lambda: None)


def of_two(monkeypatch, client):
    """A member of a group with two topics of three partitions each, and what it says."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    flagged = ["--bootstrap-servers=127.0.0.1:1", "--wake=off", "--topics=2", "--topic-partitions=3"]
    said = []
    made = Member(settings(flags().parse_args(flagged)), lambda event, **fields: said.append((event, fields)))
    made._consumer = client
    return made, said


BOTH = [TopicPartition("events", 2), TopicPartition("events-2", 0)]


def test_of_several_topics_a_partition_is_the_trials_number(monkeypatch):
    """What is read and said has the number; what Kafka is told has topic and partition."""
    client = Client([message("events-2", 0, 7), message("events", 2, 8)])
    made, said = of_two(monkeypatch, client)
    made.subscribe()
    made._assigned(client, BOTH)
    assert (said[-1][0], said[-1][1]["partitions"], made.owned) == ("assigned", [2, 3], 2)
    found = [(one.partition(), one.offset(), one.key(), one.value(), one.headers()) for one in made.fetch(10, 0)]
    assert found == [(3, 7, b"k", b"v", None), (2, 8, b"k", b"v", None)]
    made.processed(3, 7)
    made.hold([3])
    made.hold([])
    made.mark({2: (5, "8:")})
    assert sorted(made.marks([2, 3])) == [(2, 12, "9:"), (3, 10, "9:")]
    made._revoked(client, BOTH[1:])
    assert said[-1][1]["partitions"] == [3]
    assert client.said == [
        ("subscribe", ["events", "events-2"]),
        ("pause", [("events-2", 0)]),
        ("resume", [("events-2", 0)]),
        ("commit", [("events", 2, 5), ("events-2", 0, 8)]),
        ("commit", [("events-2", 0, 8)]),
    ]


def test_of_one_topic_a_message_is_kafkas_own(monkeypatch):
    """Nothing is wrapped, whatever the topic is called."""
    monkeypatch.setattr("sys.argv", ["consumer"])
    made = Member(settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:1"])), lambda event, **fields: None)
    messages = [message("events", 5, 1)]
    made._consumer = Client(messages)
    assert made.fetch(10, 0)[0] is messages[0]


@pytest.fixture
def starting(monkeypatch):
    """A consumer with a broker that it never reaches; its metrics, which are the process's, can be registered once only."""
    monkeypatch.setattr(main, "Metrics", MagicMock)
    return main.Program(settings(flags().parse_args(["--bootstrap-servers=127.0.0.1:9"])))


def test_a_start_lasts_until_its_time_and_the_pod_is_alive_but_not_ready(starting):
    """What the process itself took is part of it: a time that has passed is not waited for."""
    begun = time.monotonic()
    starting._start_up(clock.now() + 0.3)
    assert 0.29 <= time.monotonic() - begun < 10
    assert (starting.healthy(), starting.ready()) == (True, False)
    begun = time.monotonic()
    starting._start_up(clock.now() - 60)
    assert time.monotonic() - begun < 10


def test_a_signal_ends_a_start(starting):
    """A pod that is deleted while it starts does not first get ready."""
    starting.terminate()
    begun = time.monotonic()
    starting._start_up(clock.now() + 60)
    assert time.monotonic() - begun < 10
