"""A dead-letter topic listed and replayed: on a real broker by the command itself, and which letters wait as a pure rule."""

import json
import subprocess
import sys
import uuid
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource  # type: ignore[attr-defined]
from hypothesis import given
from hypothesis import strategies as st

from lab.kafka import deadletter, topics
from lab.kafka.deadletter import Reason
from lab.wait import until
from tests.scenarios.zero_loss.programs import deadletters
from tests.scenarios.zero_loss.programs.deadletters import (
    COPY,
    DONE,
    FOREIGN,
    GONE,
    OTHER,
    WAITING,
    Foreign,
    Letter,
    resend,
    states,
)
from tests.scenarios.zero_loss.programs.dlq import main

THERE = {("events", 0), ("events", 1)}
# What a dead-letter topic of three partitions may hold: (partition, source topic, source offset); no topic is no dead letter.
written = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from(["events", "events", "gone", None]), st.integers(0, 8)), max_size=25
)


def entries_of(rows):
    """Entries from (partition, topic, source), with offsets as the log would give them, by partition and offset."""
    ends, found = {}, []
    for partition, topic, source in rows:
        offset = ends[partition] = ends.get(partition, -1) + 1
        if topic is None:
            found.append(Foreign(partition, offset, "no header dlq.error"))
        else:
            found.append(Letter(partition, offset, b"k", b"v", (), Reason("x", 4, topic, source % 2, source, 1.0, 2.0)))
    return sorted(found, key=lambda entry: (entry.partition, entry.offset))


def sources(entries, *topics):
    """The messages that letters of these topics are about."""
    return {one.message for one in entries if isinstance(one, Letter) and one.reason.topic in topics}


@given(written, st.fixed_dictionaries({number: st.integers(0, 10) for number in range(3)}))
def test_each_message_waits_at_most_once(rows, committed):
    """Below the committed offsets all is done; of the rest one letter about a message waits, unless one was done anywhere."""
    entries = entries_of(rows)
    found = states(entries, committed, THERE)
    done = [entry for entry in entries if entry.offset < committed[entry.partition]]
    assert [entry for entry, state in zip(entries, found, strict=True) if state == DONE] == done
    waiting = [entry.message for entry, state in zip(entries, found, strict=True) if state == WAITING]
    assert len(waiting) == len(set(waiting))
    assert set(waiting) == sources(entries, "events") - sources(done, "events")
    rest = [(entry, state) for entry, state in zip(entries, found, strict=True) if state != DONE]
    assert all((state == FOREIGN) == isinstance(entry, Foreign) for entry, state in rest)
    assert all(state == GONE for entry, state in rest if isinstance(entry, Letter) and entry.reason.topic == "gone")


def test_a_copy_in_a_lower_partition_is_one():
    """Its original in partition 1 was replayed: the copy in partition 0 stands before it, and is not sent again."""
    entries = entries_of([(1, "events", 5), (0, "events", 5)])
    assert states(entries, {1: 1}, THERE) == [COPY, DONE]


def test_another_message_at_the_same_place_is_no_copy():
    """A topic that was made anew counts from 0 again: what is told apart by key and value waits."""
    (old,) = entries_of([(0, "events", 5)])
    assert states([old, replace(old, offset=1, value=b"new"), replace(old, offset=2)], {0: 1}, THERE) == [DONE, WAITING, COPY]


