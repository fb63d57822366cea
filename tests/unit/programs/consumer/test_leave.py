"""A member that leaves before it owns anything, on a real broker: the group must not wait for one that is gone."""

import threading
import time
import uuid

import pytest
from confluent_kafka import Consumer

from lab.kafka import topics
from lab.programs.consumer.member import Member
from lab.wait import until

from .messages import chosen

pytestmark = pytest.mark.services
PARTITIONS, SESSION_S = 6, 40


@pytest.fixture
def names(bootstrap):
    """Topic and group of their own."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"events-{name}": PARTITIONS})
    return f"events-{name}", name


@pytest.fixture
def stays(bootstrap, names):
    """How many partitions a member owns that stays; it hears of a rebalance by its heartbeat."""
    topic, group = names
    owned, stop = set(), threading.Event()
    times = {"heartbeat.interval.ms": 500, "session.timeout.ms": SESSION_S * 1000}
    own = {"bootstrap.servers": bootstrap, "group.id": group, "partition.assignment.strategy": "cooperative-sticky"}
    consumer = Consumer({**own, **times})
    consumer.subscribe(
        [topic],
        on_assign=lambda _, parts: owned.update(part.partition for part in parts),
        on_revoke=lambda _, parts: owned.difference_update(part.partition for part in parts),
    )

    def follow():
        while not stop.is_set():
            consumer.poll(0.1)
        consumer.close()

    thread = threading.Thread(target=follow)
    thread.start()
    until(lambda: len(owned) == PARTITIONS, 120, "the first member owns all")
    yield lambda: len(owned)
    stop.set()
    thread.join(20)


@pytest.mark.parametrize("after_s", [0.0, 0.05, 0.3])
def test_a_member_that_leaves_between_two_rounds_is_not_waited_for(bootstrap, names, stays, monkeypatch, after_s):
    """A first round gives it nothing, since the others must give up first; it is told to leave before the second."""
    topic, group = names
    monkeypatch.setenv("HOSTNAME", "leaver")
    said, timeout = [], f"--session-timeout-ms={SESSION_S * 1000}"
    given = chosen(f"--bootstrap-servers={bootstrap}", f"--topic={topic}", f"--group={group}", timeout)
    member = Member(given, lambda event, **fields: said.append(event))
    member.subscribe()
    until(lambda: member.fetch(1, 0.02) or "assigned" in said, 120, "a first round")
    end = time.monotonic() + after_s
    while time.monotonic() < end:
        member.fetch(1, 0.02)
    assert member.leave(20)
    left = time.monotonic()
    threading.Event().wait(1)  # by now the others have heard of a second round
    until(lambda: stays() == PARTITIONS, 2 * SESSION_S, "the member that stays owns all again")
    assert time.monotonic() - left < SESSION_S / 2
