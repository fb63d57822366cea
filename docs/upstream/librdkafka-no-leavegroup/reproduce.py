#!/usr/bin/env python3
"""A consumer that closes before it has a partition sends no LeaveGroup, and its group waits for its session to time out.

The broker is librdkafka's own mock. One member owns all partitions. A second one joins, and closes after its first
assignment, which is empty: the first member has yet to give up its half. Printed is whether the second sent LeaveGroup, and
after how long the first owns all partitions again. Needs confluent-kafka and no broker.
"""

import argparse
import subprocess
import sys
import threading
import time

import confluent_kafka
from confluent_kafka import Consumer, Producer

CLOSING = "-- closing"


def settings(bootstrap, session_s):
    """Those of both members."""
    group = {"bootstrap.servers": bootstrap, "group.id": "g", "partition.assignment.strategy": "cooperative-sticky"}
    return group | {"session.timeout.ms": int(1000 * session_s), "heartbeat.interval.ms": 500}


def leave(options):
    """The second member, in a process of its own, whose log is read."""
    assigned = threading.Event()
    consumer = Consumer(settings(options.bootstrap, options.session_s) | {"debug": "cgrp,protocol"})
    consumer.subscribe(["t"], on_assign=lambda *_: assigned.set())
    while not assigned.is_set():
        consumer.poll(0.02)
    print(CLOSING, file=sys.stderr, flush=True)
    if options.unsubscribe:
        consumer.unsubscribe()
    consumer.close()


def stay(consumer, owned, ended):
    """The first member: keep what it owns in ``owned``."""
    consumer.subscribe(
        ["t"],
        on_assign=lambda _, parts: owned.update(part.partition for part in parts),
        on_revoke=lambda _, parts: owned.difference_update(part.partition for part in parts),
    )
    while not ended.is_set():
        consumer.poll(0.05)
    consumer.close()


def main():
    """One round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--session-s", type=float, default=10, help="session.timeout.ms of both members, in s")
    parser.add_argument("--unsubscribe", action="store_true", help="control: the second member unsubscribes before it closes")
    parser.add_argument("--bootstrap", help="a broker with topic t [default: the mock]")
    parser.add_argument("--leave", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.leave:
        leave(options)
        return
    print(f"confluent-kafka {confluent_kafka.version()}, librdkafka {confluent_kafka.libversion()[0]}", flush=True)
    broker = Producer({"bootstrap.servers": options.bootstrap} if options.bootstrap else {"test.mock.num.brokers": 1})
    known = broker.list_topics("t", timeout=10)
    (address,) = {f"{one.host}:{one.port}" for one in known.brokers.values()}
    partitions, owned, ended = len(known.topics["t"].partitions), set(), threading.Event()
    consumer = Consumer(settings(address, options.session_s))
    member = threading.Thread(target=stay, args=(consumer, owned, ended))
    member.start()
    while len(owned) < partitions:
        time.sleep(0.01)
    second = [sys.executable, __file__, "--leave", *sys.argv[1:], "--bootstrap", address]
    log = subprocess.run(second, check=True, stderr=subprocess.PIPE, text=True).stderr
    left = time.monotonic()
    sent = "Sent LeaveGroupRequest" in log.partition(CLOSING)[2]
    time.sleep(1)  # by now the first member has heard of a second round
    while len(owned) < partitions:
        time.sleep(0.01)
    print(f"LeaveGroup was {'' if sent else 'not '}sent; the other member owned all {partitions} partitions after "
          f"{time.monotonic() - left:.1f} s; session.timeout.ms is {options.session_s:g} s")  # fmt: skip
    ended.set()
    member.join()


if __name__ == "__main__":
    main()