@given(st.lists(st.tuples(written, st.sets(st.integers(0, 8))), max_size=4))
def test_what_is_refused_is_sent_later_and_nothing_twice(runs):
    """Replay after replay, with letters added before each and some refused: in the end each message was sent once."""
    rows, committed, sent = [], {}, []
    for more, refused in [*runs, ([], set())]:
        rows += more
        entries = entries_of(rows)
        before = dict(committed)

        def send(letter, refused=refused):
            if letter.reason.offset in refused:
                return False
            sent.append(letter.message)
            return True

        for partition, offset in resend(entries, states(entries, committed, THERE), send):
            assert offset >= committed.get(partition, 0)
            committed[partition] = offset + 1
        assert all(committed.get(number, 0) >= offset for number, offset in before.items())
    assert len(sent) == len(set(sent))
    assert set(sent) == sources(entries, "events")
    assert set(states(entries, committed, THERE)) <= {DONE}


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        ([], 2, "the following arguments are required: action, --bootstrap-servers, --topic"),
        (["replay", "--topic=x"], 2, "the following arguments are required: --bootstrap-servers"),
        (["replay", "--topic=x", "--bootstrap-servers=x"], 2, "the following arguments are required: --to"),
        (["replay", "--topic=x", "--bootstrap-servers=x", "--to=a,"], 2, "--to: 'a,' is not allowed; allowed: names of topics"),
        (
            ["list", "--topic=x", "--bootstrap-servers=x", "--kafka-settings=s3cret"],
            2,
            "--kafka-settings: '(not shown)' is not",
        ),
        (
            ["list", "--topic=x", "--bootstrap-servers=x", '--kafka-settings={"sasl.pass": "s3cret"}'],
            2,
            "settings of librdkafka",
        ),
        (["bury", "--topic=x", "--bootstrap-servers=x"], 2, "invalid choice: 'bury' (choose from 'list', 'replay')"),
        (["list", "--topic=x", "--bootstrap-servers=127.0.0.1:9"], 3, "lab: Kafka at 127.0.0.1:9 can't be asked: "),
    ],
)
def test_what_can_not_work_is_one_line(capsys, monkeypatch, arguments, code, line):
    """Exit code 2, or 3 where there is no Kafka, and what is wrong; no secret. Kafka has half a second to answer here."""
    monkeypatch.setattr(deadletters, "TIMEOUT_S", 0.5)
    try:
        ended = main(arguments)
    except SystemExit as end:
        ended = end.code
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert ended == code
    assert "s3cret" not in said
    assert line in said


class Broker:
    """A source topic of two partitions and its dead-letter topic, each with a name of its own."""

    def __init__(self, bootstrap):
        name = uuid.uuid4().hex[:8]
        self.bootstrap, self.source, self.dead = bootstrap, f"events-{name}", f"dead-{name}"
        self.to: str | None = None
        self.admin = AdminClient({"bootstrap.servers": bootstrap})
        topics.create(bootstrap, {self.source: 2, self.dead: 2})

    def configure(self, topic, **settings):
        """Set a topic's configuration; returns when the broker has it, which is a moment after the controller."""
        wanted = {name.replace("_", "."): str(v) for name, v in settings.items()}
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, wanted)
        for future in self.admin.alter_configs([resource]).values():
            future.result(timeout=60)

        def applied():
            (described,) = self.admin.describe_configs([resource]).values()
            shown = described.result(timeout=60)
            return all(shown[name].value == value for name, value in wanted.items())

        until(applied, 120, f"the configuration of {topic}", every_s=0.02)

    def bury(self, *rows, to=0):
        """Dead letters as (partition, offset, value) of messages, in order; ``None`` instead makes one without headers."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "message.max.bytes": 4_000_000})
        for row in rows:
            self.one(producer, row, to)
        assert producer.flush(60) == 0

    def one(self, producer, row, to):
        """Give ``producer`` one letter for partition ``to``."""
        if row is None:
            producer.produce(self.dead, b"x", partition=to)
            return
        partition, offset, value = row
        reason = Reason("it failed", 4, self.source, partition, offset, 1.0, 2.0)
        headers = deadletter.stamped([("trace", b"7"), ("none", None)], reason)
        producer.produce(self.dead, value, b"key", to, headers=headers)

    def lab(self, *arguments):
        """Run the command; (exit code, stdout, stderr)."""
        command = [sys.executable, "-m", "tests.scenarios.zero_loss.programs.dlq", *arguments]
        command += [f"--bootstrap-servers={self.bootstrap}", f"--topic={self.dead}"]
        command += [f"--to={self.to or self.source}"] if arguments[0] == "replay" else []
        ran = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
        return ran.returncode, ran.stdout, ran.stderr

    def replay(self, *arguments):
        """Replay; (exit code, what was told)."""
        code, out, said = self.lab("replay", "--json", *arguments)
        assert said == ""
        return code, json.loads(out)

    def arrived(self):
        """(partition, value, headers) of every message in the source topic."""
        consumer = Consumer({"bootstrap.servers": self.bootstrap, "group.id": "test"})
        rows = []
        for number in range(2):
            whole = TopicPartition(self.source, number, 0)
            _, end = consumer.get_watermark_offsets(whole, timeout=60)
            consumer.assign([whole])
            while end:
                message = consumer.poll(60)
                rows.append((message.partition(), message.value(), message.headers()))
                end -= 1
        consumer.close()
        return rows

    def values(self):
        """The values that arrived, sorted."""
        return sorted(value for _, value, _ in self.arrived())


@pytest.fixture
def broker(bootstrap):
    """Topics of this test's own."""
    return Broker(bootstrap)


