"""``python -m benchmarks``: what the lab's own parts cost, each as a ratio to a peer measured in the same run."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psutil
from confluent_kafka import KafkaException

from benchmarks import core, lagscaler, ledger, simulate, sizes, starts
from lab.cluster import binary, broker, controlplane
from lab.components import build, jars
from lab.host import processes, resources, runs
from lab.inputs import scale
from lab.inputs.workload import PARTITIONS
from lab.kafka import topics
from lab.kafka.lag import LagReader
from lab.record.ledger import session
from lab.record.ledger.ingest import Topics
from lab.record.ledger.settle import settle
from lab.wait import until

FETCH_MS = 50  # a fetch of the consumer whose receipts the ledger reads
SMALL, LARGE = 200_000, 800_000  # the slope between them leaves start-up out
NOT_FOR_PERFORMANCE = ("connect-runtime", "jackson-jakarta-rs-json-provider")  # other tools of Kafka need these
KAFKA_TOOLS = (*jars.KAFKA, "org.apache.kafka:kafka-tools:4.3.1")


def show(what: str, ours: float, peer: float, unit: str, peer_name: str) -> None:
    """One line: our figure, the peer's, and the ratio."""
    print(f"{what}: {ours:.2f} {unit} against {peer:.2f} {unit} of {peer_name}: ratio {ours / peer:.2f}", flush=True)


def cpu(command: list[str], until_done: Callable[[], bool] | None = None) -> float:
    """CPU seconds (user + system) of ``command``, run to its end or until ``until_done`` holds."""
    process = psutil.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if until_done is None:
        before = os.times()
        process.wait()
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system
    until(until_done, 300, " ".join(command[:3]))
    times = process.cpu_times()
    process.terminate()
    process.wait(30)
    return times.user + times.system


def slope(measure: Callable[[int], float]) -> float:
    """Microseconds of CPU a message: the difference between a large and a small run, without what both pay once."""
    return (measure(LARGE) - measure(SMALL)) / (LARGE - SMALL) * 1e6


def producer(bootstrap: str) -> None:
    """The producer against Kafka's own ProducerPerformance: 256 B, acks=all, idempotent, linger 5 ms, 50,000/s."""
    tools = os.pathsep.join(map(str, jars.resolve("kafka-tools", KAFKA_TOOLS, NOT_FOR_PERFORMANCE)))

    def ours(count: int) -> float:
        topics.create(bootstrap, {f"ours-{count}": PARTITIONS})
        flags = ["--profile=steady", "--rate=50000", f"--duration={count / 50_000}", f"--topic=ours-{count}"]
        return cpu([sys.executable, "-m", "lab.programs.producer", f"--bootstrap-servers={bootstrap}", *flags])

    def peer(count: int) -> float:
        topics.create(bootstrap, {f"peer-{count}": PARTITIONS})
        settings = [f"bootstrap.servers={bootstrap}", "acks=all", "enable.idempotence=true", "linger.ms=5"]
        flags = ["--topic", f"peer-{count}", "--num-records", str(count), "--record-size", "256", "--throughput", "50000"]
        command = [
            jars.java(),
            "-cp",
            tools,
            "org.apache.kafka.tools.ProducerPerformance",
            *flags,
            "--producer-props",
            *settings,
        ]
        return cpu(command)

    show("producer CPU per message", slope(ours), slope(peer), "us", "ProducerPerformance")


BARE = """
import sys
from confluent_kafka import Consumer
bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bare-" + topic, "auto.offset.reset": "earliest",
                     "enable.auto.commit": False, "queued.max.messages.kbytes": 4096, "fetch.queue.backoff.ms": 20})
consumer.subscribe([topic])
got = 0
while got < count:
    got += len(consumer.consume(50, 1))
"""


