#!/usr/bin/env python3
"""The same stall without a group: pause() and resume() all partitions of an assigned consumer that has data to fetch.

Needs a topic that reproduce.py filled (it prints the name; 24 partitions). Prints the time from resume() to the next message.
"""

import argparse
import random
import statistics
import sys
import time

from confluent_kafka import Consumer, TopicPartition, libversion

parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
parser.add_argument("--bootstrap", required=True)
parser.add_argument("--topic", required=True)
parser.add_argument("--wake", action="store_true", help="after resume(), send the partitions' leader a request")
parser.add_argument("--tries", type=int, default=20)
parser.add_argument("--conf", action="append", default=[], metavar="NAME=VALUE", help="client setting")
options = parser.parse_args()

settings = {"bootstrap.servers": options.bootstrap, "group.id": "none", "enable.auto.commit": False}
consumer = Consumer(settings | dict(pair.split("=", 1) for pair in options.conf))
parts = [TopicPartition(options.topic, number, 0) for number in range(24)]
silent = []
for _ in range(options.tries):
    consumer.assign(parts)  # from the start again: there is always something left to fetch
    until = time.monotonic() + 0.5 + random.random()
    while time.monotonic() < until:
        if consumer.consume(200, 0.05):
            time.sleep(0.05)  # processing
    consumer.pause(parts)
    time.sleep(0.03)  # in a rebalance: until the application polls and its callback is served
    consumer.resume(parts)
    if options.wake:
        consumer.get_watermark_offsets(parts[0], timeout=1, cached=False)
    resumed = time.monotonic()
    while not consumer.consume(1, 0.01):
        pass
    silent.append(1000 * (time.monotonic() - resumed))
    consumer.unassign()
consumer.close()
print(
    f"librdkafka {libversion()[0]} {' '.join(sys.argv[5:])}: from resume() to the next message, {len(silent)} tries: median "
    f"{statistics.median(silent):.0f} ms, longest {max(silent):.0f} ms, over 200 ms {sum(ms > 200 for ms in silent)}"
)
