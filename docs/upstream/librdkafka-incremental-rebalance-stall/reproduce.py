#!/usr/bin/env python3
"""Members of a consumer group that keep their partitions fall silent when another member joins incrementally.

Three consumer processes read a topic of 24 partitions, always behind, a fixed time per batch; a fourth one joins. Printed for
every old member: the longest time without a message around each rebalance callback. Needs confluent-kafka and any broker.
"""

import argparse
import multiprocessing
import os
import statistics
import sys
import time
import uuid

from confluent_kafka import Consumer, Producer, TopicPartition, libversion, version
from confluent_kafka.admin import AdminClient, NewTopic

PARTITIONS, MEMBERS, MESSAGES = 24, 3, 1_200_000  # 256 B each
BATCH, WORK_S = 200, 0.05  # a member takes 4,000 messages a second
BEFORE_S, AFTER_S = 4.0, 7.0  # from the old members' last assignment to the join, and from the join to the end
STALL_S = 0.2  # without a rebalance a member is silent for WORK_S and a little


def fill(bootstrap, topic):
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    time.sleep(1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 65536})
    for number in range(MESSAGES):
        while True:
            try:
                producer.produce(topic, bytes(256), partition=number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def member(options, topic, group, name, ready, stop, results):
    """One consumer process. Puts (name, messages [(time, count)], rebalances [(time, what, partitions, kept)])."""
    if options.log:
        os.dup2(os.open(f"{options.log}/{group}.{name}.log", os.O_WRONLY | os.O_CREAT, 0o644), 2)
    conf = {"bootstrap.servers": options.bootstrap, "group.id": group, "client.id": name, "auto.offset.reset": "earliest",
            "enable.auto.commit": False}
    if options.log:
        conf["debug"] = "cgrp,fetch,topic,queue,protocol"
    if options.assignor == "consumer":
        conf["group.protocol"] = "consumer"
    else:
        conf |= {"partition.assignment.strategy": options.assignor, "heartbeat.interval.ms": 500}
    consumer = Consumer(conf | dict(pair.split("=", 1) for pair in options.conf))
    owned, messages, rebalances = set(), [], []

    def wake():
        """Any request to the leader of a kept partition wakes its broker thread (every leader, with several brokers)."""
        if options.wake and owned:
            consumer.get_watermark_offsets(TopicPartition(topic, min(owned)), timeout=1, cached=False)

    def assigned(_, parts):
        kept = len(owned)
        (consumer.assign if options.assignor == "range" else consumer.incremental_assign)(parts)
        wake()
        owned.update(part.partition for part in parts)
        rebalances.append((time.time(), "assign", len(parts), kept))
        ready.release()

    def revoked(_, parts):
        owned.difference_update(part.partition for part in parts)
        consumer.unassign() if options.assignor == "range" else consumer.incremental_unassign(parts)
        wake()
        rebalances.append((time.time(), "revoke", len(parts), len(owned)))

    consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked)
    while not stop.is_set():
        got = consumer.consume(BATCH, 0.05)
        if got:
            messages.append((time.time(), len(got)))
            time.sleep(WORK_S)  # processing
    results.put((name, messages, rebalances))
    results.close()
    results.join_thread()
    os._exit(0)  # leaving the group is not part of this


def gaps(messages, rebalances, since):
    """The silences that overlap a rebalance callback after ``since``: {(from, to): [callbacks]}."""
    found = {}
    for at, what, parts, kept in rebalances:
        if at >= since:
            last = max((t for t, _ in messages if t <= at), default=at)
            first = min((t for t, _ in messages if t > at), default=at + 99)
            found.setdefault((last, first), []).append(f"{what} {parts}, keeps {kept}")
    return found


def run(options, topic, number):
    context = multiprocessing.get_context("spawn")
    group = f"stall-{uuid.uuid4().hex[:8]}"
    ready, stop, results = context.Semaphore(0), context.Event(), context.Queue()
    processes = []

    def start(name):
        arguments = (options, topic, group, name, ready, stop, results)
        processes.append(context.Process(target=member, args=arguments, daemon=True))
        processes[-1].start()

    for index in range(MEMBERS):
        start(f"member-{index}")
    while ready.acquire(timeout=BEFORE_S):
        pass  # settled when no one was told of an assignment for BEFORE_S
    joined = time.time()
    start("joiner")
    time.sleep(options.seconds)
    stop.set()
    reports = sorted(results.get(timeout=30) for _ in processes)
    print(f"run {number}, group {group}, join at {joined:.3f}")
    worst = []
    for name, messages, rebalances in reports:
        if name == "joiner":
            continue
        silences = gaps(messages, rebalances, joined)
        worst.append(max((to - since for since, to in silences), default=0.0))
        for (since, to), callbacks in silences.items():
            verdict = "STALL" if to - since > STALL_S else "ok"
            print(f"  {name}: {1000 * (to - since):5.0f} ms from {since:.3f} to {to:.3f} {verdict:5}  ({'; '.join(callbacks)})")
    everything = [entry for _, messages, _ in reports for entry in messages]
    steady = sum(count for t, count in everything if joined - 2 <= t < joined) / 2
    low = {}
    for width in (0.2, 1.0):
        starts = [joined + step * width for step in range(int((options.seconds - 1) / width))]
        low[width] = min(sum(count for t, count in everything if at <= t < at + width) / width for at in starts) / steady
    print(f"  steady {steady:.0f}/s; worst 200 ms bin {low[0.2]:.0%} of it, worst 1 s bin {low[1.0]:.0%}", flush=True)
    return worst, low


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--assignor", choices=("cooperative-sticky", "range", "consumer"), default="cooperative-sticky")
    parser.add_argument("--wake", action="store_true", help="ask a kept partition's leader for something in both callbacks")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=AFTER_S, help="watched after the join")
    parser.add_argument("--topic", help="reuse a topic that an earlier call filled")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="client setting")
    parser.add_argument("--log", help="folder for librdkafka's debug log of each member")
    options = parser.parse_args()
    print(f"confluent-kafka {version()}, librdkafka {libversion()[0]}; {' '.join(sys.argv[1:])}")
    topic = options.topic or f"stall-{uuid.uuid4().hex[:8]}"
    if not options.topic:
        fill(options.bootstrap, topic)
        print(f"filled topic {topic}", flush=True)
    outcomes = [run(options, topic, number) for number in range(1, options.runs + 1)]
    silent = [gap for worst, _ in outcomes for gap in worst]
    stalled = sum(gap > STALL_S for gap in silent)
    print(f"{stalled} of {len(silent)} members silent for more than {1000 * STALL_S:.0f} ms; median {1000 * statistics.median(silent):.0f} ms, "
          f"longest {1000 * max(silent):.0f} ms")


if __name__ == "__main__":
    main()
