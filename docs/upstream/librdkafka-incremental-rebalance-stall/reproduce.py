#!/usr/bin/env python3
"""Members of a consumer group that keep their partitions fall silent when another member joins incrementally.

Three consumer processes read a topic of 24 partitions, always behind, a fixed time per batch; a fourth one joins. Printed for
every old member: the time without a single message around each rebalance callback. Needs confluent-kafka and any broker.
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
SETTLED_S = 4.0  # the group has settled when no member was assigned anything for so long
STALL_S = 0.2  # without a rebalance a member is silent for WORK_S and a little


def fill(bootstrap, topic):
    """Create the topic and fill it evenly."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result()
    time.sleep(1)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 20, "batch.size": 65536})
    for number in range(1, MESSAGES + 1):
        producer.produce(topic, bytes(256), partition=number % PARTITIONS)
        if number % 10_000 == 0:
            producer.flush()


def member(options, topic, group, name, ready, stop, results):
    """One consumer process. Puts (name, messages [(time, count)], rebalances [(time, what, partitions, kept)])."""
    conf = {"bootstrap.servers": options.bootstrap, "group.id": group, "enable.auto.commit": False}
    conf |= {"client.id": name, "auto.offset.reset": "earliest"}
    classic = {"partition.assignment.strategy": options.assignor, "heartbeat.interval.ms": 500}
    conf |= {"group.protocol": "consumer"} if options.assignor == "consumer" else classic
    if options.log:
        os.dup2(os.open(f"{options.log}/{group}.{name}.log", os.O_WRONLY | os.O_CREAT, 0o644), 2)
        conf["debug"] = "cgrp,fetch,topic,queue,protocol"
    consumer = Consumer(conf | dict(pair.split("=", 1) for pair in options.conf))
    eager, owned, messages, rebalances = options.assignor == "range", set(), [], []

    def wake():  # any request to the leader of a kept partition wakes its broker thread (with several brokers: each leader)
        if options.wake and owned:
            consumer.get_watermark_offsets(TopicPartition(topic, min(owned)), timeout=1, cached=False)

    def assigned(_, parts):
        kept = len(owned)
        consumer.assign(parts) if eager else consumer.incremental_assign(parts)
        wake()
        owned.update(part.partition for part in parts)
        rebalances.append((time.time(), "assign", len(parts), kept))
        ready.release()

    def revoked(_, parts):
        owned.difference_update(part.partition for part in parts)
        consumer.unassign() if eager else consumer.incremental_unassign(parts)
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
    """The silences around the rebalance callbacks after ``since``: {(last message, next message): [callbacks]}."""
    found = {}
    for at, what, parts, kept in rebalances:
        if at >= since:
            last = max((t for t, _ in messages if t <= at), default=at)
            first = min((t for t, _ in messages if t > at), default=at + 99)
            found.setdefault((last, first), []).append(f"{what} {parts}, keeps {kept}")
    return found


def run(options, topic, number):
    """One group: settle, join, watch. Returns each old member's longest silence."""
    context = multiprocessing.get_context("spawn")
    group = f"stall-{uuid.uuid4().hex[:8]}"
    ready, stop, results = context.Semaphore(0), context.Event(), context.Queue()

    def start(name):
        context.Process(target=member, args=(options, topic, group, name, ready, stop, results), daemon=True).start()

    for index in range(MEMBERS):
        start(f"member-{index}")
    while ready.acquire(timeout=SETTLED_S):
        pass
    joined = time.time()
    start("joiner")
    time.sleep(options.seconds)
    stop.set()
    reports, worst = sorted(results.get(timeout=30) for _ in range(MEMBERS + 1)), []
    print(f"run {number}, group {group}, join at {joined:.3f}")
    for name, messages, rebalances in reports[1:]:  # without the joiner
        silences = gaps(messages, rebalances, joined)
        worst.append(max((first - last for last, first in silences), default=0.0))
        for (last, first), callbacks in silences.items():
            verdict = "STALL" if first - last > STALL_S else "ok"
            print(f"  {name}: {1000 * (first - last):5.0f} ms from {last:.3f} {verdict:5}  ({'; '.join(callbacks)})")
    taken = [entry for _, messages, _ in reports for entry in messages]
    steady = sum(count for t, count in taken if joined - 2 <= t < joined) / 2
    low = []
    for width in (0.2, 1.0):
        starts = [joined + step * width for step in range(int((options.seconds - 1) / width))]
        low.append(min(sum(count for t, count in taken if at <= t < at + width) for at in starts) / width / steady)
    print(f"  all members: {steady:.0f}/s before; worst 200 ms bin {low[0]:.0%} of it, worst 1 s bin {low[1]:.0%}", flush=True)
    return worst


def main():
    """Fill a topic unless told of one, then run."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--bootstrap", required=True)
    parser.add_argument("--assignor", choices=("cooperative-sticky", "range", "consumer"), default="cooperative-sticky")
    parser.add_argument("--wake", action="store_true", help="ask a kept partition's leader for something in both callbacks")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=7, help="watched after the join")
    parser.add_argument("--topic", help="reuse a topic that an earlier call filled")
    parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="client setting")
    parser.add_argument("--log", help="existing folder for each member's debug log")
    options = parser.parse_args()
    print(f"confluent-kafka {version()}, librdkafka {libversion()[0]}; {' '.join(sys.argv[1:])}")
    topic = options.topic or f"stall-{uuid.uuid4().hex[:8]}"
    if not options.topic:
        fill(options.bootstrap, topic)
        print(f"filled topic {topic}", flush=True)
    silent = [gap * 1000 for number in range(options.runs) for gap in run(options, topic, number + 1)]
    over, median = sum(ms > 1000 * STALL_S for ms in silent), statistics.median(silent)
    print(f"{over} of {len(silent)} members silent for more than {1000 * STALL_S:.0f} ms; longest silence of each: ", end="")
    print(f"median {median:.0f} ms, longest {max(silent):.0f} ms")


if __name__ == "__main__":
    main()
