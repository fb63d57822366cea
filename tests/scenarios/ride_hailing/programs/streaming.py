"""What the drivers of Spark's streaming queries share: flags, the stream of a topic, and the way from start to SIGTERM."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from argparse import Namespace
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from lab.errors import InputError
from lab.flags import Flags, number, whole
from lab.kafka import forms
from lab.kafka.login import kafka_flags
from lab.programs.telemetry import Reports, process_started, reporter, serve
from lab.record.ledger import session

log = logging.getLogger("ride_hailing")
Say = Callable[..., None]
Follow = Callable[[StreamingQuery, Say, threading.Event], None]
Start = Callable[[SparkSession, Namespace, Mapping[str, str]], tuple[StreamingQuery, Follow]]
_FETCH = {"kafka.fetch.max.wait.ms": "10", "kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "10000"}


def flags(program: str, doc: str | None, *, watermark_s: float, heap: str) -> Flags:
    """The flags of the driver ``program``, with its defaults; each may come from the environment."""
    parser = Flags(prog=f"python -m {program}", description=doc)
    kafka_flags(parser)
    parser.serving(metrics_port=9090)
    parser.flag("topic", str, "events", "topic that the group consumes")
    parser.flag("reports-topic", str, "", "topic on which batches are reported; empty for none")
    parser.flag("watermark-s", number(0, 86_400), watermark_s, "how late an event may come, s", "0 to 86,400")
    parser.flag("trigger-ms", whole(0, 600_000), 1000, "least time between micro-batches, ms", "0 to 600,000")
    parser.flag("master", str, "local[2]", "Spark's master: local[N], local-cluster[N,cores,MB] or a cluster's URL")
    parser.flag("heap", str, heap, "the driver's heap")
    return parser


def stream(spark: SparkSession, bootstrap: str, topic: str, login: Mapping[str, str]) -> DataFrame:
    """The topic from its beginning, as one task a core and not one a partition; ``login`` are options of the connector."""
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", bootstrap).option("subscribe", topic)
    loaded = reader.option("startingOffsets", "earliest").option("failOnDataLoss", "true").options(**_FETCH, **login).load()
    return loaded.coalesce(spark.sparkContext.defaultParallelism)


def run(parser: Flags, name: str, start: Start) -> int:
    """Keep a query until SIGTERM; return 2 on bad input, 1 when the query failed.

    ``start`` is given Spark's session, the options and the login as options of the connector. It returns the query, and a
    function that reports its batches until the event is set or the query ends. ``name`` is the reporter's, outside a pod.
    """
    options = parser.parse_args()
    try:
        login = forms.spark(options.kafka_settings)
    except InputError as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    logging.getLogger("py4j").setLevel(logging.ERROR)
    stop, ready = threading.Event(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    signal.signal(signal.SIGINT, lambda *_: stop.set())
    with parser.listening(options.metrics_port):
        serve(options.pod_ip, options.metrics_port, ready.is_set, lambda: True)
    who = os.environ.get("HOSTNAME", name)
    producer = reporter(options.bootstrap_servers, who, options.kafka_settings)
    reports = Reports(producer, options.reports_topic, who)

    def say(event: str, **fields: object) -> None:
        if options.reports_topic:
            reports.say(event, **fields)
            producer.poll(0)

    say("started", created=process_started())
    spark = session.spark(options.master, options.heap, "warn")
    query, follow = start(spark, options, login)
    ready.set()
    follow(query, say, stop)
    failed = query.exception()
    ready.clear()
    query.stop()
    if failed is not None:
        log.error("the query ended: %s", str(failed).splitlines()[0])
    producer.flush(10)
    spark.stop()
    return 1 if failed is not None else 0
