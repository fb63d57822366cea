"""From topics to tables: the wire decoded in SQL, and a real broker read exactly once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import psutil
import pyarrow.parquet as pq
import pytest
from confluent_kafka import Producer
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from lab.cluster import broker
from lab.errors import LabFault
from lab.kafka import deadletter, event, topics
from lab.kafka.deadletter import Reason
from lab.kafka.numbering import Numbering
from lab.record.ledger import CHECKPOINT, INGESTED
from lab.record.ledger import session as ledger_session
from lab.record.ledger.ingest import Topics, decode_events, ingest, read
from lab.record.ledger.settle import RATES, settle
from lab.record.store import Record
from lab.wait import until

U63 = st.integers(0, 2**63 - 1)
VALUE = st.builds(event.encode, U63, U63, U63, st.binary(min_size=232, max_size=232))
PARTITIONS = 3


@settings(max_examples=5, deadline=None)
@given(values=st.lists(VALUE, min_size=1, max_size=100))
def test_spark_decodes_what_the_producer_encodes(session: SparkSession, values: list[bytes]) -> None:
    """entity_id, seq, ts and the checksum of every value are what lab.kafka.event makes of the same bytes."""
    records = [(0, offset, value) for offset, value in enumerate(values)]
    found = decode_events(session.createDataFrame(records, "partition int, offset long, value binary")).collect()
    expected = [(0, offset, *event.decode(value)[:3], event.check(value)) for offset, value in enumerate(values)]
    assert [tuple(row) for row in found] == expected


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real broker."""
    started = broker.start(tmp_path_factory.mktemp("broker"))
    yield started.bootstrap
    started.stop()


def send(bootstrap: str, topic: str, *values: bytes, **more: Any) -> None:
    """Produce ``values`` to a topic, all of them."""
    producer = Producer({"bootstrap.servers": bootstrap, "enable.idempotence": True})
    for value in values:
        producer.produce(topic, value, value[:8], **more)
    assert producer.flush(30) == 0


def receipt(partition: int, first: int, values: list[bytes]) -> bytes:
    """The receipt of pod a about these events, which are there from offset ``first`` on."""
    said = {"pod": "a", "partition": partition, "first": first, "last": first + len(values) - 1, "count": len(values)}
    return json.dumps(said | {"checksum": sum(map(event.check, values)), "start": 1.0, "end": 2.0}).encode()


class Trial:
    """Events and their receipts, in topics of their own."""

    def __init__(self, bootstrap: str, name: str) -> None:
        self.bootstrap, self.topics = bootstrap, Topics(f"{name}-events", f"{name}-receipts")
        topics.create(bootstrap, {self.topics.events: PARTITIONS, self.topics.receipts: 1})
        self.ends = [0] * PARTITIONS

    def produce(self, count: int, but: int | None = None) -> None:
        """``count`` events to each partition and one receipt about them, except for partition ``but``."""
        for partition in range(PARTITIONS):
            first = self.ends[partition]
            offsets = range(first, first + count)
            values = [event.encode(7, offset * PARTITIONS + partition, 0, os.urandom(232)) for offset in offsets]
            send(self.bootstrap, self.topics.events, *values, partition=partition)
            self.ends[partition] += count
            if partition != but:  # a receipt is about messages that are there
                send(self.bootstrap, self.topics.receipts, receipt(partition, first, values))


