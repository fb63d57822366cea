"""``python -m benchmarks ledger``: settling a topic of N events against a bare Spark count of it: wall clock, CPU and memory.

The topic is filled here, with the receipts of a group that processed every event once. The count and the settling run once
each, in a process and a JVM of their own, as a trial's ledger does. In a shared JVM the second one would find the connector's
code compiled. The CPU is of that process and its JVM, which a busy machine leaves nearly alone; the wall clock it does not.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import psutil
from confluent_kafka import KafkaError, Message, Producer
from pyspark.sql import DataFrame, SparkSession

from lab.host import identity
from lab.inputs.keys import Entities, partitions_of
from lab.inputs.workload import PARTITIONS
from lab.kafka import event, topics
from lab.programs.producer.send import configuration, encode
from lab.record.ledger import session
from lab.record.ledger.ingest import Topics
from lab.record.ledger.settle import settle
from lab.record.reconciliation import Reconciliation

EVENTS = 3_000_000
LONG = 2_000_000  # events, from which on a session is one of many millions
BATCH = 40  # events a receipt, as trials have them
TICK = 50_000
CACHED_S = 1.2  # the objective: times a bare count
Show = Callable[[str, float, float, str, str], None]


def fill(bootstrap: str, events: str, receipts: str, count: int) -> None:
    """Make topics of ``count`` events with Zipf keys and random payloads, and of a receipt for each BATCH of a partition."""
    topics.create(bootstrap, {events: PARTITIONS, receipts: 1})
    producer = Producer(configuration(bootstrap, "benchmark"))
    keys, random = Entities(1), np.random.default_rng(1)
    batches = [_Batch() for _ in range(PARTITIONS)]
    for first in range(0, count, TICK):
        ids = keys.take(min(TICK, count - first))
        stamps = 1_700_000_000_000_000_000 + np.arange(first, first + len(ids), dtype=np.int64) * 20_000
        _, values = encode(ids, first, stamps, random.bytes(event.PAYLOAD))
        for value, partition in zip(values, partitions_of(ids, PARTITIONS).tolist(), strict=True):
            _send(producer, events, value, partition)
            batch = batches[partition]
            batch.count += 1
            batch.checksum += event.check(value)
            if batch.count == BATCH:
                _send(producer, receipts, batch.receipt(partition), 0)
    for partition, batch in enumerate(batches):
        if batch.count:
            _send(producer, receipts, batch.receipt(partition), 0)
    assert producer.flush(60) == 0


@dataclass
class _Batch:
    """The events of a partition that have no receipt yet: the first offset, their number, and the sum of their CRCs."""

    first: int = 0
    count: int = 0
    checksum: int = 0

    def receipt(self, partition: int) -> bytes:
        """The receipt of these events, after which there are none."""
        begun = 1.7e9 + self.first / 1000
        place = {"pod": f"pod-{partition}", "partition": partition, "first": self.first, "last": self.first + self.count - 1}
        done = {"count": self.count, "checksum": self.checksum, "start": begun, "end": begun + 0.04}
        self.first, self.count, self.checksum = self.first + self.count, 0, 0
        return json.dumps(place | done).encode()


def _send(producer: Producer, topic: str, value: bytes, partition: int) -> None:
    while True:
        try:
            producer.produce(topic, value, value[:8], partition=partition, on_delivery=_delivered)
        except BufferError:
            producer.poll(0.1)
        else:
            return


def _delivered(error: KafkaError | None, _message: Message) -> None:
    assert error is None, error


@dataclass(frozen=True)
class Settled:
    """What settling a topic took, and a bare count of it: s of wall clock, s of CPU, MB at most, bytes of record an event."""

    whole_s: float
    whole_cpu: float
    bare_s: float
    bare_cpu: float
    jvm_mb: int
    python_mb: int
    record_b: float


@contextmanager
def topics_of(bootstrap: str, count: int) -> Iterator[Topics]:
    """Topics of ``count`` events and of their receipts; they are deleted at the end."""
    made = Topics(f"ledger-{count}-events", f"ledger-{count}-receipts")
    fill(bootstrap, str(made.events), made.receipts, count)
    yield made
    topics.delete(bootstrap, [str(made.events), made.receipts])


def settled(bootstrap: str, made: Topics, count: int, run: Path, master: str = "local[*]") -> Settled:
    """Count the events of ``made``, and settle them: each in a new process, which ends with ``run`` at the latest."""
    bare_s, bare_cpu = _in_new_process(_count, run, bootstrap, made, count, master)
    whole_s, whole_cpu, jvm_mb, python_mb, size_b = _in_new_process(_settle, run, bootstrap, made, count, master)
    return Settled(whole_s, whole_cpu, bare_s, bare_cpu, round(jvm_mb), round(python_mb), size_b / count)


def _in_new_process(work: Callable[..., tuple[float, ...]], run: Path, *given: object) -> tuple[float, ...]:
    """The result of ``work`` in a new process, which starts a JVM of its own and ends with ``run`` at the latest."""
    with identity.inherited(run), ProcessPoolExecutor(1, get_context("spawn")) as fresh:
        return fresh.submit(work, *given).result()


def _count(bootstrap: str, made: Topics, count: int, master: str) -> tuple[float, ...]:
    spark = session.spark(master, long=count >= LONG)
    found = spent(lambda: counted(spark, bootstrap, str(made.events), count))
    session.stop()
    return found


def _settle(bootstrap: str, made: Topics, count: int, master: str) -> tuple[float, ...]:
    """(s of wall clock, s of CPU, MB of the JVM, MB of this process, bytes of the record)."""
    spark = session.spark(master, long=count >= LONG)
    with tempfile.TemporaryDirectory() as folder:
        verdict: list[Reconciliation] = []
        found = spent(lambda: verdict.append(settle(spark, bootstrap, made, Path(folder))))
        assert verdict[0].processed == count, verdict
        size = sum(file.stat().st_size for file in Path(folder).rglob("*") if file.is_file())
    memory = most_memory()
    session.stop()
    return (*found, *memory, size)


def measure(bootstrap: str, show: Show, count: int, run: Path, master: str = "local[*]") -> bool:
    """Print three lines: the ratio by wall clock, the ratio by CPU, and the memory; returns whether one is at most CACHED_S."""
    with topics_of(bootstrap, count) as made:
        found = settled(bootstrap, made, count, run, master)
    show(f"ledger of {count:,} events", found.whole_s, found.bare_s, "s", "a bare Spark count of the topic")
    show(f"ledger of {count:,} events, CPU", found.whole_cpu, found.bare_cpu, "s", "a bare Spark count of the topic")
    most = f"JVM {found.jvm_mb:,} MB, Python {found.python_mb:,} MB"
    print(f"ledger memory at most: {most}; record {found.record_b:.1f} B an event", flush=True)
    return found.whole_cpu <= CACHED_S * found.bare_cpu or found.whole_s <= CACHED_S * found.bare_s


def counted(spark: SparkSession, bootstrap: str, topic: str, count: int) -> None:
    """Count the topic of events, and nothing else."""
    assert _table(spark, bootstrap, topic).count() == count


def _table(spark: SparkSession, bootstrap: str, topic: str) -> DataFrame:
    return spark.read.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic).load()


def spent(work: Callable[[], object]) -> tuple[float, float]:
    """(wall clock, CPU of this process and its JVMs) of ``work``, s."""
    begun, before = time.monotonic(), _cpu_s()
    work()
    return time.monotonic() - begun, _cpu_s() - before


def _cpu_s() -> float:
    spent_s = 0.0
    for one in _processes():
        with suppress(psutil.NoSuchProcess):  # a worker that has just ended: its parent has its time
            spent_s += sum(one.cpu_times()[:4])
    return spent_s


def _processes() -> list[psutil.Process]:
    """This process, and Spark's among its children; the broker, a child too, is none of them."""
    own = psutil.Process()
    return [own, *(one for one in own.children(recursive=True) if _is_spark(one))]


def _is_spark(process: psutil.Process) -> bool:
    try:
        words = " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # a worker that has just ended
        return False
    return "org.apache.spark" in words or "pyspark" in words


def most_memory() -> tuple[int, int]:
    """(the JVMs', this process's) resident memory at its highest, MB."""
    peaks = []
    for one in _processes():
        lines = Path(f"/proc/{one.pid}/status").read_text().splitlines()
        peaks.append(next(int(line.split()[1]) // 1024 for line in lines if line.startswith("VmHWM")))
    return sum(peaks[1:]), peaks[0]
