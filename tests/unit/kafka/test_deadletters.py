"""A dead-letter topic listed and replayed: on a real broker by the command itself, and which letters wait as a pure rule."""

import json
import subprocess
import sys
import uuid

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from lab import deadletter
from lab.__main__ import main
from lab.deadletter import Reason
from lab.kafka import topics
from lab.kafka.deadletters import COPY, REPLAYED, WAITING, Letter, states


def letter(offset, source, partition=0):
    """A letter about offset ``source``."""
    return Letter(partition, offset, b"k", b"v", (), Reason("x", 4, "events", 0, source, 1.0, 2.0))


@given(st.lists(st.integers(0, 8), max_size=30), st.integers(0, 30))
def test_each_message_waits_at_most_once(sources, committed):
    """Below the committed offset all was replayed; of the rest the first about a message waits, unless one was replayed."""
    letters = [letter(offset, source) for offset, source in enumerate(sources)]
    found = states(letters, {0: committed})
    assert all((state == REPLAYED) == (offset < committed) for offset, state in enumerate(found))
    waiting = [source for source, state in zip(sources, found, strict=True) if state == WAITING]
    assert len(waiting) == len(set(waiting))
    assert set(waiting) == set(sources) - set(sources[:committed])
    assert found.count(COPY) == len(sources) - min(committed, len(sources)) - len(waiting)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ([], "the following arguments are required: action, --bootstrap-servers, --topic"),
        (["replay", "--topic=x"], "the following arguments are required: --bootstrap-servers"),
        (["bury", "--topic=x", "--bootstrap-servers=x"], "invalid choice: 'bury' (choose from 'list', 'replay')"),
        (["list", "--topic=x", "--bootstrap-servers=127.0.0.1:9"], "lab: Kafka at 127.0.0.1:9 can't be asked: "),
    ],
)
def test_what_can_not_work_is_one_line(capsys, arguments, line):
    """Exit code 2 and what is wrong."""
    try:
        code = main(["dlq", *arguments])
    except SystemExit as end:
        code = end.code
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert code == 2
    assert line in said


class Broker:
    """A source topic of two partitions and its dead-letter topic, each with a name of its own."""

    def __init__(self, bootstrap):
        name = uuid.uuid4().hex[:8]
        self.bootstrap, self.source, self.dead = bootstrap, f"events-{name}", f"dead-{name}"
        topics.create(bootstrap, {self.source: 2, self.dead: 1})

    def bury(self, *rows):
        """Dead letters as (partition, offset, value) of messages, in order; ``None`` instead makes one without headers."""
        producer = Producer({"bootstrap.servers": self.bootstrap})
        for row in rows:
            if row is None:
                producer.produce(self.dead, b"x")
                continue
            partition, offset, value = row
            reason = Reason("it failed", 4, self.source, partition, offset, 1.0, 2.0)
            headers = deadletter.stamped([("trace", b"7")], reason)
            producer.produce(self.dead, value, b"key", headers=headers)
        assert producer.flush(10) == 0

    def lab(self, *arguments):
        """Run the command; (exit code, stdout, stderr)."""
        command = [
            sys.executable,
            "-m",
            "lab",
            "dlq",
            *arguments,
            f"--bootstrap-servers={self.bootstrap}",
            f"--topic={self.dead}",
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def arrived(self):
        """(partition, value, headers) of every message in the source topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test"})
        rows = []
        for number in range(2):
            whole = TopicPartition(self.source, number, 0)
            _, end = consumer.get_watermark_offsets(whole, timeout=10)
            consumer.assign([whole])
            while end:
                message = consumer.poll(10)
                rows.append((message.partition(), message.value(), message.headers()))
                end -= 1
        consumer.close()
        return rows


@pytest.fixture
def broker(bootstrap):
    """Topics of this test's own."""
    return Broker(bootstrap)


@pytest.mark.cluster
def test_a_replay_sends_each_message_back_once(broker):
    """To its partition, with its headers and one replay more; copies and what was replayed before are not sent again."""
    broker.bury((1, 5, b"a"), (0, 7, b"b"), (1, 5, b"a"))
    code, out, _ = broker.lab("list")
    assert code == 0
    assert all(word in out for word in (WAITING, COPY, f"{broker.source}/1/5", "it failed"))
    listed = json.loads(broker.lab("list", "--json")[1])
    assert [(one["letter"], one["partition"], one["offset"], one["state"]) for one in listed] == [
        ([0, 0], 1, 5, WAITING),
        ([0, 1], 0, 7, WAITING),
        ([0, 2], 1, 5, COPY),
    ]
    code, out, said = broker.lab("replay")
    assert (code, said) == (0, "")
    assert "3 letters: 2 waited, 0 were replayed before, 1 are copies" in out
    assert "2 sent, 2 acknowledged, 0 failed, 0 unknown" in out
    rows = broker.arrived()
    assert [(partition, value) for partition, value, _ in rows] == [(0, b"b"), (1, b"a")]
    for _, _, headers in rows:
        assert deadletter.replays(headers) == 1
        assert ("trace", b"7") in headers
        assert deadletter.read(headers).error == "it failed"

    broker.bury((0, 7, b"b"), (0, 9, b"c"))
    code, out, _ = broker.lab("replay", "--json")
    told = json.loads(out)
    assert (code, told["sent"], told["acknowledged"]) == (0, 1, 1)
    assert told["letters"] == {WAITING: 1, REPLAYED: 3, COPY: 1}
    code, out, _ = broker.lab("replay", "--json")
    assert (code, json.loads(out)["sent"]) == (0, 0)
    assert len(broker.arrived()) == 3


@pytest.mark.cluster
def test_what_is_no_dead_letter_is_named(broker):
    """A message without the headers, by topic, partition and offset; and nothing is sent."""
    broker.bury((0, 1, b"a"), None)
    code, out, said = broker.lab("replay")
    assert (code, out) == (2, "")
    assert said.startswith(f"lab: {broker.dead}, partition 0, offset 1: headers: 'no header dlq.error' is not allowed")
    assert broker.arrived() == []


@pytest.mark.cluster
def test_a_topic_that_is_gone_is_named(broker):
    """The letters' own topic, or the one they would go back to: one line, and nothing is sent."""
    there, broker.source = broker.source, "gone"
    broker.bury((0, 1, b"a"))
    code, _, said = broker.lab("replay")
    assert code == 2
    assert "dlq.topic: 'gone' is not allowed; allowed: a topic that is there" in said
    broker.source = there
    broker.bury((0, 1, b"a"), (7, 1, b"a"))
    code, _, said = broker.lab("replay")
    assert code == 2
    assert "dlq.partition: 7 is not allowed; allowed: below 2" in said
    assert broker.arrived() == []
    broker.dead = "nowhere"
    code, _, said = broker.lab("list")
    assert code == 2
    assert "--topic: 'nowhere' is not allowed; allowed: a topic that is there" in said
