"""Kafka to Parquet by Structured Streaming, exactly once: what the topics hold, in columns that a reconciliation reads.

``events/``   partition int, offset long, entity_id long, seq long, ts long (ns since the epoch), crc long
``receipts/`` pod string, partition int, first long, last long, count long, checksum long, start double, end double (s)
``dead_letters/`` partition int, offset long (where the message is), topic string, attempts int, error string, first_failure
              double, failed double (s), replays int, seq long, crc long, at_partition int, at long (where its letter is)

``crc`` is :func:`lab.kafka.event.check` of the message, every byte of it. entity_id and seq are unsigned on the wire and
signed here: a value of 2^63 or more fails the ingestion, as does an event that is not 256 bytes, a receipt that is not JSON or
a dead letter without its headers (:mod:`lab.kafka.deadletter`). Dead letters are of trials that have a topic for them.

The fields are decoded in the JVM by Java's own ByteBuffer, whose calls are compiled into the query.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.utils import get_active_spark_context

from lab.errors import LabFault
from lab.kafka import deadletter, event, forms
from lab.kafka.numbering import Numbering, numbering
from lab.record.ledger import CHECKPOINT
from lab.record.ledger.session import was_cancelled

EVENTS = "partition int, offset long, entity_id long, seq long, ts long, crc long"
RECEIPTS = "pod string, partition int, first long, last long, count long, checksum long, start double, end double"
DEAD_LETTERS = (
    "partition int, offset long, topic string, attempts int, error string, first_failure double, failed double, replays int, "
    "seq long, crc long, at_partition int, at long"
)
TABLES = {"events": EVENTS, "receipts": RECEIPTS, "dead_letters": DEAD_LETTERS}

MOST_OFFSETS = 25_000_000  # in a batch, which a restart reads again after an interruption: some 20 s
# A broker that is gone is told within the minute, after three tries.
_PATIENCE = {"kafka.request.timeout.ms": "10000", "kafka.default.api.timeout.ms": "10000"}
# The connector asks for the log's end on the connection that a fetch is waiting on: with the stock 500 ms every partition
# idles that long, with 10 ms 24 partitions take 3 s instead of 9. Polls of 500 records cost a round trip each. So do fetches
# of 1 MB. With 8 MB and a parallel collector a ledger of 20 million takes 26 s instead of 31 (docs/decisions/22).
_FETCH = {
    "kafka.fetch.max.wait.ms": "10",
    "kafka.max.poll.records": "5000",
    "kafka.max.partition.fetch.bytes": str(8 * 2**20),
    "kafka.receive.buffer.bytes": str(2**20),
    **_PATIENCE,
}


@dataclass(frozen=True)
class Topics:
    """The topics of a trial: produced, processed and, if it may, given up. Tables have the trial's partition numbers."""

    events: str | Numbering
    receipts: str
    dead_letters: str | None = None


def ingest(
    spark: SparkSession,
    bootstrap: str,
    topics: Topics,
    ledger: Path,
    in_turn: bool = False,
    settings: Mapping[str, str] | None = None,
) -> None:
    """Append to ``ledger`` what the topics hold from where its checkpoint left off, in batches that are each done once.

    ``in_turn`` takes receipts, letters, then events: every receipt's messages are then there. ``settings`` log in to Kafka.
    Raises :class:`LabFault` when the topics can't be read in full or hold something else, and when ``ledger`` has tables but no
    checkpoint: Spark would silently drop batches.
    """
    for name in TABLES:
        data = any((ledger / name).glob("*.parquet")) or (ledger / name / "_spark_metadata").exists()
        if data and not (ledger / CHECKPOINT / name).exists():
            raise LabFault(f"{ledger / name} has data but no checkpoint to append from: ingest into another folder")
    source = {"kafka.bootstrap.servers": bootstrap, "maxOffsetsPerTrigger": str(MOST_OFFSETS), **forms.spark(settings or {})}
    on = numbering(topics.events)
    receipt = F.from_json(F.col("value").cast("string"), RECEIPTS, {"mode": "FAILFAST"}).alias("r")
    tables = {"receipts": _stream(spark, source, topics.receipts).select(receipt).select("r.*")}
    if topics.dead_letters:
        letters = _stream(spark, source | {"includeHeaders": "true"}, topics.dead_letters)
        tables["dead_letters"] = _numbered(decode_dead_letters(letters), on)
    records = _numbered(_stream(spark, source, ",".join(on.topics)), on)
    # Each task pays for itself and for a file: one a core, not one a partition.
    tables["events"] = decode_events(records).coalesce(spark.sparkContext.defaultParallelism)
    begun: list[StreamingQuery] = []
    try:
        for name, table in tables.items():
            begun.append(_start(table, ledger, name))
            if in_turn:
                _finish(begun[-1])
        for query in begun:
            _finish(query)
    except PySparkException as error:
        for query in begun:
            query.stop()
        raise LabFault(f"ingesting {', '.join(on.topics)} and {topics.receipts} from {bootstrap}: {_reason(error)}") from error


def _finish(query: StreamingQuery) -> None:
    """Wait until ``query`` is through. Raises :class:`LabFault` where it was cancelled: what it has read is not all."""
    query.awaitTermination()
    if was_cancelled(query):
        raise LabFault("the ingestion was cancelled before it was through")