@pytest.mark.services
def test_a_replay_sends_each_message_back_once(broker):
    """To its partition, with its headers and one replay more; copies and what was replayed before are not sent again."""
    broker.bury((1, 5, b"a"), (0, 7, b"b"), (1, 5, b"a"))
    code, out, said = broker.lab("list")
    assert (code, said) == (0, "")
    assert all(
        word in out for word in (WAITING, COPY, f"{broker.source}/1/5", "it failed", "a first replay takes --from-beginning")
    )
    listed = json.loads(broker.lab("list", "--json")[1])
    assert [(one["letter"], one["partition"], one["offset"], one["state"]) for one in listed] == [
        ([0, 0], 1, 5, WAITING),
        ([0, 1], 0, 7, WAITING),
        ([0, 2], 1, 5, COPY),
    ]
    code, out, said = broker.lab("replay", "--from-beginning")
    assert (code, said) == (0, "")
    assert "3 letters: 2 waited, 0 were done with before, 1 are copies, 0 name another topic, 0 have no topic" in out
    assert "2 sent, 2 acknowledged, 0 failed, 0 unknown; 0 wait" in out
    rows = broker.arrived()
    assert [(partition, value) for partition, value, _ in rows] == [(0, b"b"), (1, b"a")]
    for _, _, headers in rows:
        assert deadletter.replays(headers) == 1
        assert headers[:2] == [("trace", b"7"), ("none", None)]
        assert deadletter.read(headers).error == "it failed"

    broker.bury((0, 7, b"b"), (0, 9, b"c"))
    code, told = broker.replay()
    assert (code, told["sent"], told["acknowledged"]) == (0, 1, 1)
    assert told["letters"] == {WAITING: 1, DONE: 3, COPY: 1, OTHER: 0, GONE: 0, FOREIGN: 0}
    code, told = broker.replay()
    assert (code, told["sent"]) == (0, 0)
    assert len(broker.arrived()) == 3
    assert "--from-beginning" not in broker.lab("list")[1]


@pytest.mark.services
def test_what_is_refused_keeps_back_its_partition_and_is_not_passed(broker):
    """The broker refuses the first of five letters at every run: the four behind wait, and no run sends anything twice."""
    broker.configure(broker.source, max_message_bytes=1_000)
    big = bytes(2_000)
    broker.bury((0, 1, big), *((0, offset, b"%d" % offset) for offset in range(2, 6)))
    broker.bury((0, 8, b"8"), (0, 9, b"9"), (0, 5, b"5"), (0, 10, b"10"), to=1)
    code, told = broker.replay("--from-beginning")
    # Partition 1 ends at the copy of a letter that was not sent.
    assert (code, told["sent"], told["acknowledged"], told["failed"], told["left"]) == (1, 3, 2, 1, 6)
    (named,) = told["named"]
    assert named.startswith(f"{broker.dead}, partition 0, offset 0: {broker.source}/0/1 was not acknowledged: ")
    assert "size too large" in named
    assert broker.values() == [b"8", b"9"]
    assert broker.replay()[1]["acknowledged"] == 0
    assert broker.values() == [b"8", b"9"]
    broker.configure(broker.source, max_message_bytes=10_000)
    code, told = broker.replay()
    assert (code, told["acknowledged"], told["left"]) == (0, 6, 0)
    assert broker.values() == sorted([big, *(b"%d" % offset for offset in (2, 3, 4, 5, 8, 9, 10))])


@pytest.mark.services
def test_what_the_client_itself_refuses_is_named(broker):
    """A letter above the client's own limit, behind one that is sent: that one is committed, and the other named."""
    broker.configure(broker.dead, max_message_bytes=4_000_000)
    broker.bury((0, 1, b"a"), (0, 2, bytes(2_000_000)), (0, 3, b"c"))
    code, told = broker.replay("--from-beginning")
    assert (code, told["acknowledged"], told["failed"], told["left"]) == (1, 1, 1, 2)
    assert f"offset 1: {broker.source}/0/2 was not acknowledged" in told["named"][0]
    code, told = broker.replay()
    assert (code, told["acknowledged"], told["failed"]) == (1, 0, 1)
    assert broker.values() == [b"a"]


