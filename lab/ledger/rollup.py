"""Throughput over time from the record itself: messages consumed, by pod, and produced, in bins of 0.2 and 1 s."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

PER_SECOND = (5, 1)  # bins; whole numbers, so that a bin's edge is exact in a double
GROUP = ""  # the pod of the group's total


def rates(events: DataFrame, receipts: DataFrame) -> DataFrame:
    """Messages by bin: bin_s double, t double (bin's start, s since the epoch), series, pod string, messages double.

    The series "consumed" spreads each receipt's count evenly over its start..end, by pod and, with pod "", for the group.
    "produced" counts events by when they were scheduled, for the group only. A bin without messages has no row. Summed
    over its bins, a series is the number of messages, at either width. Not sorted.
    """
    parts = []
    for per_second in PER_SECOND:
        parts += [_consumed(receipts, per_second), _produced(events, per_second)]
    table = parts[0]
    for part in parts[1:]:
        table = table.unionAll(part)
    return table


def _consumed(receipts: DataFrame, per_second: int) -> DataFrame:
    start, end = F.col("start") * per_second, F.col("end") * per_second
    bins = receipts.withColumn("bin", F.explode(F.sequence(F.floor(start), F.floor(end))))
    # The share done by a bin's edges; the outermost are 0 and 1 by definition, so that no rounding loses a message.
    last = F.col("bin") == F.floor(end)
    before = F.when(F.col("bin") == F.floor(start), 0.0).otherwise((F.col("bin") - start) / (end - start))
    after = F.when(last, 1.0).otherwise((F.col("bin") + 1 - start) / (end - start))
    spread = bins.select("pod", "bin", (F.col("count") * (after - before)).alias("messages"))
    by_pod = spread.groupBy("pod", "bin").agg(F.sum("messages").alias("messages"))
    total = by_pod.groupBy("bin").agg(F.sum("messages").alias("messages")).withColumn("pod", F.lit(GROUP))
    return _series(by_pod.unionByName(total), "consumed", per_second)


def _produced(events: DataFrame, per_second: int) -> DataFrame:
    at = F.expr(f"ts div {1_000_000_000 // per_second}")
    counted = events.groupBy(at.alias("bin")).agg(F.count("*").cast("double").alias("messages"))
    return _series(counted.withColumn("pod", F.lit(GROUP)), "produced", per_second)


def _series(table: DataFrame, series: str, per_second: int) -> DataFrame:
    columns: list[Column] = [
        F.lit(1 / per_second).alias("bin_s"),
        (F.col("bin") / per_second).alias("t"),
        F.lit(series).alias("series"),
        F.col("pod"),
        F.col("messages"),
    ]
    return table.where("messages > 0").select(*columns)