def read(spark: SparkSession, ledger: Path, name: str) -> DataFrame:
    """The table ``name`` (one of ``TABLES``) of ``ledger``; empty when nothing was ingested."""
    folder = ledger / name
    folder.mkdir(parents=True, exist_ok=True)
    return spark.read.schema(TABLES[name]).parquet(str(folder))


def decode_events(records: DataFrame) -> DataFrame:
    """The table ``events`` of Kafka records (partition, offset, value)."""
    value = F.col("value")
    wrong = F.format_string("partition %d, offset %d: %d bytes are no event", "partition", "offset", F.length(value))
    sized = F.when(F.length(value) == event.SIZE, value).otherwise(F.raise_error(wrong))
    fields = (_big_endian(value, at).alias(name) for at, name in ((0, "entity_id"), (8, "seq"), (16, "ts")))
    crc = F.crc32(value).alias("crc")
    return records.select("partition", "offset", sized.alias("value")).select("partition", "offset", *fields, crc)


def decode_dead_letters(records: DataFrame) -> DataFrame:
    """The table ``dead_letters`` of Kafka records (partition, offset, value, headers)."""

    def header(name: str) -> Column:
        of_name = F.filter("headers", lambda one: one["key"] == name)
        return F.try_element_at(of_name, F.lit(-1))["value"].cast("string")

    def needed(name: str) -> Column:
        wrong = F.format_string(f"partition %d, offset %d: a dead letter without header {name}", "partition", "offset")
        return F.coalesce(header(name), F.raise_error(wrong))

    fields = {
        "partition": needed(deadletter.PARTITION).cast("int"),
        "offset": needed(deadletter.OFFSET).cast("long"),
        "topic": needed(deadletter.TOPIC),
        "attempts": needed(deadletter.ATTEMPTS).cast("int"),
        "error": needed(deadletter.ERROR),
        "first_failure": needed(deadletter.FIRST_FAILURE).cast("double"),
        "failed": needed(deadletter.TIME).cast("double"),
        "replays": F.coalesce(header(deadletter.REPLAYS), F.lit("0")).cast("int"),
        "seq": _big_endian(F.col("value"), 8),
        "crc": F.crc32("value"),
        "at_partition": F.col("partition"),
        "at": F.col("offset"),
    }
    return records.select(*(column.alias(name) for name, column in fields.items()))


def _reason(error: PySparkException) -> str:
    """The one line that says why: the innermost cause in the JVM's stack trace, which PySpark keeps but does not print."""
    trace = getattr(error, "_stackTrace", None) or ""
    causes = [line.removeprefix("Caused by: ") for line in trace.splitlines() if line.startswith("Caused by: ")]
    return (causes or str(error).splitlines() or [type(error).__name__])[-1 if causes else 0]


def _stream(spark: SparkSession, source: Mapping[str, str], topics: str) -> DataFrame:
    """What ``topics`` (with commas) hold, from their beginning; it fails rather than skip what the broker no longer has."""
    reader = spark.readStream.format("kafka").options(**source).option("subscribe", topics)
    return reader.option("startingOffsets", "earliest").option("failOnDataLoss", "true").options(**_FETCH).load()


def _numbered(table: DataFrame, on: Numbering) -> DataFrame:
    """``table`` with the trial's number as its ``partition``; a place that is none of the trial's fails the ingestion."""
    if on.single:
        return table
    wrong = F.format_string("partition %d of %s is none of the trial's", "partition", "topic")
    number = F.raise_error(wrong)
    for topic, first in on.first.items():
        here = (F.col("topic") == topic) & F.col("partition").between(0, on.each - 1)
        number = F.when(here, F.col("partition") + first).otherwise(number)
    return table.withColumn("partition", number.cast("int"))


def _start(table: DataFrame, ledger: Path, name: str) -> StreamingQuery:
    checkpoint = ledger / CHECKPOINT / name
    checkpoint.mkdir(parents=True, exist_ok=True)
    writer = table.writeStream.format("parquet").outputMode("append").queryName(f"{ledger.resolve()}/{name}")
    writer = writer.option("checkpointLocation", str(checkpoint)).option("path", str(ledger / name))
    return writer.trigger(availableNow=True).start()


def _big_endian(value: Column, at: int) -> Column:
    """The 8 bytes at ``at`` as a long; 2^63 and more are refused.

    Spark's own expression for a call of Java's is compiled into the query; ``java_method`` took more CPU than all the rest.
    """
    jvm: Any = get_active_spark_context()._jvm
    calls, types = jvm.org.apache.spark.sql.catalyst.expressions.objects, jvm.org.apache.spark.sql.types
    convert, sequence = jvm.org.apache.spark.sql.classic.ExpressionUtils, jvm.PythonUtils.toSeq
    buffer, nothing = jvm.java.lang.Class.forName("java.nio.ByteBuffer"), sequence([])
    number = getattr(getattr(types, "LongType$"), "MODULE$")
    place = convert.expression(F.lit(at)._jc)
    wrapped = [convert.expression(value._jc)]
    wrap = calls.StaticInvoke(
        buffer, types.ObjectType(buffer), "wrap", sequence(wrapped), nothing, True, True, True, jvm.scala.Option.empty()
    )
    long = Column(convert.column(calls.Invoke(wrap, "getLong", number, sequence([place]), nothing, True, True, True)))
    return F.when(long >= 0, long).otherwise(F.raise_error(F.hex(F.substring(value, at + 1, 8))))
