"""What is pure of starting a broker."""

import uuid

from lab.cluster import broker
from lab.cluster.broker import cluster_id


def test_a_cluster_id_is_never_taken_for_an_option(monkeypatch):
    """One random id in 64 would begin with a dash: it is drawn again."""
    drawn = iter([uuid.UUID(bytes=b"\xf8" + bytes(15)), uuid.UUID(bytes=bytes(16))])
    monkeypatch.setattr(uuid, "uuid4", lambda: next(drawn))
    assert cluster_id() == "A" * 22


def test_a_broker_is_waited_for_until_every_coordinator_answers():
    """Each group name asked for hashes, as in Kafka, to another partition of the offsets: none may still be loading."""
    asked, settings = broker._ONE_OF_EACH, broker.properties("data", {"PLAINTEXT": "h:1"}, {"PLAINTEXT": "h:1"}, "h:2")
    partitions = int(dict(line.split("=", 1) for line in settings.splitlines())["offsets.topic.num.partitions"])
    assert sorted(ord(name) % partitions for name in asked) == list(range(partitions))  # Java's hash code of one character
