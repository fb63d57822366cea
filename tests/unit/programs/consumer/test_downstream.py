"""Receipts sum up what was processed, and slots take the time that processing takes."""

from __future__ import annotations

import threading
import time
import zlib

import pytest
from confluent_kafka import Producer
from hypothesis import given
from hypothesis import strategies as st

from lab.inputs.consumer import Cost
from lab.programs.consumer.downstream import NotDurable, Receipt, Slots, Store, summarize

from .messages import message

rows = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2**40)), max_size=60)


@given(rows, st.floats(0.1, 10), st.floats(0, 10))
def test_receipts_account_for_every_message(messages, low, spread):
    """Counts, checksums and ends of the receipts are those of the messages, by partition."""
    batch = [message(partition, offset, seq) for offset, (partition, seq) in enumerate(messages)]
    cost = Cost(low, low + spread)
    total, receipts = summarize(batch, cost, "pod")
    assert total == pytest.approx(sum(cost.total([seq]) for _, seq in messages))
    assert len(batch) * cost.low <= total + 1e-6
    assert total <= len(batch) * cost.high + 1e-6
    for receipt in receipts:
        mine = [one for one in batch if one.partition() == receipt.partition]
        assert (receipt.first, receipt.last, receipt.count) == (mine[0].offset(), mine[-1].offset(), len(mine))
        assert receipt.checksum == sum(zlib.crc32(one.value()) for one in mine)
    assert sum(receipt.count for receipt in receipts) == len(batch)


def test_the_mean_cost_is_the_middle_of_its_range():
    """Over many messages a 2-10 ms cost averages 6 ms, so a pod's rate is what its settings say."""
    cost = Cost.parse("2-10")
    assert cost.total(range(20_000)) / 20_000 == pytest.approx(cost.mean, rel=0.01)


@pytest.mark.parametrize("text", ["0", "-1", "10-2", "fast", "nan"])
def test_a_cost_that_makes_no_sense_is_refused(text):
    """Zero, negative, reversed and unreadable costs raise ValueError."""
    with pytest.raises(ValueError, match=r".*"):
        Cost.parse(text)


@pytest.mark.parametrize(("burn", "least", "most"), [(0, 0, 0.03), (50, 0.1, 0.2), (100, 0.2, 0.3)])
def test_a_share_of_the_time_is_computed(burn, least, most):
    """200 ms of work use so much CPU of this thread, and take at least their time."""
    slots, begun, used = Slots(1, burn), time.monotonic(), time.thread_time()
    assert slots.work(200, threading.Event())
    assert time.monotonic() - begun >= 0.2
    assert least <= time.thread_time() - used <= most


def test_computing_is_given_up_when_the_drain_time_is_over():
    """As waiting is: no receipt, no commit."""
    abandon = threading.Event()
    abandon.set()
    begun = time.monotonic()
    assert not Slots(1, 100).work(60_000, abandon)
    assert time.monotonic() - begun < 30


TOPICS = ("receipts", "dead-letters", "output")


def receipts(first):
    """The receipts of a batch: of two partitions, ten messages each."""
    return [Receipt("pod", partition, first, first + 9, 10) for partition in (0, 1)]


def test_batches_are_durable_in_their_order_and_once():
    """None before the store has answered; all of them, in order, when the store was waited for."""
    durable = []
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


def test_what_is_not_acknowledged_is_not_durable():
    """The wait for a receipt or for an emitted message raises: nothing may be committed, and it is processed again."""
    producer = Producer({"bootstrap.servers": "127.0.0.1:9", "message.timeout.ms": 50, "log_level": 0})
    durable = []
    written, emitted = (Store(producer, *TOPICS, durable.append) for _ in range(2))
    written.write(receipts(0))
    with pytest.raises(NotDurable):
        written.settle()
    with pytest.raises(NotDurable):
        emitted.emit([message(2, 5)], 1.5)
    assert durable == []
