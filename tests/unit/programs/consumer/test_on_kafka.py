"""Retries and dead letters on a real broker: what fails, what waits for it, what is committed, and who takes over."""

import json
import os
import signal
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from lab.inputs import topics as spec_topics
from lab.inputs.failures import Failures
from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
from lab.wait import until

from .messages import reason_of, source_of

pytestmark = pytest.mark.services
PARTITIONS, EACH = 4, 150
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
        for seq in range(PARTITIONS * EACH):
            value = event.encode(seq, seq, 0, bytes(232))
            topic, partition = self.on.place(seq % PARTITIONS)
            producer.produce(topic, value, value[:8], partition, headers=[("trace", str(seq).encode())])
        assert producer.flush(30) == 0
        self.lag = LagReader(bootstrap, name, self.on)
        self.started = []

    def start(self, pod, *flags):
        """Start a consumer called ``pod``."""
        command = [
            sys.executable,
            "-m",
            "lab.programs.consumer",
            f"--bootstrap-servers={self.bootstrap}",
            f"--group={self.name}",
        ]
        command += [f"--topic={self.names['events']}", f"--receipts-topic={self.names['receipts']}"]
        command += [f"--reports-topic={self.names['reports']}", f"--dlq-topic={self.names['dead-letters']}"]
        command += [
            f"--output-topic={self.names['output']}",
            f"--topics={len(self.on.topics)}",
            f"--topic-partitions={self.on.each}",
        ]
        command += ["--metrics-port=0", "--process-ms=1", "--concurrency=2", "--retry-ms=20,40,80"]
        command += ["--commit-interval-ms=250", *flags]
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
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test"})
        whole = TopicPartition(self.names[kind], number, 0)
        _, end = consumer.get_watermark_offsets(whole, timeout=60)
        consumer.assign([whole])
        rows = []
        while len(rows) < end:
            message = consumer.poll(60)
            assert message is not None, f"{kind} gave no message within 60 s"
            assert message.error() is None
            rows.append((message.value(), message.headers()))
        consumer.close()
        return rows

    def receipts(self):
        """Receipts by partition, in the order they were written."""
        found = {number: [] for number in range(PARTITIONS)}
        for value, _ in self.read("receipts"):
            receipt = json.loads(value)
            found[receipt["partition"]].append((receipt["first"], receipt["last"]))
        return found

    def events(self, *kinds):
        """The group events of these kinds, in order."""
        rows = [json.loads(value) for value, _ in self.read("reports")]
        return [row for row in rows if row["event"] in kinds]


@pytest.fixture
def group(bootstrap):
    """A group, whose consumers are ended with the test."""
    made = Group(bootstrap)
    yield made
    for process in made.started:
        process.kill()
        process.wait()