def test_a_record_is_settled_from_a_broker(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    """Ingested while it runs and then to its end, each event is there once; the record says so and can be moved."""
    trial = Trial(kafka, "settled")
    trial.produce(500)
    record = tmp_path / "record"
    for count in (300, 200):
        ingest(session, kafka, trial.topics, record / "ledger")
        trial.produce(count)
    verdict = settle(session, kafka, trial.topics, record)
    assert verdict.exact
    assert (verdict.produced, verdict.processed, verdict.resent, verdict.receipts) == (3000, 3000, 0, 9)

    left = ["ledger", "rates.parquet", "receipts.parquet", "reconciliation.json"]
    assert sorted(path.name for path in record.iterdir()) == left
    assert [path.name for path in (record / "ledger").iterdir()] == ["events"]
    moved = Record(record.rename(tmp_path / "moved"))
    assert moved.reconciliation == verdict
    assert len(moved.produced) == 3000
    assert moved.rates.query("series == 'consumed' and pod == 'a' and bin_s == 1").messages.sum() == 3000

    # All was written when it was interrupted: the verdict is the one that stands there, and the rest is removed.
    ledger = moved.folder / "ledger"
    committed = sorted(file.name for file in (ledger / "events").glob("*.parquet"))
    (ledger / INGESTED).write_text(json.dumps({"events": committed}))
    shutil.copy(ledger / "events" / committed[0], ledger / "events" / "part-of-a-failed-batch.parquet")
    (ledger / CHECKPOINT / "events").mkdir(parents=True)
    assert settle(session, "nowhere:1", trial.topics, moved.folder) == verdict
    assert sorted(file.name for file in (ledger / "events").glob("*.parquet")) == committed
    assert sorted(file.name for file in ledger.iterdir()) == ["events"]


SETTLE = """
import sys
from pathlib import Path
from lab.record.ledger import ingest, session
from lab.record.ledger.ingest import Topics
from lab.record.ledger.settle import settle
master, bootstrap, events, receipts, record, most = sys.argv[1:]
ingest.MOST_OFFSETS = int(most)
settle(session.spark(master), bootstrap, Topics(events, receipts), Path(record))
session.stop()
"""


@pytest.mark.nightly
def test_a_killed_settlement_goes_on(
    session: SparkSession, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SIGKILL in the middle: what was ingested before it is not read again. Once all is, the verdict needs no broker."""
    trial = Trial(kafka, "killed")
    trial.produce(300)
    ledger = tmp_path / "ledger"
    arguments = ["local[*]", kafka, trial.topics.events, trial.topics.receipts, str(tmp_path), "10"]
    killed = subprocess.Popen([sys.executable, "-c", SETTLE, *arguments])
    try:
        until(lambda: (ledger / CHECKPOINT / "events" / "commits" / "3").exists(), 300, "some batches")
    finally:
        jvm = psutil.Process(killed.pid).children(recursive=True)
        killed.kill()
        killed.wait()
    # Its JVM ends by itself when it sees that. Until then it may write one more batch, beside the settlement that goes on.
    assert not psutil.wait_procs(jvm, timeout=300)[1]
    events = ledger / "events"
    done = {Path(name).name for name in read(session, ledger, "events").inputFiles()}
    first = {file.name: file.stat().st_ino for file in events.glob("*.parquet") if file.name in done}
    assert 30 < read(session, ledger, "events").count() < 900
    with monkeypatch.context() as patch:
        patch.setattr("lab.record.ledger.ingest.MOST_OFFSETS", 400)
        patch.setattr("lab.record.ledger.settle.check", lambda *_: (_ for _ in ()).throw(LabFault("no memory")))
        with pytest.raises(LabFault, match="no memory"):
            settle(session, kafka, trial.topics, tmp_path)
    verdict = settle(session, "nowhere:1", trial.topics, tmp_path)
    assert verdict.exact
    assert verdict.produced == 900
    after = {file.name: file.stat().st_ino for file in events.glob("*.parquet")}
    assert first.items() <= after.items()
    assert sum(pq.read_metadata(file).num_rows for file in events.glob("*.parquet")) == 900
    assert [path.name for path in ledger.iterdir()] == ["events"]


def test_a_cancelled_ingestion_is_not_taken_for_a_whole_one(
    session: SparkSession, kafka: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As at a deadline: the settlement fails, nothing says that all was ingested, and the next one goes on."""
    trial, ended = Trial(kafka, "cancelled"), list[BaseException]()
    trial.produce(300)
    monkeypatch.setattr("lab.record.ledger.ingest.MOST_OFFSETS", 10)

    def settled() -> None:
        try:
            settle(session, kafka, trial.topics, tmp_path)
        except LabFault as fault:
            ended.append(fault)

    thread = threading.Thread(target=settled)
    thread.start()
    until(lambda: (tmp_path / "ledger" / CHECKPOINT / "events" / "commits" / "1").exists(), 300, "some batches")
    ledger_session.cancel()
    thread.join(300)
    assert "cancelled before it was through" in str(ended[0])
    assert not (tmp_path / "ledger" / INGESTED).exists()
    monkeypatch.setattr("lab.record.ledger.ingest.MOST_OFFSETS", 400)
    assert settle(session, kafka, trial.topics, tmp_path).produced == 900


@pytest.mark.nightly
def test_two_workers_find_what_one_process_finds(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    """A master with workers in processes of their own, as a cluster has them: the same files, byte by byte or row by row."""
    trial = Trial(kafka, "elsewhere")
    trial.produce(400, but=1)
    trial.produce(100)
    here, there = tmp_path / "here", tmp_path / "there"
    settle(session, kafka, trial.topics, here)
    arguments = ["local-cluster[2,1,1024]", kafka, trial.topics.events, trial.topics.receipts, str(there), "500"]
    subprocess.run([sys.executable, "-c", SETTLE, *arguments], check=True, timeout=600)
    assert (here / "reconciliation.json").read_bytes() == (there / "reconciliation.json").read_bytes()
    for name in ("receipts.parquet", "rates.parquet"):
        assert pd.read_parquet(here / name).equals(pd.read_parquet(there / name))
    place = ["partition", "offset"]
    one, other = (pd.read_parquet(folder / "ledger/events").sort_values(place, ignore_index=True) for folder in (here, there))
    assert one.equals(other)


def test_several_topics_are_settled_by_number(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    """A partition of the second topic is a number of its own: in the events, against its receipts, and for its dead letters.

    A message without a receipt that has a letter is dead, and the reason is in the record. A letter without headers is a fault.
    """
    on = Numbering(("several", "several-2"), 2)
    trial = Topics(on, "several-receipts", "several-dead")
    topics.create(kafka, dict.fromkeys(on.topics, on.each) | {"several-receipts": 1, "several-dead": 1})
    for number in range(on.count):
        values = [event.encode(7, offset * on.count + number, 0, os.urandom(232)) for offset in range(100 + number)]
        topic, partition = on.place(number)
        send(kafka, topic, *values, partition=partition)
        done = values[:-1] if number == 3 else values  # the last one of all has a letter
        send(kafka, trial.receipts, receipt(number, 0, done))
    headers = deadletter.stamped([("own", b"1")], Reason("it failed", 4, *on.place(3), 102, 1.5, 2.5, 1))
    send(kafka, "several-dead", values[-1], headers=[*headers])
    verdict = settle(session, kafka, trial, tmp_path)
    assert verdict.exact
    assert (verdict.produced, verdict.processed, verdict.dead_messages, verdict.holes) == (406, 405, 1, 0)
    events = pd.read_parquet(tmp_path / "ledger" / "events")
    assert events.groupby("partition").size().to_dict() == {0: 100, 1: 101, 2: 102, 3: 103}
    assert (events["seq"] % on.count == events["partition"]).all()
    (letter,) = pd.read_parquet(tmp_path / "dead_letters.parquet").to_dict("records")
    assert letter | {"partition": 3, "offset": 102, "topic": "several-2", "attempts": 4, "error": "it failed"} == letter
    assert letter | {"first_failure": 1.5, "failed": 2.5, "replays": 1, "seq": 102 * on.count + 3} == letter

    stranger = deadletter.stamped([], Reason("it failed", 4, "others", 0, 0, 1.5, 2.5))
    faults = [("headless", headers[:3], "without header dlq"), ("strange", stranger, "0 of others is none of the trial's")]
    for name, wrong, says in faults:
        topics.create(kafka, {name: 1})
        send(kafka, name, values[-1], headers=[*wrong])
        with pytest.raises(LabFault, match=says) as fault:
            settle(session, kafka, replace(trial, dead_letters=name), tmp_path / name)
        assert "\n" not in str(fault.value)


def test_topics_that_are_still_written_to_agree(session: SparkSession, kafka: str, tmp_path: Path) -> None:
    """Where consumers could not be stopped, no receipt is about messages that the ledger lacks; what came later is unseen."""
    trial = Trial(kafka, "busy")
    trial.produce(500)
    begun, over = threading.Event(), threading.Event()

    def go_on() -> None:
        while not over.is_set():
            trial.produce(10)
            begun.set()

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        assert begun.wait(60)
        verdict = settle(session, kafka, trial.topics, tmp_path, at_rest=False)
    finally:
        over.set()
        writer.join()
    assert verdict.produced == verdict.processed + verdict.unseen_messages > 1500
    assert (verdict.phantom_messages, verdict.lost_messages, verdict.mismatched_receipts) == (0, 0, 0)


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("short", b"short", "partition 2, offset 0: 5 bytes are no event"),
        ("entity", event.encode(2**63, 0, 0, bytes(232)), "8000000000000000"),
        ("seq", event.encode(0, 2**64 - 1, 0, bytes(232)), "FFFFFFFFFFFFFFFF"),
    ],
)
def test_what_is_no_event_stops_the_ledger(
    session: SparkSession, kafka: str, tmp_path: Path, name: str, value: bytes, says: str
) -> None:
    """A value of another size or with a field of 2^63 or more fails the ingestion, with a fault of one line that says so."""
    trial = Trial(kafka, f"wrong-{name}")
    assert settle(session, kafka, trial.topics, tmp_path / "empty").exact  # nothing produced is a record too
    assert pq.read_schema(tmp_path / "empty" / "rates.parquet").equals(RATES)
    send(kafka, trial.topics.events, value, partition=2)
    with pytest.raises(LabFault, match=says) as fault:
        ingest(session, kafka, trial.topics, tmp_path / "ledger")
    assert "\n" not in str(fault.value)


def test_a_ledger_that_lost_its_checkpoint_is_refused(tmp_path: Path) -> None:
    """Old output with a new checkpoint would drop batches in silence: it is refused before anything is read."""
    (tmp_path / "events" / "_spark_metadata").mkdir(parents=True)
    with pytest.raises(LabFault, match="no checkpoint"):
        ingest(None, "nowhere:1", Topics("events", "receipts"), tmp_path)
