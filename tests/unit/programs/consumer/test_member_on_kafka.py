"""A member on a real broker: one that leaves before it owns anything is not waited for, and a backlog is fetched evenly."""

import threading
import time
import uuid
from collections import Counter
from contextlib import closing

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.kafka import topics
from lab.programs.consumer.member import LEAN, Member, configuration
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


FETCHED, EACH, BYTES = 8, 300, 10_000  # partitions, messages on each, bytes of one: 24 MB, of which the queue holds 4
ANSWER_S = 60


@pytest.fixture(scope="module")
def backlog(bootstrap):
    """A topic on each of whose partitions as much waits."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {name: FETCHED})
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 50})
    for number in range(FETCHED * EACH):
        producer.produce(name, bytes(BYTES), partition=number % FETCHED)
    assert producer.flush(ANSWER_S) == 0
    return name


def first_half(bootstrap, topic, **own):
    """Of each partition how many messages are among the first half of all that a pod's consumer is given."""
    given = configuration(chosen(f"--bootstrap-servers={bootstrap}", "--group=fetch")) | own
    counts = Counter()
    with closing(Consumer(given)) as consumer:
        consumer.assign([TopicPartition(topic, number, 0) for number in range(FETCHED)])
        while counts.total() < FETCHED * EACH // 2:
            messages = consumer.consume(10, ANSWER_S)
            assert messages, f"nothing more after {counts}"
            counts.update(message.partition() for message in messages)
    return [counts[number] for number in range(FETCHED)]


def test_a_pod_works_off_each_of_its_partitions(bootstrap, backlog):
    """Half of the whole is half of each, to within two fetches: each has 1 MB of a partition."""
    counts = first_half(bootstrap, backlog)
    assert max(counts) - min(counts) <= 2 * 2**20 // BYTES, counts


def test_a_fetch_as_small_as_the_queue_starves_partitions(bootstrap, backlog):
    """librdkafka's own choice beside such a queue: each response ends at the first partitions, and the others wait."""
    counts = first_half(bootstrap, backlog, **{"fetch.max.bytes": LEAN["queued.max.messages.kbytes"] * 1024})
    assert counts.count(0) >= FETCHED // 4, counts