def test_all_is_processed_in_order_or_a_dead_letter_as_injected(group):
    """5 % fail at first and 2 % for ever: just those are dead, each once, with its reason; the rest is processed in order."""
    process = group.start("a", "--fail-rate=0.05", "--poison-rate=0.02", "--poison=3:149", "--seed=5")
    group.wait()
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG_S) == 0
    failures = Failures(5, 0.05, 0.02, None, 3)
    places = {(seq % PARTITIONS, seq // PARTITIONS): seq for seq in range(PARTITIONS * EACH)}
    poison = {place for place, seq in places.items() if failures.never(*place, seq)} | {(3, 149)}
    letters = [(value, headers, reason_of(headers)) for value, headers in group.read("dead-letters")]
    assert sorted((reason.partition, reason.offset) for _, _, reason in letters) == sorted(poison)
    assert len(poison) > 5
    assert group.read("output") == []  # nobody has asked for it
    for value, headers, reason in letters:
        seq = places[reason.partition, reason.offset]
        assert event.decode(value).seq == seq
        assert ("trace", str(seq).encode()) in headers
        assert (reason.topic, reason.attempts, reason.replays) == (group.names["events"], 4, 0)
        assert "4 attempts" in reason.error
        assert 0.14 <= reason.time - reason.first_failure < HANG_S
    for number, ranges in group.receipts().items():
        covered = [offset for first, last in ranges for offset in range(first, last + 1)]
        assert covered == [offset for offset in range(EACH) if (number, offset) not in poison]
    transient = {place: n for place, seq in places.items() if (n := failures.transient(seq))}
    recovered = {(row["partition"], row["offset"]): row["attempts"] - 1 for row in group.events("recovered")}
    assert recovered == {place: n for place, n in transient.items() if place not in poison}
    assert len(group.events("failed")) == sum(recovered.values()) + 4 * len(poison)


def test_a_group_of_two_topics_works_by_number(bootstrap):
    """Two members share both topics. Receipts and reports have the number; a dead letter has the place that Kafka knows."""
    group = Group(bootstrap, 2)
    flags = ["--poison=3:20", "--fail-rate=0.05", "--emit=on", "--seed=5"]
    try:
        started = [group.start(pod, *flags) for pod in ("a", "b")]
        group.wait()
        for process in started:
            process.send_signal(signal.SIGTERM)
        assert [process.wait(HANG_S) for process in started] == [0, 0]
        ((_, headers),) = group.read("dead-letters")
        assert source_of(headers) == (*group.on.place(3), 20) == (f"{group.names['events']}-2", 1, 20)
        (dead,) = group.events("dead_lettered")
        assert (dead["partition"], dead["offset"]) == (3, 20)
        receipts = group.receipts()
        for number in range(PARTITIONS):
            wanted = [offset for offset in range(EACH) if (number, offset) != (3, 20)]
            assert sorted({offset for first, last in receipts[number] for offset in range(first, last + 1)}) == wanted
            places = {event.TRAILER.unpack(value[event.SIZE :])[:2] for value, _ in group.read("output", number)}
            assert places == {(number, offset) for offset in wanted}
        owned = {number for row in group.events("assigned") for number in row["partitions"]}
        assert owned == set(range(PARTITIONS))
    finally:
        for process in group.started:
            process.kill()
            process.wait()


def test_a_poison_message_stops_its_partition_alone(group):
    """Without dead letters: the other partitions are drained, nothing is committed past it, and the next owner begins anew."""
    process = group.start("a", "--dlq=off", "--poison=1:50")
    group.wait(1)
    # Others may be through before it.
    until(lambda: group.committed()[1] == 50, HANG_S, "all before the poison is committed")
    until(lambda: len(group.events("failed")) > 6, HANG_S, "it was tried for ever")
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG_S) == 0
    assert group.committed()[1] == 50
    assert group.receipts()[1][-1][1] == 49
    group.start("b", "--dlq=off", "--poison=1:50")
    until(lambda: any(row["pod"] == "b" for row in group.events("failed")), HANG_S, "the next owner tried it")
    assert next(row["attempts"] for row in group.events("failed") if row["pod"] == "b") == 1
    assert group.read("dead-letters") == []


@pytest.mark.parametrize("balancer", ["cooperative-sticky", "range", "consumer"])
def test_a_retry_survives_a_rebalance(group, balancer):
    """A member joins and the first one leaves while a head is being retried: no partition stays paused, none is doubled."""
    flags = ["--poison=0:20", "--dlq=off", f"--balancer={balancer}", "--process-ms=8"]
    first = group.start("a", *flags)
    until(lambda: group.events("failed"), HANG_S, "the head failed")
    group.start("b", *flags)
    until(lambda: any(row["pod"] == "b" and row["owned"] for row in group.events("assigned")), HANG_S, "b has partitions")
    first.send_signal(signal.SIGTERM)
    assert first.wait(HANG_S) == 0
    group.wait(0)
    assert group.committed()[0] == 20
    for number, ranges in group.receipts().items():
        covered = [offset for begin, end in ranges for offset in range(begin, end + 1)]
        assert covered == list(range(20 if number == 0 else EACH))


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
    first = group.start("a", *flags)
    if mode == "crash":
        assert first.wait(HANG_S) == 70
        second = group.start("b", *flags)
        assert second.wait(HANG_S) == 70
        last = group.start("c", *flags)
    else:
        group.start("b", *flags)
        group.start("c", *flags)
    group.wait()
    (letter,) = group.read("dead-letters")
    reason = reason_of(letter[1])
    assert (reason.partition, reason.offset, reason.attempts, reason.error) == (1, 40, 1, "1 consumers died with it")
    alive = [process for process in group.started if process.poll() is None]
    assert len(alive) == (1 if mode == "crash" else 3)
    if mode == "crash":
        last.send_signal(signal.SIGTERM)
        assert last.wait(HANG_S) == 0
    for number, ranges in group.receipts().items():
        covered = {offset for begin, end in ranges for offset in range(begin, end + 1)}
        assert covered == {offset for offset in range(EACH) if (number, offset) != (1, 40)}


def test_a_kill_loses_nothing_and_doubles_its_letters(group):
    """SIGKILL after letters were written and before they are committed past: they are doubled, and no message is lost."""
    flags = ["--fail-rate=0.2", "--poison-rate=0.1", "--session-timeout-ms=6000"]
    killed = group.start("a", *flags, "--commit-interval-ms=600000")
    until(lambda: len(group.read("dead-letters")) > 3, HANG_S, "some are dead")
    killed.kill()
    killed.wait()
    written = [source_of(headers)[1:] for _, headers in group.read("dead-letters")]
    committed = group.committed()
    assert all(offset >= committed[number] for number, offset in written)  # the first commit comes before any retry is over
    successor = group.start("b", *flags, "--commit-interval-ms=100")
    group.wait()
    successor.send_signal(signal.SIGTERM)
    assert successor.wait(HANG_S) == 0
    dead = [source_of(headers)[1:] for _, headers in group.read("dead-letters")]
    failures = Failures(1, 0.2, 0.1)
    poison = {(seq % PARTITIONS, seq // PARTITIONS) for seq in range(PARTITIONS * EACH) if failures.never(0, 0, seq)}
    assert set(dead) == poison
    assert len(dead) == len(poison) + len(written)
    for number, ranges in group.receipts().items():
        covered = {offset for begin, end in ranges for offset in range(begin, end + 1)}
        assert covered == {offset for offset in range(EACH) if (number, offset) not in poison}


def test_what_is_processed_is_emitted_in_its_order(group):
    """Each event with the place that it came from, in a partition of the same number; a dead letter is not emitted."""
    process = group.start("a", "--emit=on", "--poison=3:149", "--retry-ms=1")
    group.wait()
    process.send_signal(signal.SIGTERM)
    assert process.wait(HANG_S) == 0
    for number in range(PARTITIONS):
        found = [value for value, _ in group.read("output", number)]
        places = [(number, offset) for offset in range(EACH) if (number, offset) != (3, 149)]
        assert [event.TRAILER.unpack(value[event.SIZE :])[:2] for value in found] == places
        assert [event.decode(value[: event.SIZE]).seq for value in found] == [
            offset * PARTITIONS + number for _, offset in places
        ]
