"""The checker: what the topic holds against what the consumers' receipts say they processed. Pure over recorded history.

A message is an offset of a partition; it is processed once for each receipt whose range first..last covers it. Checked,
in the words of Jepsen's Kafka workload where it has one:

* **lost**: nobody processed the message, though a later one of its partition was processed: it was skipped, and a consumer
  that reads on from the committed offset will never come back to it.
* **unseen**: nobody processed the message, nor any later one of its partition: the backlog left when the record was
  closed. In a trial that was to drain, this too is a loss.
* **doubled** (Jepsen's duplicate): more than one receipt covers the message, in whichever pods. A receipt that was itself
  written twice counts as well: its reader can't tell.
* **mismatched**: a receipt that is not about the messages in its range: its checksum is not the sum of theirs, or its count
  is not the length of its range.
* **phantom**: a receipt covers offsets the log does not have.
* **holes**: an offset below a partition's end is missing in the log. With an idempotent producer without transactions there
  are none; if there are, other numbers count offsets, not messages, and the record is not to be trusted.

Counted too, but no anomaly of the consumers: **resent**, messages whose seq an earlier message already had.

No message is joined with a receipt. Coverage is a sweep over the receipts' ends alone; checksums are differences of prefix
sums along each partition, looked up at those ends.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, Row, Window
from pyspark.sql import functions as F

from lab.errors import LabFault

NAMED = 1000  # ranges named of each kind; totals count all
_KINDS = ("lost", "unseen", "doubled", "phantom")


@dataclass(frozen=True)
class Range:
    """Offsets ``first`` to ``last`` of a partition, inclusive, with one anomaly.

    ``count`` is messages: for doubled the extra copies, for mismatched what the receipt claims. ``pods`` are those whose
    receipts cover the range; for lost and unseen those whose receipts adjoin it. Sorted.
    """

    partition: int
    first: int
    last: int
    count: int
    pods: tuple[str, ...]


@dataclass(frozen=True)
class Reconciliation:
    """The verdict on a record. Always ``produced == processed + lost_messages + unseen_messages`` when there are no holes."""

    produced: int  # messages in the topic
    processed: int  # of these, covered by at least one receipt
    receipts: int
    holes: int  # offsets
    resent: int  # messages
    lost_messages: int
    unseen_messages: int
    doubled_messages: int  # extra copies
    phantom_messages: int  # offsets
    mismatched_receipts: int
    lost: tuple[Range, ...]  # each of these sorted, and at most NAMED long
    unseen: tuple[Range, ...]
    doubled: tuple[Range, ...]
    phantom: tuple[Range, ...]
    mismatched: tuple[Range, ...]

    @property
    def exact(self) -> bool:
        """Whether every message produced was processed exactly once, and no receipt says otherwise."""
        return not (
            self.lost_messages
            or self.unseen_messages
            or self.doubled_messages
            or self.phantom_messages
            or self.mismatched_receipts
            or self.holes
        )

    def to_json(self) -> dict[str, Any]:
        """Plain dicts, lists and numbers."""
        fields = dataclasses.asdict(self)
        for name, value in fields.items():
            if isinstance(value, tuple):
                fields[name] = [{**each, "pods": list(each["pods"])} for each in value]
        return fields

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Reconciliation:
        """What :meth:`to_json` gave. Raises ``KeyError`` or ``TypeError`` for anything else."""
        fields = {field.name: content[field.name] for field in dataclasses.fields(cls)}
        for name, value in fields.items():
            if isinstance(value, list):
                fields[name] = tuple(Range(**{**each, "pods": tuple(each["pods"])}) for each in value)
        return cls(**fields)


def reconcile(events: DataFrame, receipts: DataFrame) -> Reconciliation:
    """Check ``receipts`` against ``events``, both as :mod:`lab.ledger.ingest` writes them: each offset once.

    Some seconds for 1 M events on two cores. Raises :class:`LabFault` for a receipt with a field missing or with its ends
    the wrong way round.
    """
    receipts = receipts.withColumn("id", F.monotonically_increasing_id()).persist()
    bounds = _bounds(events, receipts).persist()
    try:
        total = _well_formed(receipts)
        produced, holes = bounds.agg(F.sum("n"), F.sum(F.col("log_end") - F.col("n"))).collect()[0]
        lengths, counts, named = _coverage(receipts, bounds)
        mismatched_receipts, mismatched = _mismatched(events, receipts, bounds)
        return Reconciliation(
            produced=produced or 0,
            processed=lengths.get("once", 0) + lengths.get("doubled", 0),
            receipts=total,
            holes=holes or 0,
            resent=(produced or 0) - distinct(events, "seq"),
            lost_messages=counts.get("lost", 0),
            unseen_messages=counts.get("unseen", 0),
            doubled_messages=counts.get("doubled", 0),
            phantom_messages=counts.get("phantom", 0),
            mismatched_receipts=mismatched_receipts,
            lost=named.get("lost", ()),
            unseen=named.get("unseen", ()),
            doubled=named.get("doubled", ()),
            phantom=named.get("phantom", ()),
            mismatched=mismatched,
        )
    finally:
        bounds.unpersist()
        receipts.unpersist()


def distinct(table: DataFrame, column: str) -> int:
    """How many different values a column of longs from 0 holds: by bitmaps of 32,768, small as long as they are dense."""
    value = F.col(column) + 1  # buckets count from 1
    bitmaps = table.groupBy(F.bitmap_bucket_number(value)).agg(
        F.bitmap_construct_agg(F.bitmap_bit_position(value)).alias("bits")
    )
    return int(bitmaps.agg(F.sum(F.bitmap_count("bits"))).collect()[0][0] or 0)


def _well_formed(receipts: DataFrame) -> int:
    """How many receipts there are; a :class:`LabFault` when one is no receipt."""
    missing = F.lit(False)
    for name in ("pod", "partition", "first", "last", "count", "checksum", "start", "end"):
        missing = missing | F.col(name).isNull()
    wrong = missing | (F.col("first") < 0) | (F.col("first") > F.col("last")) | (F.col("start") > F.col("end"))
    total, bad = receipts.agg(F.count("*"), F.count(F.when(wrong, 1))).collect()[0]
    if bad:
        raise LabFault(f"{bad} of {total} receipts lack a field or have their ends the wrong way round")
    return int(total)


def _bounds(events: DataFrame, receipts: DataFrame) -> DataFrame:
    """By partition: ``n`` messages, ``log_end`` (the last offset + 1), ``seen`` (the last receipt's + 1)."""
    log = events.groupBy("partition").agg(F.count("*").alias("n"), (F.max("offset") + 1).alias("log_end"))
    said = receipts.groupBy("partition").agg((F.max("last") + 1).alias("seen"))
    return log.join(said, "partition", "full").na.fill(0)


def _coverage(receipts: DataFrame, bounds: DataFrame) -> tuple[dict[str, int], dict[str, int], dict[str, tuple[Range, ...]]]:
    """By kind of coverage: how many offsets, how many messages, and the named ranges (all but the kind "once")."""
    marks = (
        receipts.select("partition", F.col("first").alias("at"), F.lit(1).alias("change"))
        .unionAll(receipts.select("partition", F.col("last") + 1, F.lit(-1)))
        .unionAll(bounds.select("partition", F.lit(0), F.lit(0)))
        .unionAll(bounds.select("partition", "log_end", F.lit(0)))
    )
    along = Window.partitionBy("partition").orderBy("at")
    stretches = (
        marks.groupBy("partition", "at")
        .agg(F.sum("change").alias("change"))
        .select(
            "partition",
            F.col("at").alias("first"),
            (F.lead("at").over(along) - 1).alias("last"),
            F.sum("change").over(along).alias("depth"),
        )
        .where("last IS NOT NULL")
        .join(F.broadcast(bounds), "partition")
        .withColumn(
            "kind",
            F.expr(
                "CASE WHEN first >= log_end THEN IF(depth > 0, 'phantom', 'none') WHEN depth > 1 THEN 'doubled' "
                "WHEN depth = 1 THEN 'once' WHEN first >= seen THEN 'unseen' ELSE 'lost' END"
            ),
        )
    )
    # Neighbouring stretches of one kind are one range: number the places where the kind changes.
    along = Window.partitionBy("partition").orderBy("first")
    turned = F.when(F.col("kind") != F.lag("kind").over(along), 1).otherwise(0)
    ranges = (
        stretches.withColumn("turned", turned)
        .withColumn("run", F.sum("turned").over(along))
        .groupBy("partition", "run", "kind")
        .agg(
            F.min("first").alias("first"),
            F.max("last").alias("last"),
            F.sum(F.expr("(last - first + 1) * IF(kind = 'doubled', depth - 1, 1)")).alias("count"),
        )
        .persist()
    )
    try:
        totals = ranges.groupBy("kind").agg(F.sum(F.expr("last - first + 1")), F.sum("count")).collect()
        lengths, counts = {row[0]: row[1] for row in totals}, {row[0]: row[2] for row in totals}
        return lengths, counts, _named(ranges, receipts) if any(kind in counts for kind in _KINDS) else {}
    finally:
        ranges.unpersist()


def _named(ranges: DataFrame, receipts: DataFrame) -> dict[str, tuple[Range, ...]]:
    """The first NAMED ranges of each kind, with the pods of the receipts that cover or, of a gap, adjoin them."""
    order = Window.partitionBy("kind").orderBy("partition", "first")
    first_ones = (
        ranges.where(F.col("kind").isin(*_KINDS)).withColumn("nth", F.row_number().over(order)).where(F.col("nth") <= NAMED)
    )
    a, r = F.broadcast(first_ones).alias("a"), receipts.alias("r")
    reach = F.expr("IF(a.kind IN ('lost', 'unseen'), 1, 0)")
    near = (
        (F.col("a.partition") == F.col("r.partition"))
        & (F.col("r.first") <= F.col("a.last") + reach)
        & (F.col("r.last") >= F.col("a.first") - reach)
    )
    pods = r.join(a, near).groupBy("a.kind", "a.partition", "a.first").agg(F.collect_set("r.pod").alias("pods"))
    rows = first_ones.join(pods, ["kind", "partition", "first"], "left").orderBy("partition", "first").collect()
    return {kind: tuple(_range(row) for row in rows if row["kind"] == kind) for kind in _KINDS}


def _mismatched(events: DataFrame, receipts: DataFrame, bounds: DataFrame) -> tuple[int, tuple[Range, ...]]:
    """How many receipts contradict the messages in their range, and the first NAMED of them."""
    along = Window.partitionBy("partition").orderBy("offset").rowsBetween(Window.unboundedPreceding, 0)
    prefix = events.select("partition", "offset", "crc", F.sum("crc").over(along).alias("upto"))
    ends = receipts.select("id", "partition", F.col("first").alias("offset"), F.lit(True).alias("opens")).unionAll(
        receipts.select("id", "partition", "last", F.lit(False))
    )
    sums = (
        prefix.join(F.broadcast(ends), ["partition", "offset"])
        .groupBy("id")
        .agg(F.count("*").alias("hits"), F.sum(F.expr("IF(opens, crc - upto, upto)")).alias("sum"))
    )
    wrong = (
        receipts.join(sums, "id", "left")
        .join(F.broadcast(bounds), "partition")
        .where("count != last - first + 1 OR (last < log_end AND (hits IS NULL OR hits < 2 OR sum != checksum))")
        .select("partition", "first", "last", "count", F.array("pod").alias("pods"))
    )
    rows = wrong.orderBy("partition", "first", "last", "pods").limit(NAMED).collect()
    return len(rows) if len(rows) < NAMED else wrong.count(), tuple(_range(row) for row in rows)


def _range(row: Row) -> Range:
    return Range(row["partition"], row["first"], row["last"], row["count"], tuple(sorted(row["pods"] or ())))
