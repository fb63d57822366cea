"""What a member tells of a rebalance: how long it took, where that was seen."""

from types import SimpleNamespace

import pytest
from confluent_kafka import TopicPartition

from lab.programs.consumer import member as members
from lab.programs.consumer.member import Member, configuration
from lab.spec.consumer import flags, settings

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
