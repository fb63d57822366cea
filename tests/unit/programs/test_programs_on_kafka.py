"""Producer and consumer on a real broker: the same schedule twice, and a drain that leaves nothing undone."""

import json
import os
import signal
import subprocess
import sys
import uuid
from itertools import pairwise

import pytest
from confluent_kafka import Consumer, TopicPartition

from lab.kafka import event, topics
from lab.kafka.lag import LagReader
from lab.kafka.numbering import Numbering
from lab.wait import until

pytestmark = pytest.mark.services
EVENTS = 6_000
HANG_S = 120  # for what takes some seconds on a quiet machine: it only ends a test that hangs


def read_all(bootstrap, topic, partitions):
    """Every message of the topic, by partition."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, number, 0) for number in range(partitions)])
    rows, ended = [], set()
    while len(ended) < partitions:
        message = consumer.poll(60)
        assert message is not None, "the topic did not end within 60 s"
        if message.error():
            ended.add(message.partition())
        else:
            rows.append((message.partition(), message.offset(), message.key(), message.value()))
    consumer.close()
    return rows


def produce(bootstrap, *flags):
    """Run the producer at 3,000 events/s for two seconds; returns its exit code and reports."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"events-{name}": 4, f"reports-{name}": 1})
    command = [sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={bootstrap}", f"--topic=events-{name}"]
    command += [f"--reports-topic=reports-{name}", "--profile=steady", "--rate=3000", "--duration=2", "--entities=1000", *flags]
    ran = subprocess.run(command, timeout=HANG_S, capture_output=True, check=False)
    reports = [json.loads(value) for *_, value in read_all(bootstrap, f"reports-{name}", 1)]
    return ran.returncode, read_all(bootstrap, f"events-{name}", 4), reports, f"events-{name}"


@pytest.fixture(scope="module")
def produced(bootstrap):
    """One run of the producer with seed 7."""
    return produce(bootstrap, "--seed=7")


def identities(rows):
    """(partition, entity_id, seq) of every event in order of seq."""
    return sorted(((partition, *event.decode(value)[:2]) for partition, _, _, value in rows), key=lambda row: row[2])


def test_what_is_produced_is_what_was_due_and_acknowledged(produced):
    """All events of the profile, each once, acknowledged, and the tally says so."""
    code, rows, reports, _ = produced
    tally = reports[-1]
    assert code == 0
    assert (tally["event"], tally["sent"], tally["acked"], tally["unknown"], tally["failed"]) == (
        "produced",
        EVENTS,
        EVENTS,
        0,
        0,
    )
    assert [seq for _, _, seq in identities(rows)] == list(range(EVENTS))
    assert all(key == event.KEY.pack(event.decode(value).entity_id) for _, _, key, value in rows)


def test_the_schedule_is_exact(produced):
    """Each event's ts is the profile's due time: 3,000 a second, evenly spaced."""
    _, rows, _, _ = produced
    stamps = sorted(event.decode(value).ts for *_, value in rows)
    gaps = {later - earlier for earlier, later in pairwise(stamps)}
    assert all(abs(gap - 1e9 / 3000) < 2_000 for gap in gaps)


def test_the_same_seed_gives_the_same_events(bootstrap, produced):
    """A second run sends the same entities with the same seqs to the same partitions; another seed does not."""
    _, again, _, _ = produce(bootstrap, "--seed=7")
    _, other, _, _ = produce(bootstrap, "--seed=8")
    assert identities(again) == identities(produced[1])
    assert identities(other) != identities(produced[1])


def test_on_two_topics_an_event_has_the_number_that_it_has_on_one(bootstrap, produced):
    """The client's own choice among four partitions is the lab's among two times two."""
    name = uuid.uuid4().hex[:8]
    on = Numbering((f"events-{name}", f"events-{name}-2"), 2)
    command = [sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={bootstrap}", f"--topic=events-{name}"]
    command += ["--topics=2", "--topic-partitions=2", "--partitions=2"]  # the last makes them
    command += ["--profile=steady", "--rate=3000", "--duration=2", "--entities=1000", "--seed=7"]
    assert subprocess.run(command, timeout=HANG_S, capture_output=True, check=False).returncode == 0
    rows = [
        (on.number(topic, partition), *rest) for topic in on.topics for partition, *rest in read_all(bootstrap, topic, on.each)
    ]
    assert identities(rows) == identities(produced[1])
    ends = {number: part.end for number, part in LagReader(bootstrap, name, on).read().items()}
    assert ends == {number: part.end for number, part in LagReader(bootstrap, name, produced[3]).read().items()}


@pytest.mark.parametrize("balancer", ["cooperative-sticky", "range", "consumer"])
def test_a_drained_consumer_leaves_nothing_undone(bootstrap, produced, balancer):
    """SIGTERM in the middle of the work: every receipt is committed and every commit has its receipts, exactly."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"receipts-{name}": 1, f"reports-{name}": 1})
    command = [sys.executable, "-m", "lab.programs.consumer", f"--bootstrap-servers={bootstrap}", f"--topic={produced[3]}"]
    command += [f"--group={name}", f"--receipts-topic=receipts-{name}", f"--reports-topic=reports-{name}"]
    # 40 s of work: on a busy machine the first commit may be seen seconds later, and it must not be done by then.
    command += [f"--balancer={balancer}", "--metrics-port=0", "--process-ms=20", "--concurrency=3", "--commit-interval-ms=250"]
    process = subprocess.Popen(command, env=dict(os.environ, HOSTNAME=f"pod-{name}"), stderr=subprocess.DEVNULL)
    lag = LagReader(bootstrap, name, produced[3])
    try:
        until(lambda: any(part.committed for part in lag.read().values()), HANG_S, "the consumer committed something")
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
    committed = {number: part.committed or 0 for number, part in lag.read().items()}
    covered = dict.fromkeys(committed, 0)
    for *_, value in read_all(bootstrap, f"receipts-{name}", 1):
        receipt = json.loads(value)
        assert receipt["first"] == covered[receipt["partition"]]
        covered[receipt["partition"]] = receipt["last"] + 1
    assert covered == committed
    assert 0 < sum(committed.values()) < EVENTS, "the signal was to come in the middle of the work"
    said = [json.loads(value)["event"] for *_, value in read_all(bootstrap, f"reports-{name}", 1)]
    assert [word for word in said if word in ("started", "subscribed", "draining", "left")] == [
        "started",
        "subscribed",
        "draining",
        "left",
    ]


@pytest.mark.parametrize("start_s", [1.5, 600])
def test_a_declared_cold_start_comes_before_the_join_and_a_signal_ends_it(bootstrap, start_s):
    """The join comes that long after the process's start; a pod that is taken before it leaves in order and never joins."""
    name = uuid.uuid4().hex[:8]
    topics.create(bootstrap, {f"events-{name}": 4, f"receipts-{name}": 1, f"reports-{name}": 1})
    command = [sys.executable, "-m", "lab.programs.consumer", f"--bootstrap-servers={bootstrap}", f"--topic=events-{name}"]
    command += [f"--group={name}", f"--receipts-topic=receipts-{name}", f"--reports-topic=reports-{name}"]
    command += ["--metrics-port=0", f"--start-s={start_s}"]
    process = subprocess.Popen(command, env=dict(os.environ, HOSTNAME=f"pod-{name}"), stderr=subprocess.DEVNULL)

    def said():
        return {row["event"]: row for row in (json.loads(value) for *_, value in read_all(bootstrap, f"reports-{name}", 1))}

    try:
        until(lambda: ("subscribed" if start_s < 10 else "started") in said(), HANG_S, "the consumer's report")
        process.send_signal(signal.SIGTERM)
        assert process.wait(HANG_S) == 0
    finally:
        process.kill()
    rows = said()
    assert rows["left"]["committed"] is True
    if start_s < 10:
        created, started, subscribed = rows["started"]["created"], rows["started"]["t"], rows["subscribed"]["t"]
        # Imports may take longer than it, and a busy machine may let the process wait.
        assert created + start_s - 0.02 <= subscribed < max(created + start_s, started) + 20
    else:
        assert "subscribed" not in rows
