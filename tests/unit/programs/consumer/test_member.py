"""A member of the group without a broker: what it tells of a rebalance and asks of Kafka, and how its pod starts."""

import time
from types import SimpleNamespace
from unittest.mock import MagicMock

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from lab import clock
from lab.programs.consumer import __main__ as main
from lab.programs.consumer import member as members
from lab.programs.consumer.member import Member, configuration

from .messages import chosen, message, place

PARTS = [TopicPartition("events", 0), TopicPartition("events", 1)]


def places(parts):
    """Topic and partition of each, with its offset where it has one."""
    return sorted((one.topic, one.partition, one.offset) if one.offset >= 0 else (one.topic, one.partition) for one in parts)


class Client:
    """Kafka's consumer, which has ``messages`` and keeps each call that it gets, with the places that it is about."""

    def __init__(self, *messages):
        self.messages, self.calls = list(messages), []

    def __getattr__(self, name):
        def call(about=(), *, offsets=(), **_):
            self.calls.append((name, places([about] if isinstance(about, TopicPartition) else about or offsets)))

        return call

    def called(self, *names):
        """The calls of these names."""
        return [call for call in self.calls if call[0] in names]

    def subscribe(self, topics, on_assign, on_revoke, on_lost):
        """Keep the topics, and what is to be told of rebalances."""
        self.topics, self.assigned, self.revoked, self.lost = topics, on_assign, on_revoke, on_lost

    def consume(self, count, timeout_s):
        """All at once."""
        return self.messages

    def committed(self, parts, timeout_s):
        """An offset and metadata of each."""
        return [TopicPartition(part.topic, part.partition, 10 + part.partition, "9:") for part in parts]


def joined(client, *given):
    """A member that has subscribed by ``client``, and what it says."""
    said = []
    made = Member(chosen(*given), lambda event, **fields: said.append((event, fields)))
    made._consumer = client
    made.subscribe()
    return made, said


def test_a_rebalance_is_counted_from_where_it_was_first_seen(monkeypatch):
    """From subscribing, or from what it took, revoked or lost; of one that only gave nobody knows the beginning."""
    now = SimpleNamespace(t=100.0)
    monkeypatch.setattr(members, "time", SimpleNamespace(monotonic=lambda: now.t))
    client, lengths, owns = Client(), [], []
    made, _ = joined(client, "--wake=off")
    made.on_rebalanced, made.on_owned = lengths.append, owns.append
    now.t += 3
    client.assigned(client, PARTS)
    for take in (client.revoked, client.lost):
        take(client, PARTS[:1])
        now.t += 2
        client.assigned(client, PARTS[:1])
    now.t += 5
    client.assigned(client, [])
    assert lengths == [3.0, 2.0, 2.0, None]
    assert owns == [2, 1, 2, 1, 2, 2]


@pytest.mark.parametrize("passing", [KafkaError._TRANSPORT, KafkaError._MAX_POLL_EXCEEDED, KafkaError.NOT_COORDINATOR])
def test_a_member_goes_on_after_what_the_client_mends_by_itself(passing):
    """A connection that broke while offsets were asked for, a turn that was too long: to end would lose its last commit."""
    good, bad = SimpleNamespace(error=lambda: None), SimpleNamespace(error=lambda: KafkaError(passing))
    client = Client(good, bad)
    made, _ = joined(client)
    assert list(made.fetch(10, 0)) == [good]
    client.messages[1] = SimpleNamespace(error=lambda: KafkaError(KafkaError._FATAL))
    with pytest.raises(KafkaException):
        made.fetch(10, 0)


@pytest.mark.parametrize("balancer", ["range", "roundrobin", "cooperative-sticky"])
def test_an_eager_member_takes_its_whole_assignment_anew(balancer):
    """librdkafka refuses an incremental assignment under an eager protocol, and a whole one under an incremental protocol."""
    client = Client()
    joined(client, "--wake=off", f"--balancer={balancer}")
    client.assigned(client, PARTS)
    client.revoked(client, PARTS)
    how = "incremental_" if balancer == "cooperative-sticky" else ""
    assert [name for name, _ in client.calls] == [f"{how}assign", f"{how}unassign"]


