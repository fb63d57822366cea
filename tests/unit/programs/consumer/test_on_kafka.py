"""Retries and dead letters on a real broker: what fails, what waits for it, what is committed, and who takes over."""

import json
import os
import signal
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Producer

from lab.inputs import topics as spec_topics
from lab.inputs.failures import Failures
from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
from lab.wait import until

from .messages import read_all, reason_of

pytestmark = pytest.mark.services
PARTITIONS, EACH = 4, 150
SEQS = {(seq % PARTITIONS, seq // PARTITIONS): seq for seq in range(PARTITIONS * EACH)}  # by partition and offset
HANG_S = 180  # for what takes some seconds on a quiet machine: it only ends a test that hangs


class Group:
    """A group of consumers on topics of its own, one or ``count``, that hold ``EACH`` events a partition."""

    def __init__(self, bootstrap, count=1):
        name = uuid.uuid4().hex[:8]
        self.bootstrap, self.name = bootstrap, name
        self.names = {kind: f"{kind}-{name}" for kind in ("events", "output", "receipts", "reports", "dead-letters")}
        self.on = Numbering(spec_topics.names(self.names["events"], count), PARTITIONS // count)
        made = {topic: PARTITIONS if kind == "output" else 1 for kind, topic in self.names.items()}
        topics.create(bootstrap, made | dict.fromkeys(self.on.topics, self.on.each))
        producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
        for (number, _), seq in SEQS.items():
            value = event.encode(seq, seq, 0, bytes(232))
            topic, partition = self.on.place(number)
            producer.produce(topic, value, value[:8], partition, headers=[("trace", str(seq).encode())])
        assert producer.flush(30) == 0
        self.lag = LagReader(bootstrap, name, self.on)
        self.started = []

    def start(self, pod, *flags):
        """Start a consumer called ``pod``."""
        given = {"bootstrap-servers": self.bootstrap, "group": self.name, "topic": self.names["events"]}
        given |= {f"{kind}-topic": self.names[kind] for kind in ("receipts", "reports", "output")}
        given |= {"dlq-topic": self.names["dead-letters"], "topics": len(self.on.topics), "topic-partitions": self.on.each}
        given |= {"metrics-port": 0, "process-ms": 1, "concurrency": 2, "retry-ms": "20,40,80", "commit-interval-ms": 250}
        command = [
            sys.executable,
            "-m",
            "lab.programs.consumer",
            *(f"--{name}={value}" for name, value in given.items()),
            *flags,
        ]
        process = subprocess.Popen(command, env=dict(os.environ, HOSTNAME=pod), stderr=subprocess.DEVNULL)
        self.started.append(process)
        return process

    def committed(self):
        """Committed offsets by partition."""
        return {number: part.committed or 0 for number, part in self.lag.read().items()}

    def wait(self, *waiting):
        """Until all is committed but of the partitions ``waiting``."""
        until(
            lambda: all(count == EACH for number, count in self.committed().items() if number not in waiting),
            HANG_S,
            f"committed but of {waiting}",
        )

    def read(self, kind, number=0):
        """(value, headers) of every message that partition ``number`` of a topic holds now."""
        return [(one.value(), one.headers()) for one in read_all(self.bootstrap, self.names[kind], [number])]

    def processed(self):
        """The offsets that receipts cover, by partition, in the order in which they were written."""
        found = {number: [] for number in range(PARTITIONS)}
        for value, _ in self.read("receipts"):
            receipt = json.loads(value)
            found[receipt["partition"]] += range(receipt["first"], receipt["last"] + 1)
        return found

    def reasons(self):
        """The reasons of all dead letters."""
        return [reason_of(headers) for _, headers in self.read("dead-letters")]

    def emitted(self, number):
        """The places of what is emitted to partition ``number`` of the output topic, in its order."""
        return [event.TRAILER.unpack(value[event.SIZE :])[:2] for value, _ in self.read("output", number)]

    def events(self, *kinds):
        """The group events of these kinds, in order."""
        rows = [json.loads(value) for value, _ in self.read("reports")]
        return [row for row in rows if row["event"] in kinds]


def drained(*processes):
    """End consumers in order."""
    for process in processes:
        process.send_signal(signal.SIGTERM)
    assert [process.wait(HANG_S) for process in processes] == [0] * len(processes)


def but(*dead):
    """The offsets of all messages but those at ``dead``, by partition."""
    return {number: [at for at in range(EACH) if (number, at) not in dead] for number in range(PARTITIONS)}


@pytest.fixture
def grouped(bootstrap):
    """Makes a group, whose consumers are ended with the test."""
    made = []
    yield lambda count=1: made.append(Group(bootstrap, count)) or made[-1]
    for process in (process for group in made for process in group.started):
        process.kill()
        process.wait()


@pytest.fixture
def group(grouped):
    """A group on one topic."""
    return grouped()


def test_all_is_processed_in_order_or_a_dead_letter_as_injected(group):
    """5 % fail at first and 2 % for ever: just those are dead, each once, with its reason; the rest is processed in order.

    What is processed is emitted in its order, with the place that it came from, in a partition of the same number.
    """
    process = group.start("a", "--fail-rate=0.05", "--poison-rate=0.02", "--poison=3:149", "--seed=5", "--emit=on")
    group.wait()
    drained(process)
    failures = Failures(5, 0.05, 0.02, None, 3)
    poison = {place for place, seq in SEQS.items() if failures.never(*place, seq)} | {(3, 149)}
    letters = [(value, headers, reason_of(headers)) for value, headers in group.read("dead-letters")]
    assert sorted((reason.partition, reason.offset) for _, _, reason in letters) == sorted(poison)
    assert len(poison) > 5
    for value, headers, reason in letters:
        seq = SEQS[reason.partition, reason.offset]
        assert event.decode(value).seq == seq
        assert ("trace", str(seq).encode()) in headers
        assert (reason.topic, reason.attempts, reason.replays) == (group.names["events"], 4, 0)
        assert "4 attempts" in reason.error
        assert 0.14 <= reason.time - reason.first_failure < HANG_S
    assert group.processed() == but(*poison)
    for number, offsets in but(*poison).items():
        assert group.emitted(number) == [(number, offset) for offset in offsets]
        seqs = [event.decode(value[: event.SIZE]).seq for value, _ in group.read("output", number)]
        assert seqs == [SEQS[number, offset] for offset in offsets]
    transient = {place: n for place, seq in SEQS.items() if (n := failures.transient(seq))}
    recovered = {(row["partition"], row["offset"]): row["attempts"] - 1 for row in group.events("recovered")}
    assert recovered == {place: n for place, n in transient.items() if place not in poison}
    assert len(group.events("failed")) == sum(recovered.values()) + 4 * len(poison)


def test_a_group_of_two_topics_works_by_number(grouped):
    """Two members share both topics. Receipts and reports have the number; a dead letter has the place that Kafka knows."""
    group = grouped(2)
    started = [group.start(pod, "--poison=3:20", "--fail-rate=0.05", "--emit=on", "--seed=5") for pod in ("a", "b")]
    group.wait()
    drained(*started)
    (reason,) = group.reasons()
    place = reason.topic, reason.partition, reason.offset
    assert place == (*group.on.place(3), 20) == (f"{group.names['events']}-2", 1, 20)
    (dead,) = group.events("dead_lettered")
    assert (dead["partition"], dead["offset"]) == (3, 20)
    processed = group.processed()
    for number, wanted in but((3, 20)).items():
        assert sorted(set(processed[number])) == wanted
        assert set(group.emitted(number)) == {(number, offset) for offset in wanted}
    assert {number for row in group.events("assigned") for number in row["partitions"]} == set(range(PARTITIONS))


def test_a_poison_message_stops_its_partition_alone(group):
    """Without dead letters: the other partitions are drained, nothing is committed past it, and the next owner begins anew."""
    process = group.start("a", "--dlq=off", "--poison=1:50")
    group.wait(1)
    # Others may be through before it.
    until(lambda: group.committed()[1] == 50, HANG_S, "all before the poison is committed")
    until(lambda: len(group.events("failed")) > 6, HANG_S, "it was tried for ever")
    drained(process)
    assert group.committed()[1] == 50
    assert group.processed()[1][-1] == 49
    group.start("b", "--dlq=off", "--poison=1:50")
    until(lambda: any(row["pod"] == "b" for row in group.events("failed")), HANG_S, "the next owner tried it")
    assert next(row["attempts"] for row in group.events("failed") if row["pod"] == "b") == 1
    assert group.read("dead-letters") == group.read("output") == []  # nobody has asked for either


@pytest.mark.parametrize("balancer", ["cooperative-sticky", "range", "consumer"])
def test_a_retry_survives_a_rebalance(group, balancer):
    """A member joins and the first one leaves while a head is being retried: no partition stays paused, none is doubled."""
    flags = ["--poison=0:20", "--dlq=off", f"--balancer={balancer}", "--process-ms=8"]
    first = group.start("a", *flags)
    until(lambda: group.events("failed"), HANG_S, "the head failed")
    group.start("b", *flags)
    until(lambda: any(row["pod"] == "b" and row["owned"] for row in group.events("assigned")), HANG_S, "b has partitions")
    drained(first)
    group.wait(0)
    assert group.committed()[0] == 20
    assert group.processed() == but() | {0: list(range(20))}


@pytest.mark.parametrize(
    ("mode", "flags"),
    # The second takes some forty suspects one by one before it polls again: on a busy machine that may take seconds.
    [("crash", []), ("hang", ["--max-poll-ms=10000"])],
)
def test_a_poison_that_ends_its_consumer_is_found_by_its_successors(group, mode, flags):
    """One dies with the batch, one with the message alone; the third buries it untried, and all else is processed.

    A consumer that hangs is put out of the group, and is still there.
    """
    flags = ["--poison=1:40", f"--poison-mode={mode}", "--most-deaths=1", "--session-timeout-ms=6000", *flags]
    for pod in ("a", "b"):
        dying = group.start(pod, *flags)
        assert mode == "hang" or dying.wait(HANG_S) == 70
    last = group.start("c", *flags)
    group.wait()
    (reason,) = group.reasons()
    assert (reason.partition, reason.offset, reason.attempts, reason.error) == (1, 40, 1, "1 consumers died with it")
    assert sum(process.poll() is None for process in group.started) == (1 if mode == "crash" else 3)
    if mode == "crash":
        drained(last)
    assert {number: sorted(set(offsets)) for number, offsets in group.processed().items()} == but((1, 40))


def test_a_kill_loses_nothing_and_doubles_its_letters(group):
    """SIGKILL after letters were written and before they are committed past: they are doubled, and no message is lost."""
    flags = ["--fail-rate=0.2", "--poison-rate=0.1", "--session-timeout-ms=6000"]
    killed = group.start("a", *flags, "--commit-interval-ms=600000")
    until(lambda: len(group.read("dead-letters")) > 3, HANG_S, "some are dead")
    killed.kill()
    killed.wait()
    written = [(reason.partition, reason.offset) for reason in group.reasons()]
    committed = group.committed()
    assert all(offset >= committed[number] for number, offset in written)  # the first commit comes before any retry is over
    successor = group.start("b", *flags, "--commit-interval-ms=100")
    group.wait()
    drained(successor)
    dead = [(reason.partition, reason.offset) for reason in group.reasons()]
    poison = {place for place, seq in SEQS.items() if Failures(1, 0.2, 0.1).never(0, 0, seq)}
    assert set(dead) == poison
    assert len(dead) == len(poison) + len(written)
    assert {number: sorted(set(offsets)) for number, offsets in group.processed().items()} == but(*poison)
