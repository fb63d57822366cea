"""Three real brokers: what they acknowledge outlives the death of one, and readers of lag outlive a coordinator's."""

import threading
import uuid
from collections import Counter
from contextlib import suppress
from functools import partial

import pytest
from confluent_kafka import KafkaException, Producer

from lab.cluster import quorum
from lab.errors import LabFault
from lab.host import processes, runs
from lab.kafka import login, topics
from lab.kafka.lag import LagReader
from lab.kafka.replicas import Replicas, whole
from lab.wait import until
from tests.unit.programs.consumer.messages import read_all

pytestmark = pytest.mark.services

PARTITIONS = 6
WAIT_S = 240  # a broker counts as dead after 9 s, and on a busy machine a start has taken more than 90


@pytest.fixture
def three():
    """Three brokers with a login."""
    started, run, guard = runs.start(lambda run: quorum.start(run, 3, login.new()))
    try:
        yield started
    finally:
        started.close()
        processes.clear(run)
        processes.dismiss(guard)


class Writer:
    """Sends numbers to a topic, each with acks=all, until it is stopped; ``acked`` are those that were acknowledged."""

    def __init__(self, brokers, topic):
        self.sent, self.acked, self.failed = 0, set(), []
        own = {"bootstrap.servers": brokers.bootstrap, "acks": "all", "enable.idempotence": True, "log_level": 2}
        self._producer, self._topic = Producer({**own, **brokers.settings}), topic
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()

    def _write(self):
        while not self._stop.wait(0.005):
            told, value = partial(self._told, self.sent), b"%d" % self.sent
            self._producer.produce(self._topic, value, partition=self.sent % PARTITIONS, on_delivery=told)
            self.sent += 1
            self._producer.poll(0)

    def _told(self, number, error, _):
        self.acked.add(number) if error is None else self.failed.append(error)

    def went_on(self):
        """Wait until each partition has acknowledged what was sent from now on."""
        first = self.sent
        until(lambda: {n % PARTITIONS for n in self.acked.copy() if n >= first} == {*range(PARTITIONS)}, WAIT_S, "all go on")

    def close(self):
        """Stop, and wait for the acknowledgements."""
        self._stop.set()
        self._thread.join()
        assert self._producer.flush(WAIT_S) == 0


def content(brokers, topic):
    """The numbers on ``topic``, with those that are there twice twice."""
    return [int(one.value()) for one in read_all(brokers.bootstrap, topic, range(PARTITIONS), **brokers.settings)]


def answer(what, ask, *given):
    """What ``ask`` answers, asked until it does: a question's 2 s are little for three brokers on a busy machine."""
    answers = []

    def answered():
        with suppress(KafkaException, LabFault):
            answers.append(ask(*given))
        return bool(answers)

    until(answered, WAIT_S, what)
    return answers[0]


def test_what_is_acknowledged_outlives_a_broker(three):
    """The leader of most partitions dies with its disk: three copies lose nothing and go on, one copy loses what it had.

    Then the leader's disk is full, and then the group's coordinator dies. The lag is read after each death: librdkafka's admin
    client could end this process. No log is read as shorter than what was acknowledged.
    """
    run = uuid.uuid4().hex[:6]
    kept, single, group = f"kept-{run}", f"single-{run}", f"group-{run}"
    topics.create(three.bootstrap, {kept: PARTITIONS}, three.settings, copies=3, min_insync=2)
    topics.create(three.bootstrap, {single: PARTITIONS}, three.settings, copies=1, min_insync=1)
    replicas = Replicas(three.bootstrap, three.settings)
    before = Writer(three, single)
    before.went_on()
    before.close()

    writer = Writer(three, kept)
    writer.went_on()
    leader = answer("the leader", replicas.leads_most, kept)
    reader = LagReader(three.bootstrap, group, kept, timeout_s=2, settings=three.settings)
    assert len(answer("the lag", reader.read)) == PARTITIONS
    acked = Counter(number % PARTITIONS for number in writer.acked.copy())
    three.kill(leader)
    ends = {number: part.end for number, part in answer("the lag of new leaders", reader.read).items()}
    assert all(ends[number] >= acked[number] for number in range(PARTITIONS))
    assert three.down == [leader]
    three.check()  # a death that was meant is no fault
    assert three.lose(leader, kept) == PARTITIONS
    assert three.lose(leader, single) > 0
    writer.went_on()
    three.start([leader])
    until(lambda: all(whole(answer(topic, replicas.read, topic)) for topic in (kept, single)), WAIT_S, "in sync")
    assert 0 < len(content(three, single)) < len(before.acked)

    full = answer("the leader", replicas.leads_most, kept)
    process, start_again = three.running(full).process, three.fill(full)
    until(lambda: process.poll() is not None, WAIT_S, "a broker with a full disk ends")
    three.check()
    writer.went_on()
    start_again()
    until(lambda: whole(answer(kept, replicas.read, kept)), WAIT_S, "in sync")

    three.kill(answer("the coordinator", replicas.coordinator, group))
    assert len(answer("the lag of a new coordinator", reader.read)) == PARTITIONS
    writer.went_on()
    writer.close()
    assert writer.failed == []
    assert sorted(content(three, kept)) == [*range(writer.sent)] == sorted(writer.acked)
