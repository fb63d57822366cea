"""A stranger's consumer: ``python consumer.py [FAULT]`` keeps the contract on all rungs, but for its one fault."""

# ruff: noqa: D103
import json
import os
import signal
import sys
import time
import zlib

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

FAULT = sys.argv[1] if len(sys.argv) > 1 else ""
POD, BOOTSTRAP = os.environ["POD_NAME"], os.environ["BOOTSTRAP_SERVERS"]
group = "another" if FAULT == "wrong group" else os.environ["GROUP"]
topic = os.environ["OTHER_TOPIC" if FAULT == "wrong topic" else "TOPIC"]
login = {} if FAULT == "does not log in" else json.loads(os.environ.get("KAFKA_SETTINGS", "{}"))
consumer = Consumer(
    {
        "bootstrap.servers": BOOTSTRAP,
        "group.id": group,
        "client.id": POD,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000,
        "heartbeat.interval.ms": 500,
        "partition.assignment.strategy": "cooperative-sticky",
        **login,
    }
)
producer = Producer({"bootstrap.servers": BOOTSTRAP, "acks": "all", **login})
owned, done, stopping = set(), {}, False
batches = 0


def stop(*_):
    global stopping
    stopping = FAULT != "ignores SIGTERM"


def say(event, parts):
    print(json.dumps({"event": event, "partitions": [part.partition for part in parts], "owned": len(owned)}), flush=True)


def assigned(consumer, parts):
    owned.update(part.partition for part in parts)
    consumer.incremental_assign(parts)
    say("assigned", parts)


def commit(row):
    done[row.partition()] = row.offset() + 1
    flush()


def flush():
    if done and FAULT != "does not commit":
        try:
            consumer.commit(offsets=[TopicPartition(topic, *place) for place in done.items()], asynchronous=False)
            done.clear()
        except KafkaException:  # a rebalance goes on: with the next one
            pass


def revoked(consumer, parts):
    flush()
    owned.difference_update(part.partition for part in parts)
    for part in parts:
        done.pop(part.partition, None)
    consumer.incremental_unassign(parts)
    if FAULT != "hides what is revoked":
        say("revoked", parts)


def work(rows):
    start = time.time()
    time.sleep(0.05 + 0.1 * (FAULT == "commits before work"))
    row, last = rows[0], rows[-1]
    receipt = {"pod": POD, "partition": row.partition(), "first": row.offset(), "last": last.offset(), "count": len(rows)}
    receipt |= {"checksum": sum(zlib.crc32(one.value()) for one in rows), "start": start, "end": time.time()}
    global batches
    batches += 1
    if FAULT == "receipts with gaps" and batches % 3 == 0:
        return
    producer.produce(os.environ["RECEIPTS_TOPIC"], key=POD, value=json.dumps(receipt))
    producer.flush(5)


if FAULT == "crashes":
    sys.exit("no such table: orders")
signal.signal(signal.SIGTERM, stop)
consumer.subscribe([topic], on_assign=assigned, on_revoke=revoked, on_lost=revoked)
while not stopping:
    flush()
    by_partition = {}
    for one in consumer.consume(50, 0.2):
        if one.error() is None:
            by_partition.setdefault(one.partition(), []).append(one)
    for rows in by_partition.values():
        if FAULT == "commits before work":
            commit(rows[-1])
        work(rows)
        if FAULT != "commits before work":
            commit(rows[-1])
flush()
consumer.close()
