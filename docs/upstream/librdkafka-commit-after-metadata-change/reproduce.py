#!/usr/bin/env python3
"""A member of a cooperative group loses its whole assignment when an asynchronous commit meets a rebalance.

24 consumer processes read a topic of 24 partitions and commit asynchronously, often. The topic gets 24 partitions more, which
each member sees at its own metadata refresh. Printed for each round: the members whose on_lost was called, and the last lines
of their client's log. Needs confluent-kafka and any broker.
"""

import argparse
import contextlib
import multiprocessing
import os
import sys
import threading
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Producer, libversion, version
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

MEMBERS, PARTITIONS = 24, 24
TAIL = 40  # lines of a member's log


def member(options, topic, group, name, owned, lost, stop):
    """One consumer process, until ``stop``."""
    log = f"{options.log}/{group}.{name}.log"
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT, 0o644), 2)
    conf = {"bootstrap.servers": options.bootstrap, "group.id": group, "client.id": name, "enable.auto.commit": False}
    conf |= {"auto.offset.reset": "earliest", "partition.assignment.strategy": "cooperative-sticky", "debug": "cgrp"}
    conf |= {"heartbeat.interval.ms": 500, "topic.metadata.refresh.interval.ms": 1000}
    consumer = Consumer(conf)
    has = set()

    def assigned(_, parts):
        consumer.incremental_assign(parts)
        has.update(part.partition for part in parts)
        owned[name] = len(has)

    def revoked(_, parts):
        consumer.incremental_unassign(parts)
        has.difference_update(part.partition for part in parts)
        owned[name] = len(has)

    def gone(_, parts):
        lost.append((time.time(), name, sorted(part.partition for part in parts)))
        print("LOST", time.time(), file=sys.stderr, flush=True)
        revoked(_, parts)

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=gone)
    last = time.monotonic()
    while not stop.is_set():
        consumer.consume(5, 0.05)
        if time.monotonic() - last >= options.commit_s:
            last = time.monotonic()
            with contextlib.suppress(KafkaException):  # nothing to commit yet
                consumer.commit(asynchronous=True)
    consumer.close()


def round_(options, number):
    """One growth. Returns the losses."""
    topic = group = f"growing-{number}-{uuid.uuid4().hex[:6]}"
    admin = AdminClient({"bootstrap.servers": options.bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    manager = multiprocessing.Manager()
    owned, lost, stop = manager.dict(), manager.list(), multiprocessing.Event()
    halt = threading.Event()

    def produce():
        producer = Producer({"bootstrap.servers": options.bootstrap, "linger.ms": 5})
        sent = 0
        while not halt.wait(0.01):
            for _ in range(options.rate // 100):
                producer.produce(topic, bytes(256), key=str(sent).encode())
                sent += 1
            producer.poll(0)
        producer.flush(10)

    threading.Thread(target=produce, daemon=True).start()
    processes = [
        multiprocessing.Process(target=member, args=(options, topic, group, f"m{n}", owned, lost, stop)) for n in range(MEMBERS)
    ]
    for process in processes:
        process.start()

    def wait(total, deadline=40):
        end = time.monotonic() + deadline
        since = None
        while time.monotonic() < end:
            if sum(owned.values()) == total:
                since = since or time.monotonic()
                if time.monotonic() - since > 2:
                    return True
            else:
                since = None
            time.sleep(0.1)
        return False

    settled = wait(PARTITIONS)
    before = len(lost)
    begun = time.time()
    admin.create_partitions([NewPartitions(topic, 2 * PARTITIONS)])[topic].result()
    grown = wait(2 * PARTITIONS)
    stop.set()
    halt.set()
    for process in processes:
        process.join(20)
        if process.is_alive():
            print(f"  {process.name} did not close within 20 s", flush=True)
            process.kill()
    found = list(lost)
    print(f"round {number}: settled {settled}, grown {grown}, lost before {before}, after {len(found) - before}", flush=True)
    for at, name, partitions in found:
        print(f"  {name} lost {partitions} {at - begun:+.2f} s after the growth", flush=True)
        lines = Path(options.log, f"{group}.{name}.log").read_text().splitlines()
        at_line = next(i for i, line in enumerate(lines) if line.startswith("LOST"))
        for line in lines[max(0, at_line - TAIL) : at_line + 3]:
            print("    ", line[:260], flush=True)
    if not found:
        for n in range(MEMBERS):
            Path(options.log, f"{group}.m{n}.log").unlink()
    return len(found)


def main():
    """Grow so many topics, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bootstrap")
    parser.add_argument("--log", default="/tmp")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--rate", type=int, default=2000)
    parser.add_argument("--commit-s", type=float, default=0.167)
    options = parser.parse_args()
    print(f"confluent-kafka {version()}, librdkafka {libversion()[0]}")
    print("losses:", sum(round_(options, number) for number in range(options.rounds)))


if __name__ == "__main__":
    main()
