"""Receipts against librdkafka's own mock broker: those of a batch count when they are acknowledged, and not before."""

import pytest
from confluent_kafka import Producer

from lab.programs.consumer.downstream import NotDurable, Receipt, Store
from tests.unit.programs.consumer.messages import Message

TOPICS = ("receipts", "dead-letters", "output")


def receipts(first):
    """The receipts of a batch: of two partitions, ten messages each."""
    return [Receipt("pod", partition, first, first + 9, 10) for partition in (0, 1)]


@pytest.fixture
def durable():
    """The batches that were called durable."""
    return []


def test_batches_are_durable_in_their_order_and_once(durable):
    """None before the store has answered; all of them, in order, when the store was waited for."""
    # Nothing is sent before the flush, however long the machine takes for the writes.
    producer = Producer({"test.mock.num.brokers": 1, "enable.idempotence": True, "linger.ms": 60_000})
    store = Store(producer, *TOPICS, durable.append)
    written = [receipts(first) for first in range(0, 100, 10)]
    for batch in written:
        store.write(batch)
    assert durable == []
    store.settle()
    assert durable == written
    store.settle()
    assert durable == written


def test_a_receipt_that_is_not_acknowledged_makes_no_batch_durable(durable):
    """The wait raises, and nothing may be committed."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:9", "message.timeout.ms": 50, "log_level": 0})
    store = Store(producer, *TOPICS, durable.append)
    store.write(receipts(0))
    with pytest.raises(NotDurable):
        store.settle()
    assert durable == []


def test_what_is_not_durable_is_not_emitted():
    """The wait raises before any receipt is written, so its message is processed again."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:9", "message.timeout.ms": 50, "log_level": 0})
    store = Store(producer, *TOPICS, lambda _: None)
    with pytest.raises(NotDurable):
        store.emit([Message(2, 5)], 1.5)