@pytest.mark.services
def test_a_group_that_kafka_has_forgotten_replays_nothing_unasked(broker):
    """Without an offset in a partition with letters a replay is refused; with one, letters in a new place need no flag."""
    broker.bury((0, 1, b"a"))
    code, out, said = broker.lab("replay")
    assert (code, out) == (2, "")
    assert said.startswith(f"lab: {broker.dead}, partition 0: --group: '{broker.dead}-replay' is not allowed")
    assert "--from-beginning" in said
    assert len(said.splitlines()) == 1
    assert broker.values() == []
    assert broker.replay("--from-beginning")[0] == 0
    broker.bury((0, 2, b"b"), to=1)  # nothing was in that partition at the first replay
    assert broker.replay()[0] == 0
    assert broker.values() == [b"a", b"b"]
    # What Kafka does to a group without members some days after its last commit.
    group = f"{broker.dead}-replay"
    broker.admin.delete_consumer_groups([group])[group].result(timeout=60)
    code, out, said = broker.lab("replay")
    assert (code, out) == (2, "")
    assert "--from-beginning" in said
    assert broker.values() == [b"a", b"b"]


@pytest.mark.services
def test_what_can_not_be_sent_is_passed_over_and_named(broker):
    """A message that is no letter, one of a topic and one of a partition that are gone: the others go, exit code 1, once."""
    there, broker.source = broker.source, "gone"
    broker.bury(None, (0, 1, b"x"))
    broker.source = there
    broker.to = f"{there},gone"
    broker.bury((0, 1, b"a"), (7, 1, b"y"), (0, 2, b"b"))
    listed = json.loads(broker.lab("list", "--json")[1])
    assert [one["state"] for one in listed] == [FOREIGN, GONE, WAITING, GONE, WAITING]
    assert listed[0]["error"] == "no header dlq.error"
    assert "no header dlq.error" in broker.lab("list")[1]
    code, told = broker.replay("--from-beginning")
    assert (code, told["acknowledged"], told["left"], told["passed_over"]) == (1, 2, 0, 3)
    assert told["named"] == [
        f"{broker.dead}, partition 0, offset 0: passed over: no header dlq.error",
        f"{broker.dead}, partition 0, offset 1: passed over: gone/0/1: no such topic and partition",
        f"{broker.dead}, partition 0, offset 3: passed over: {there}/7/1: no such topic and partition",
    ]
    assert broker.values() == [b"a", b"b"]
    assert broker.replay() == (0, broker.replay()[1])
    assert broker.values() == [b"a", b"b"]


@pytest.mark.services
def test_a_letter_goes_to_no_topic_that_was_not_told(broker):
    """Whoever may write a letter names its topic: nothing is sent before the user has decided on that one too."""
    there, broker.source = broker.source, broker.source.replace("events", "payroll")
    topics.create(broker.bootstrap, {broker.source: 2})
    broker.bury((0, 1, b"forged"))
    other, broker.source = broker.source, there
    broker.bury((0, 1, b"a"))
    code, out, said = broker.lab("replay", "--from-beginning")
    assert (code, out) == (2, "")
    assert f"{broker.dead}: --to: '{there}' is not allowed; allowed: the topics that letters name, here also {other}" in said
    assert broker.values() == []
    code, told = broker.replay("--from-beginning", "--pass-over-others")
    assert (code, told["acknowledged"], told["passed_over"], told["letters"][OTHER]) == (1, 1, 1, 1)
    assert told["named"] == [f"{broker.dead}, partition 0, offset 0: passed over: {other}/0/1: not a topic of --to"]
    assert broker.values() == [b"a"]
    broker.source = other
    assert broker.values() == []


@pytest.mark.services
def test_a_log_that_ends_in_a_marker_is_read(broker):
    """A transaction's marker takes the last offset, which no reader is ever given."""
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": broker.dead})
    producer.init_transactions(30)
    producer.begin_transaction()
    broker.one(producer, (0, 1, b"a"), 0)
    producer.commit_transaction(30)
    code, told = broker.replay("--from-beginning")
    assert (code, told["acknowledged"]) == (0, 1)
    assert broker.values() == [b"a"]


@pytest.mark.services
def test_a_dead_letter_topic_that_is_not_there_is_named(broker):
    """One line, exit code 2."""
    broker.dead = "nowhere"
    code, _, said = broker.lab("list")
    assert code == 2
    assert "--topic: 'nowhere' is not allowed; allowed: a topic that is there" in said
