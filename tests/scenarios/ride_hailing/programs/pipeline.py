"""``python -m tests.scenarios.ride_hailing.programs.pipeline``: the table of rides, by Spark Structured Streaming.

It reads what the group emits. Where the group emits nothing (``EMIT`` is off), it reads the group's own topic and so goes past
the group. The table has an event a row:

    partition, offset    of the event in the group's topic
    seq, at, kind, zone  of the event; ``at`` is its time
    processed            the time at which the group's work on it ended; null past the group

The group emits at least once, so an event may come twice. Its second row is dropped by partition and offset, within the
watermark. Spark's file sink writes the table, and the table is what the sink's log says (docs/decisions/16). Table, checkpoint
and state are in the folder ``--storage``. A driver that starts again goes on from there.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from lab.flags import SWITCH, Flags, number
from lab.kafka import event
from tests.scenarios.ride_hailing.programs import streaming
from tests.scenarios.ride_hailing.programs.sinklog import SinkLog, sweep

PROGRAM = "tests.scenarios.ride_hailing.programs.pipeline"
PAYLOAD = "kind string, zone int"
WATERMARK_S, RETENTION_S = 120.0, 900.0
# One task a batch, since a batch has some hundred rows; and no batch without rows, which would only move the watermark.
SETTINGS = {"spark.sql.shuffle.partitions": "1", "spark.sql.streaming.noDataMicroBatches.enabled": "false"}
LOOK_S, SWEEP_S = 0.25, 60.0


@dataclass(frozen=True)
class Table:
    """The folders of a table under ``storage``, and its bounds.

    An event may come ``watermark_s`` later than the newest one. A file stays in the table for ``retention_s``.
    """

    storage: Path
    watermark_s: float = WATERMARK_S
    retention_s: float = RETENTION_S

    @property
    def rows(self) -> Path:
        """The folder of the rows."""
        return self.storage / "table"

    @property
    def checkpoint(self) -> Path:
        """The folder of Spark's checkpoint: the offsets and commits of batches, and the state."""
        return self.storage / "checkpoint"

    def files(self) -> dict[str, int]:
        """How many files there are of each kind: what has to stay bounded as batches go by."""
        folders = {"rows": self.rows, "log": SinkLog.folder_of(self.rows)}
        folders |= {name: self.checkpoint / name for name in ("offsets", "commits", "state")}
        return {name: _count(folder, deep=name == "state") for name, folder in folders.items()}


def _count(folder: Path, deep: bool) -> int:
    return sum(one.is_file() and not one.name.startswith(".") for one in (folder.rglob("*") if deep else folder.glob("*")))


def flags() -> Flags:
    """The driver's flags; each may come from the environment."""
    parser = streaming.flags(PROGRAM, __doc__, watermark_s=WATERMARK_S, heap="512m")
    parser.flag("output-topic", str, "output", "topic of what the group emits")
    parser.flag("emit", SWITCH, "on", "on: read what the group emits; off: read the group's own topic")
    parser.flag("retention-s", number(1, 31_536_000), RETENTION_S, "how long a file is in the table, s", "1 to 31,536,000")
    parser.flag("storage", str, "storage", "folder of table and checkpoint, which outlives the driver")
    return parser


def rows(records: DataFrame, emitted: bool, watermark_s: float) -> DataFrame:
    """The table's rows of the streamed ``records`` (value, partition, offset), each event once.

    Of ``emitted`` records the place is behind the event (:mod:`lab.kafka.event`), of others it is the record's own.
    """
    said = F.from_json(F.substring("value", event.HEADER.size + 1, event.PAYLOAD).cast("string"), PAYLOAD)
    if emitted:
        partition, offset, processed = _whole(event.SIZE, 4), _whole(event.SIZE + 4, 8), _time(event.SIZE + 12)
    else:
        partition, offset, processed = F.col("partition"), F.col("offset"), F.lit(None).cast("timestamp")
    fields = records.select(
        partition.cast("int").alias("partition"),
        offset.cast("long").alias("offset"),
        _whole(8, 8).alias("seq"),
        _time(16).alias("at"),
        said["kind"].alias("kind"),
        said["zone"].alias("zone"),
        processed.alias("processed"),
    )
    timed = fields.withWatermark("at", f"{watermark_s * 1000:.0f} milliseconds")
    return timed.dropDuplicatesWithinWatermark(["partition", "offset"])