@pytest.mark.parametrize(("servers", "asked"), [("b:1", 1), ("b:1,b:2", 2)], ids=["one broker", "two"])
def test_every_leader_of_kept_partitions_is_woken(servers, asked):
    """One broker leads all, and one request wakes it; of several each partition may have another leader."""
    client = Client()
    joined(client, f"--bootstrap-servers={servers}")
    client.assigned(client, PARTS)
    assert client.called("get_watermark_offsets") == []  # nothing was kept
    client.assigned(client, [])
    assert client.called("get_watermark_offsets") == [
        ("get_watermark_offsets", [("events", number)]) for number in range(asked)
    ]


@pytest.mark.parametrize(("membership", "left"), [("dynamic", ["unsubscribe", "close"]), ("static", ["close"])])
def test_a_static_member_goes_without_a_word(monkeypatch, membership, left):
    """unsubscribe() would send its LeaveGroup; close() alone keeps its place for the pod of the same name."""
    monkeypatch.setenv("HOSTNAME", "consumer-2")
    own = configuration(chosen(f"--membership={membership}")).get("group.instance.id")
    assert own == ("consumer-2" if membership == "static" else None)
    client = Client()
    made, _ = joined(client, f"--membership={membership}")
    assert made.leave(1)
    assert [name for name, _ in client.called("unsubscribe", "close")] == left


def test_of_several_topics_a_partition_is_the_trials_number():
    """What is read and said has the number; what Kafka is told has topic and partition. Of one topic nothing is wrapped."""
    client = Client(message(5, 1))
    made, _ = joined(client)
    assert made.fetch(10, 0)[0] is client.messages[0]
    client = Client(message(0, 7, topic="events-2"), message(2, 8))
    made, said = joined(client, "--wake=off", "--topics=2", "--topic-partitions=3")
    both = [TopicPartition("events", 2), TopicPartition("events-2", 0)]
    client.assigned(client, both)
    assert (client.topics, said[-1][0], said[-1][1]["partitions"]) == (["events", "events-2"], "assigned", [2, 3])
    for one, there, kafkas in zip(made.fetch(10, 0), [(3, 7), (2, 8)], client.messages, strict=True):
        assert place(one) == there
        assert (one.key(), one.value(), one.headers()) == (kafkas.key(), kafkas.value(), kafkas.headers())
    made.processed(3, 7)
    made.hold([3])
    made.hold([])
    made.mark({2: (5, "8:")})
    assert sorted(made.marks([2, 3])) == [(2, 12, "9:"), (3, 10, "9:")]
    client.revoked(client, both[1:])
    assert said[-1][1]["partitions"] == [3]
    assert client.called("pause", "resume", "commit") == [
        ("pause", [("events-2", 0)]),
        ("resume", [("events-2", 0)]),
        ("commit", [("events", 2, 5), ("events-2", 0, 8)]),
        ("commit", [("events-2", 0, 8)]),
    ]


def test_a_start_lasts_until_its_time_or_a_signal_and_the_pod_is_alive_but_not_ready(monkeypatch):
    """What the process itself took is part of it: a time that has passed is not waited for."""
    monkeypatch.setattr(main, "Metrics", MagicMock)  # the process's metrics can be registered once only
    program, begun = main.Program(chosen()), time.monotonic()
    program._start_up(clock.now() + 0.3)
    assert time.monotonic() - begun >= 0.29
    assert (program.healthy(), program.ready()) == (True, False)
    program._start_up(clock.now() - 60)
    program.terminate()
    program._start_up(clock.now() + 60)
    assert time.monotonic() - begun < 30