def consumer(bootstrap: str) -> None:
    """The consumer (decode, checksum, receipts, commits; batches of 50 as in a trial) against a bare consume() loop.

    It is measured with 50 batches a fetch, and with one batch a fetch, as in a trial: then each batch waits for its receipts.
    """
    topics.create(bootstrap, {"reports": 1})

    def ours(count: int, poll_ms: int) -> float:
        group, receipts = f"lab-{poll_ms}-{count}", f"receipts-{poll_ms}-{count}"
        topics.create(bootstrap, {receipts: 1})
        lag = LagReader(bootstrap, group, f"ours-{count}")

        def done() -> bool:
            try:
                return all(part.lag == 0 for part in lag.read().values())
            except KafkaException:
                return False

        flags = [f"--topic=ours-{count}", f"--group={group}", "--process-ms=0.5-1.5", "--concurrency=50", "--batch-ms=1"]
        flags += [
            f"--poll-ms={poll_ms}",
            f"--receipts-topic={receipts}",
            f"--bootstrap-servers={bootstrap}",
            "--metrics-port=0",
            "--commit-interval-ms=250",
        ]
        return cpu([sys.executable, "-m", "lab.programs.consumer", *flags], done)

    def peer(count: int) -> float:
        return cpu([sys.executable, "-c", BARE, bootstrap, f"ours-{count}", str(count)])

    bare = slope(peer)
    for poll_ms, what in ((FETCH_MS, "50 batches a fetch"), (1, "one batch a fetch")):
        show(f"consumer CPU per message, {what}", slope(partial(ours, poll_ms=poll_ms)), bare, "us", "a bare consume() loop")


def cluster_up() -> None:
    """The whole cluster, up to all APIs answering, against etcd and kube-apiserver alone."""
    chosen = scale.load("quick")
    built = build.ensure()
    whole, alone = [], []
    for _ in range(3):
        begun = time.monotonic()
        cluster = binary.up(chosen)
        whole.append(time.monotonic() - begun)
        cluster.down()
        pods = resources.claim_pod_network()
        with runs.guarded() as run, pods.holder:
            begun = time.monotonic()
            controlplane.start(run, built, chosen, pods)
            alone.append(time.monotonic() - begun)
    print(f"cluster up, s: {', '.join(f'{value:.1f}' for value in whole)}")
    show("cluster up, median", sorted(whole)[1], sorted(alone)[1], "s", "the control plane alone")


def reconciliation(bootstrap: str) -> None:
    """Ingest, reconcile and roll up a topic against a bare Spark count of it; receipts are those of the consumer's run."""
    spark = session.spark()
    topic = f"ours-{LARGE}"

    def count() -> float:
        begun = time.monotonic()
        ledger.counted(spark, bootstrap, topic, LARGE)
        return time.monotonic() - begun

    count()  # warms the JVM for both
    bare = count()
    with tempfile.TemporaryDirectory() as folder:
        begun = time.monotonic()
        verdict = settle(spark, bootstrap, Topics(topic, f"receipts-{FETCH_MS}-{LARGE}"), Path(folder))
        whole = time.monotonic() - begun
    assert verdict.processed == LARGE, verdict
    show(f"reconciliation of {LARGE:,} events", whole, bare, "s", "a bare Spark count of the topic")
    spark.stop()


def main() -> int:
    """Run the benchmarks named on the command line, or all; 1 where an objective was breached."""
    known = ("producer", "consumer", "up", "starts", "reconcile", "ledger", "lagscaler", "simulate", "growth", "core")
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("which", nargs="*", choices=[*known, []], help=f"of {', '.join(known)}; default: all")
    parser.add_argument("--events", type=int, default=ledger.EVENTS, help="events of the ledger's topic")
    parser.add_argument("--spark-master", default="local[*]", help="the ledger's Spark master")
    parser.add_argument(
        "--of",
        nargs="*",
        choices=[*sizes.PARTS],
        default=[*sizes.PARTS],
        help="the sizes that growth is measured by; without any it prints what is kept",
    )
    chosen = parser.parse_args()
    which = chosen.which or known
    held = True
    if "simulate" in which:
        simulate.main(show)
    if "core" in which:
        core.main(show)
    if "up" in which:
        cluster_up()
    if "starts" in which:
        starts.measure(show)
    if "growth" in which:
        sizes.main(chosen.of)
    if set(which) - {"up", "starts", "simulate", "growth", "core"}:
        started, run, guard = runs.start(broker.start)
        try:
            if "lagscaler" in which:
                held = lagscaler.measure(started.bootstrap, show)
            if "ledger" in which:
                held &= ledger.measure(started.bootstrap, show, chosen.events, run, chosen.spark_master)
            if set(which) & {"producer", "consumer", "reconcile"}:
                producer(started.bootstrap)  # the others read what it wrote
            if set(which) & {"consumer", "reconcile"}:
                consumer(started.bootstrap)
            if "reconcile" in which:
                reconciliation(started.bootstrap)
        finally:
            started.stop()
            processes.clear(run)
            processes.dismiss(guard)
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