def _whole(begin: int, length: int, divisor: int = 1) -> Column:
    """The whole number in ``length`` bytes of the value from byte ``begin``, divided by ``divisor`` without its rest."""
    return F.expr(f"cast(conv(hex(substring(value, {begin + 1}, {length})), 16, 10) as bigint) div {divisor}")


def _time(begin: int) -> Column:
    """The time in 8 bytes of the value from byte ``begin``, which are ns since the epoch; a timestamp has µs."""
    return F.timestamp_micros(_whole(begin, 8, 1000))


def start(records: DataFrame, emitted: bool, table: Table, **trigger: Any) -> StreamingQuery:
    """Start the query that keeps ``table`` of ``records``; ``trigger`` is Spark's."""
    writer = rows(records, emitted, table.watermark_s).writeStream.format("parquet").outputMode("append").queryName("rides")
    writer = writer.option("path", str(table.rows)).option("checkpointLocation", str(table.checkpoint))
    return writer.option("retention", f"{table.retention_s:.0f}s").trigger(**trigger).start()


def summary(content: Mapping[str, Any]) -> dict[str, Any]:
    """What is reported of a batch, from Spark's progress of it. Pure.

    ``repeated`` rows were dropped because the state had them, ``beyond_watermark`` rows because they came too late. A repeated
    row may be one of these, so only the ledger tells whether an event is missing.
    """
    state = (content.get("stateOperators") or [{}])[0]
    return {
        "batch": content["batchId"],
        "input": content["numInputRows"],
        "batch_s": content["durationMs"].get("triggerExecution", 0) / 1000,
        "watermark": content.get("eventTime", {}).get("watermark", ""),
        "state_rows": state.get("numRowsTotal", 0),
        "state_bytes": state.get("memoryUsedBytes", 0),
        "beyond_watermark": state.get("numRowsDroppedByWatermark", 0),
        "repeated": (state.get("customMetrics") or {}).get("numDroppedDuplicateRows", 0),
    }


def progress(query: StreamingQuery, after: int) -> list[dict[str, Any]]:
    """The summaries of the batches with rows that ended after batch ``after``, of those that Spark still knows."""
    contents = [json.loads(one.json) for one in query.recentProgress]
    return [summary(one) for one in contents if one["batchId"] > after and one["numInputRows"]]


def follow(query: StreamingQuery, table: Table, say: streaming.Say, stop: threading.Event) -> None:
    """Report every batch, and sweep the table's folder now and then, until told to stop or the query ends."""
    last, swept = -1, time.monotonic()
    while query.isActive and not stop.wait(LOOK_S):
        for batch in progress(query, last):
            last = batch["batch"]
            say("batch", **batch, files=table.files())
        if time.monotonic() - swept > SWEEP_S:
            swept = time.monotonic()
            sweep(table.rows)


def begin(spark: SparkSession, options: Namespace, login: Mapping[str, str]) -> tuple[StreamingQuery, streaming.Follow]:
    """The query of the table in ``--storage``, and what reports its batches."""
    for name, value in SETTINGS.items():
        spark.conf.set(name, value)
    emitted = options.emit == "on"
    topic = options.output_topic if emitted else options.topic
    table = Table(Path(options.storage).resolve(), options.watermark_s, options.retention_s)
    records = streaming.stream(spark, options.bootstrap_servers, topic, login)
    query = start(records, emitted, table, processingTime=f"{options.trigger_ms} milliseconds")
    streaming.log.info("%s to %s", topic, table.rows)
    return query, lambda running, say, stop: follow(running, table, say, stop)


if __name__ == "__main__":
    sys.exit(streaming.run(flags(), "pipeline", begin))
