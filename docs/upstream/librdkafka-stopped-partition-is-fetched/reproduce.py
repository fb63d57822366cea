#!/usr/bin/env python3
"""A partition that was unassigned is fetched again, and its messages may come when it is assigned the next time.

The broker is librdkafka's own mock, which answers the first ListOffsets late. A consumer without committed offsets is assigned
all partitions, and unassigned before those answers come. Then 100 messages are written to each partition, and 90 are committed.
The consumer is assigned again. It must begin at 90. Printed for each round: the fetch states of a partition until the second
assignment, the first offset of each partition after it, and the number of messages below 90. Needs confluent-kafka and no
broker.

The process stays on one core, because the second fault is a race of two threads.
"""

import argparse
import collections
import ctypes
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

import confluent_kafka
from confluent_kafka import Consumer, Producer, TopicPartition

LIST_OFFSETS = 2  # the API's key
MESSAGES, COMMITTED = 100, 90


def mock(partitions, late_ms):
    """The address of a mock cluster of one broker with topic "t", which answers the first ListOffsets late."""
    (file,) = Path(confluent_kafka.__file__).parents[1].glob("confluent_kafka.libs/librdkafka*")
    lib = ctypes.CDLL(str(file))
    for name, result in {"conf_new": ctypes.c_void_p, "new": ctypes.c_void_p, "mock_cluster_new": ctypes.c_void_p}.items():
        getattr(lib, f"rd_kafka_{name}").restype = result
    lib.rd_kafka_mock_cluster_bootstraps.restype = ctypes.c_char_p
    conf = ctypes.c_void_p(lib.rd_kafka_conf_new())
    client = ctypes.c_void_p(lib.rd_kafka_new(0, conf, ctypes.create_string_buffer(512), ctypes.c_size_t(512)))
    cluster = ctypes.c_void_p(lib.rd_kafka_mock_cluster_new(client, 1))
    lib.rd_kafka_mock_topic_create(cluster, b"t", partitions, 1)
    answers = [ctypes.c_int(value) for _ in range(partitions) for value in (0, late_ms)]  # (no error, round trip in ms) of each
    lib.rd_kafka_mock_broker_push_request_error_rtts(
        cluster, 1, ctypes.c_int16(LIST_OFFSETS), ctypes.c_size_t(partitions), *answers
    )
    return lib.rd_kafka_mock_cluster_bootstraps(cluster).decode()


def spin(consumer, seconds):
    """Consume for so long. Returns the offsets of each partition, in the order in which they came."""
    seen = collections.defaultdict(list)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for message in consumer.consume(5, 0.05):
            if message.error() is None:
                seen[message.partition()].append(message.offset())
    return seen


def one_round(options):
    """Returns the first offset of each partition after the second assignment, and the number of messages below COMMITTED."""
    bootstrap = {"bootstrap.servers": mock(options.partitions, options.late_ms)}
    group = bootstrap | {"group.id": "g", "enable.auto.commit": False}
    consumer = Consumer(group | {"auto.offset.reset": "earliest", "debug": "topic", "client.id": "consumer"})
    parts = [TopicPartition("t", number) for number in range(options.partitions)]
    consumer.assign(parts)
    spin(consumer, 1)
    consumer.unassign()  # ListOffsets are under way
    producer = Producer(bootstrap)
    for index in range(MESSAGES * options.partitions):
        producer.produce("t", b"x" * 200, partition=index % options.partitions)
    producer.flush()
    done = [TopicPartition("t", number, COMMITTED) for number in range(options.partitions)]
    Consumer(group).commit(offsets=done, asynchronous=False)
    spin(consumer, options.late_ms / 1000 + 1.5)
    print("-- assigned again", file=sys.stderr, flush=True)
    consumer.assign(parts)
    seen = spin(consumer, 2)
    first = [(seen[number] or [None])[0] for number in range(options.partitions)]
    return first, sum(offset < COMMITTED for came in seen.values() for offset in came)


def main():
    """Run the rounds, each in a process of its own, whose log is read."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--partitions", type=int, default=24)
    parser.add_argument("--late-ms", type=int, default=3000, help="the round trip of the first ListOffsets")
    options = parser.parse_args()
    print(f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}")
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    wrong = 0
    for number in range(1, options.rounds + 1):
        with tempfile.TemporaryFile("w+") as log, tempfile.TemporaryFile("w+") as found:
            if (pid := os.fork()) == 0:
                os.dup2(log.fileno(), 2)
                json.dump(one_round(options), found)
                found.flush()
                os._exit(0)
            os.waitpid(pid, 0)
            found.seek(0)
            log.seek(0)
            offsets, below = json.load(found)
            between = log.read().split("-- assigned again")[0]
        states = re.findall(r"Partition t \[0\] changed fetch state (\S+ -> \S+)", between)
        wrong += sum(offset != COMMITTED for offset in offsets)
        first = dict(collections.Counter(offsets))
        print(f"round {number}: [0] {', '.join(states)}; first offsets {first}; below {COMMITTED}: {below}", flush=True)
    print(f"{wrong} of {options.rounds * options.partitions} partitions began elsewhere than at {COMMITTED}")


if __name__ == "__main__":
    main()
