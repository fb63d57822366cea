"""Starting a broker: its settings, and how it is waited for."""

import os
import signal
import threading
import uuid
from contextlib import closing

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from lab.cluster import broker
from lab.cluster.broker import cluster_id
from lab.inputs.faults import CONSUMER, CUT, Injection
from lab.trial.network import Network


def test_a_cluster_id_is_never_taken_for_an_option(monkeypatch):
    """One random id in 64 would begin with a dash: it is drawn again."""
    drawn = iter([uuid.UUID(bytes=b"\xf8" + bytes(15)), uuid.UUID(bytes=bytes(16))])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert cluster_id() == "A" * 22


def read(text):
    """The settings of a ``server.properties``."""
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_broker_is_waited_for_until_every_coordinator_answers():
    """Each group name asked for hashes, as in Kafka, to another partition of the offsets: none may still be loading."""
    asked, settings = broker._ONE_OF_EACH, broker.properties("data", {"PLAINTEXT": "h:1"}, {"PLAINTEXT": "h:1"}, "h:2")
    partitions = int(read(settings)["offsets.topic.num.partitions"])
    assert sorted(ord(name) % partitions for name in asked) == list(range(partitions))  # Java's hash code of one character


def test_a_question_about_groups_that_was_given_up_is_put_again(kafka, monkeypatch):
    """The broker stands still once it has said that it is there. At late answers an admin client has ended its process."""
    pid, stops, given_up = kafka.daemon.process.pid, iter([True]), []

    class Asking(Consumer):
        def list_topics(self, *arguments, **named):
            there = super().list_topics(*arguments, **named)
            if next(stops, False):
                os.kill(pid, signal.SIGSTOP)
                threading.Timer(1.5, os.kill, (pid, signal.SIGCONT)).start()
            return there

        def committed(self, *arguments, **named):
            try:
                return super().committed(*arguments, **named)
            except KafkaException as error:
                given_up.append(error.args[0].code())
                raise

    monkeypatch.setattr(broker, "Consumer", Asking)
    monkeypatch.setattr(broker, "ASK_S", 0.3)
    broker.wait_for(kafka.bootstrap, kafka.daemon.check, kafka.settings)
    assert set(given_up) == {KafkaError._TIMED_OUT}


def test_a_node_of_three_keeps_three_copies_of_what_kafka_itself_keeps():
    """And waits for two. A node by itself has one of each, and no setting for topics, as before there were several."""
    own, voters = {"CLIENT": "h:2"}, {1: "h:11", 2: "h:12", 3: "h:13"}
    several = read(broker.properties("data", own, own, "h:12", number=2, voters=voters))
    assert (several["node.id"], several["controller.quorum.voters"]) == ("2", "1@h:11,2@h:12,3@h:13")
    assert (several["offsets.topic.replication.factor"], several["min.insync.replicas"]) == ("3", "2")
    alone = read(broker.properties("data", own, own, "h:12"))
    assert (alone["node.id"], alone["controller.quorum.voters"]) == ("1", "1@h:12")
    assert (alone["offsets.topic.replication.factor"], alone.get("min.insync.replicas")) == ("1", None)


def test_who_comes_by_the_second_listener_stays_behind_the_proxy(kafka):
    """The broker tells it the proxy's address, and all others its own. A cut stops it, and then it goes on."""
    with closing(Network(*kafka.consumers)) as network:
        known = {"log_level": 0, **kafka.settings}
        addresses = {"one": network.front, "other": kafka.bootstrap}
        one, other = (AdminClient({**known, "bootstrap.servers": at, "client.id": who}) for who, at in addresses.items())
        for asked, told in ((one, network.front), (other, kafka.bootstrap)):
            assert [f"{node.host}:{node.port}" for node in asked.list_topics(timeout=20).brokers.values()] == [told]
        undo = network.strike("one", Injection(0.0, CONSUMER, CUT, 1.0, 0.0))
        with pytest.raises(KafkaException):
            one.list_topics(timeout=1)
        other.list_topics(timeout=20)
        undo()
        one.list_topics(timeout=20)
        network.check()
