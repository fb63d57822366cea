"""``python -m tests.scenarios.ride_hailing.programs.analytics``: the live dashboard's table, by Spark Structured Streaming.

It reads the same topic as the consumer group, from offsets of its own: the group works on each event and is scaled by its
lag, Spark sums events up in windows; neither takes anything from the other. What a micro-batch changed becomes a Parquet file:

    batch, kind, window_ms, place, events, value, newest_ms    window_ms: its start; newest_ms: its newest event (epoch)

``value`` is a zone's latest multiplier (surge-update), the mean fare (trip-complete), nothing for a driver-location. Of each
(kind, window, place) the row of the newest batch counts. A batch is said on the reports topic once a reader of the table has
read it, with the end offsets that it covers and how many events the table then sums up: so the record tells whether an event
came into the table, and at which age.
"""

from __future__ import annotations

import json
import sys
import tempfile
import threading
import time
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from lab.flags import number
from lab.kafka import event
from tests.scenarios.ride_hailing.programs import streaming
from tests.scenarios.ride_hailing.programs.city import DRIVER, SURGE, TRIP

PROGRAM = "tests.scenarios.ride_hailing.programs.analytics"
PAYLOAD = (
    "kind string, lat double, lng double, fare double, distance_km double, duration_min double, "
    "zone_id string, multiplier double, demand_score double"
)
_COLUMNS = "batch int64, kind string, window_ms int64, place string, events int64, value float64, newest_ms int64"
TABLE = pa.schema([tuple(column.split()) for column in _COLUMNS.split(", ")])
SHUFFLE_PARTITIONS = 1  # a state of some dozen rows: each more is one more task and one more checkpoint a batch


def windows(records: DataFrame, window_s: float, watermark_s: float) -> DataFrame:
    """The table's rows of Kafka records (value); a stream's, or a table's for a test."""
    value = F.col("value")
    digits = F.hex(F.substring(value, 17, 8))
    ts = F.java_method(F.lit("java.lang.Long"), F.lit("parseLong"), digits, F.lit(16)).cast("long")
    said = F.from_json(F.substring(value, event.HEADER.size + 1, event.SIZE).cast("string"), PAYLOAD)
    fields = records.select(ts.alias("ts"), said.alias("said"))
    events = fields.select(F.timestamp_millis(F.expr("ts div 1000000")).alias("at"), "said.*")
    cell = F.format_string("%.2f,%.2f", "lat", "lng")
    place = F.when(F.col("kind") == SURGE, F.col("zone_id")).when(F.col("kind") == DRIVER, cell).otherwise("city")
    grouped = (
        events.where(F.col("kind").isin(DRIVER, TRIP, SURGE))
        .withColumn("place", place)
        .withWatermark("at", f"{watermark_s * 1000:.0f} milliseconds")
        .groupBy(F.window("at", f"{window_s * 1000:.0f} milliseconds").alias("w"), "kind", "place")
    )
    rows = grouped.agg(
        F.count("*").alias("events"),
        F.coalesce(F.max_by("multiplier", "at"), F.avg("fare")).alias("value"),
        F.unix_millis(F.max("at")).alias("newest_ms"),
    )
    return rows.select("kind", F.unix_millis("w.start").alias("window_ms"), "place", "events", "value", "newest_ms")


def fold(table: Mapping[tuple[str, int, str], Mapping[str, Any]]) -> dict[str, float]:
    """The multiplier of each zone in the dashboard: of its newest window. Pure."""
    newest: dict[str, tuple[int, float]] = {}
    for (kind, window, place), row in table.items():
        if kind == SURGE and (place not in newest or newest[place][0] < window):
            newest[place] = window, row["value"]
    return {place: value for place, (_, value) in newest.items()}


class Dashboard:
    """The table as files, and as a reader of it sees it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._read: dict[tuple[str, int, str], dict[str, Any]] = {}
        self.available: dict[int, tuple[float, int, int, dict[str, float]]] = {}

    def write(self, rows: DataFrame, batch: int) -> None:
        """Write a micro-batch's rows, whole or not at all; then read them as the dashboard does and note the time."""
        content = [{"batch": batch, **row.asDict()} for row in rows.collect()]
        file = self._folder / f"batch-{batch:08d}.parquet"
        partial = file.with_suffix(".partial")
        pq.write_table(pa.Table.from_pylist(content, TABLE), partial)
        partial.replace(file)
        for row in pq.read_table(file).to_pylist():
            self._read[row["kind"], row["window_ms"], row["place"]] = row
        at = time.time()
        events = sum(row["events"] for row in self._read.values())
        self.available[batch] = at, len(content), events, fold(self._read)


def progress(query: StreamingQuery, after: int) -> list[tuple[int, dict[str, int], float]]:
    """(batch, end offset by partition, its duration in s) of the batches that ended after batch ``after``."""
    found = []
    for one in query.recentProgress:
        content = json.loads(one.json) if hasattr(one, "json") else dict(one)
        batch = int(content["batchId"])
        end = content["sources"][0]["endOffset"]
        end = json.loads(end) if isinstance(end, str) else end
        if batch > after and end:
            found.append((batch, dict(next(iter(end.values()))), content["durationMs"].get("triggerExecution", 0) / 1000))
    return found


def follow(query: StreamingQuery, dashboard: Dashboard, say: streaming.Say, stop: threading.Event) -> None:
    """Say every batch once its rows can be read and its offsets are known, until told to stop or the query ends."""
    last = -1
    while query.isActive and not stop.wait(0.1):
        for batch, offsets, seconds in progress(query, last):
            if batch in dashboard.available:
                at, rows, events, zones = dashboard.available.pop(batch)
                said = {"batch": batch, "available": at, "rows": rows, "events": events, "zones": zones}
                say("table", **said, offsets=offsets, batch_s=seconds)
                last = batch


def main() -> int:
    """Keep the table until SIGTERM; exit 2 on bad input, 1 when the query failed. Table and checkpoint go with the process."""
    parser = streaming.flags(PROGRAM, __doc__, watermark_s=30.0, heap="768m")
    parser.flag("window-s", number(0.1, 86_400), 10.0, "length of a window, s", "0.1 to 86,400")
    with tempfile.TemporaryDirectory(prefix="elastic-lab-dashboard-") as folder:
        table = Path(folder, "table")
        table.mkdir()
        dashboard = Dashboard(table)

        def begin(spark: SparkSession, options: Namespace, login: Mapping[str, str]) -> tuple[StreamingQuery, streaming.Follow]:
            spark.conf.set("spark.sql.shuffle.partitions", str(SHUFFLE_PARTITIONS))
            records = streaming.stream(spark, options.bootstrap_servers, options.topic, login)
            rows = windows(records, options.window_s, options.watermark_s)
            writer = rows.writeStream.outputMode("update").foreachBatch(dashboard.write).queryName("dashboard")
            writer = writer.option("checkpointLocation", str(Path(folder, "checkpoint")))
            query = writer.trigger(processingTime=f"{options.trigger_ms} milliseconds").start()
            return query, lambda running, say, stop: follow(running, dashboard, say, stop)

        return streaming.run(parser, "analytics", begin)


if __name__ == "__main__":
    sys.exit(main())
