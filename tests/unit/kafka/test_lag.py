"""What the readers of lag make of a leader that has died, by a client that answers as librdkafka 2.16 then does."""

import multiprocessing
import os
import signal
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, OFFSET_INVALID, KafkaError, KafkaException, Producer, TopicPartition

from lab.errors import LabFault
from lab.kafka import lag
from lab.kafka.lag import BATCH, GroupsProcess, GroupsReader, LagReader, PartitionLag
from lab.kafka.numbering import Numbering

ENDS, COMMITTED, ALIVE, DEAD = {0: 10}, 4, 0, 1


def done(value):
    """A Future that has its result."""
    future = Future()
    future.set_result(value)
    return future


class Client:
    """Of two partitions the leader of ALIVE answers. DEAD has the offset that librdkafka leaves, and no error."""

    def __init__(self, settings):
        pass

    def list_topics(self, topic, timeout):
        """A topic of two partitions."""
        return SimpleNamespace(topics={"t": SimpleNamespace(partitions={ALIVE: None, DEAD: None}, error=None)})

    def committed(self, parts, timeout):
        """The group's offsets, of both: its coordinator lives."""
        return [TopicPartition(part.topic, part.partition, COMMITTED) for part in parts]

    def list_consumer_group_offsets(self, requests, request_timeout):
        """The same, as an admin client asks."""
        (request,) = requests
        return {request.group_id: done(SimpleNamespace(topic_partitions=self.committed(request.topic_partitions, 0)))}

    def list_offsets(self, request, request_timeout):
        """Seen with three brokers of which one was killed: -1001 for 8 of 24 partitions, for some 10 s."""
        return {part: done(SimpleNamespace(offset=ENDS.get(part.partition, OFFSET_INVALID))) for part in request}

    def offsets_for_times(self, parts, timeout):
        """A partition that no leader answers for keeps the offset of the question."""
        return [TopicPartition(part.topic, part.partition, ENDS.get(part.partition, OFFSET_END)) for part in parts]


def test_a_leader_that_does_not_answer_is_an_error_and_no_lag_of_0(monkeypatch):
    """Of the partition alone where many groups are read; of the whole where one is."""
    monkeypatch.setattr(lag, "AdminClient", Client)
    monkeypatch.setattr(lag, "Consumer", Client)
    ((answer,),) = [batch.values() for batch in GroupsReader("x").read([("g", "t")])]
    assert answer[ALIVE] == PartitionLag(10, COMMITTED)
    assert isinstance(answer[DEAD], KafkaException)
    with pytest.raises(KafkaException) as fault:
        LagReader("x", "g", "t").read()
    for error in (answer[DEAD], fault.value):
        assert error.args[0].code() == KafkaError.LEADER_NOT_AVAILABLE
        assert "the leader of t [1] does not answer" in str(error)


class New(Client):
    """A group that has committed nothing, on logs that end at 10; ``starts`` are where they begin."""

    starts = {0: 7, 1: 0}

    def committed(self, parts, timeout):
        """None of both."""
        return [TopicPartition(part.topic, part.partition, OFFSET_INVALID) for part in parts]

    def offsets_for_times(self, parts, timeout):
        """The end, or the start, as it is asked for."""
        found = [10 if part.offset == OFFSET_END else self.starts.get(part.partition, OFFSET_BEGINNING) for part in parts]
        return [TopicPartition(part.topic, part.partition, offset) for part, offset in zip(parts, found, strict=True)]


def test_what_has_expired_is_no_lag_where_nothing_is_committed(monkeypatch):
    """It counts from the log's start; a start that no leader tells is an error, and no 0."""
    monkeypatch.setattr(lag, "Consumer", New)
    read = LagReader("x", "g", "t").read()
    assert read == {0: PartitionLag(10, None, 7), 1: PartitionLag(10, None, 0)}
    assert [part.lag for part in read.values()] == [3, 10]
    monkeypatch.setattr(New, "starts", {0: 7})
    with pytest.raises(KafkaException, match=r"the leader of t \[1\] does not answer"):
        LagReader("x", "g", "t").read()


def test_a_partition_more_than_several_topics_are_said_to_have_is_a_fault(monkeypatch):
    """It has no number among theirs."""
    monkeypatch.setattr(lag, "Consumer", Client)
    monkeypatch.setitem(ENDS, DEAD, 12)
    with pytest.raises(LabFault, match="partition 1 of t is none of t, u with 1 each"):
        LagReader("x", "g", Numbering(("t", "u"), 1)).read()


@pytest.fixture
def broker():
    """The broker's client, and its address."""
    client = Producer({"bootstrap.servers": "x", "test.mock.num.brokers": 1, "log_level": 0})
    (node,) = client.list_topics(timeout=10).brokers.values()
    return client, f"{node.host}:{node.port}"


def test_a_topic_that_was_deleted_is_not_made_again_by_asking(broker):
    """Alone or with others: it is an error, and it stays deleted."""
    client, address = broker
    reader = GroupsReader(address)
    for wanted in ([("enrich", "gone")], [("enrich", "gone"), ("enrich", "lost")]):
        for answer in next(reader.read(wanted)).values():
            assert isinstance(answer, KafkaException)
        assert list(client.list_topics(timeout=10).topics) == []


@pytest.fixture
def process(broker):
    """A reader in a process of its own."""
    reader = GroupsProcess(broker[1])
    yield reader
    reader.close()


def test_a_process_of_its_own_answers_like_the_reader(process):
    """In batches, and with the errors of each group."""
    wanted = [(f"group-{number}", "gone") for number in range(BATCH + 1)]
    batches = list(process.read(wanted))
    assert [len(batch) for batch in batches] == [BATCH, 1]
    answers = {pair: answer for batch in batches for pair, answer in batch.items()}
    assert answers.keys() == set(wanted)
    assert {answer.args[0].code() for answer in answers.values()} == {KafkaError.UNKNOWN_TOPIC_OR_PART}
    assert list(process.read([])) == []


def test_a_process_that_ended_costs_a_question_and_is_started_anew(process):
    """As librdkafka ends it where a coordinator moves."""
    assert list(process.read([("enrich", "gone")]))
    (child,) = multiprocessing.active_children()
    child.kill()
    with pytest.raises(KafkaException, match="the process that asks ended with code -9"):
        list(process.read([("enrich", "gone")]))
    assert list(process.read([("enrich", "gone")]))
    process.close()
    assert multiprocessing.active_children() == []


def test_a_process_that_says_nothing_is_ended(process, monkeypatch):
    """It is stopped, and would never answer."""
    assert list(process.read([("enrich", "gone")]))
    (child,) = multiprocessing.active_children()
    os.kill(child.pid, signal.SIGSTOP)
    monkeypatch.setattr(lag, "DEADLINE_S", 0.2)
    with pytest.raises(KafkaException, match=r"no answer within 0\.2 s"):
        list(process.read([("enrich", "gone")]))
    assert multiprocessing.active_children() == []


def test_what_the_reader_raises_is_raised(broker):
    """Settings that the client library does not take, each time that it is asked."""
    reader = GroupsProcess(broker[1], {"no.such.setting": "1"})
    for _ in range(2):
        with pytest.raises(KafkaException, match=r"no\.such\.setting"):
            list(reader.read([("enrich", "gone")]))
    reader.close()
