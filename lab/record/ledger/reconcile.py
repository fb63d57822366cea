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
* **dead**: nobody processed the message, and it is in the dead-letter topic. That is no anomaly where its
  failure was injected.
* **both**: the message is in the dead-letter topic and a receipt covers it. At-least-once: a consumer that was killed between
  the letter and its commit leaves a message that its successor may process.
* **buried again**: a further dead letter about the same message, which a kill at that moment leaves too. Letters are told
  apart by the offset of their message.
* **stray**: a dead letter about an offset the log does not have.
* **holes**: an offset below a partition's end is missing in the log. With an idempotent producer without transactions there
  are none; if there are, other numbers count offsets, not messages, and the record is not to be trusted.

Counted too, but no anomaly of the consumers: **resent**, messages whose seq an earlier message already had.

Of the messages Spark makes prefix sums along each partition, in one pass (:mod:`lab.record.ledger.fold`); a range's checksum
is the difference of two of them, and only those at a receipt's end, a few for each receipt, leave Spark. Receipts are few
beside messages (some 500,000 for 20 M), so coverage is a sweep over their ends in numpy: as Spark stages it took most of a
small trial's CPU.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from pyspark import cloudpickle
from pyspark.sql import SparkSession

from lab.errors import LabFault
from lab.record.ledger import fold
from lab.record.ledger.fold import Folded
from lab.record.reconciliation import Range, Reconciliation

cloudpickle.register_pickle_by_value(fold)  # type: ignore[no-untyped-call]

MOST_TASKS = 16  # each leaves a bit for each seq: 12 MB of 100 M
NAMED = 1000  # ranges named of each kind; totals count all


def reconcile(
    spark: SparkSession, events: Sequence[Path], receipts: pd.DataFrame, dead_letters: pd.DataFrame | None = None
) -> Reconciliation:
    """Check ``receipts`` and ``dead_letters`` against the files of ``events``, as ``ingest`` writes them: each offset once.

    Raises :class:`LabFault` for a receipt with a field missing or with its ends the wrong way round.
    """
    return check(folded(spark, events, receipts), receipts, dead_letters)


def folded(spark: SparkSession, events: Sequence[Path], said: pd.DataFrame) -> Folded:
    """What checking the receipts ``said`` needs of ``events``, which are read once, by as many tasks as there are cores."""
    _check_form(said)
    ends = fold.ends_of(said)
    names = spark.createDataFrame([(str(file.absolute()),) for file in events], "file string")
    few = names.repartition(max(1, min(spark.sparkContext.defaultParallelism, MOST_TASKS, len(events))))
    folding, reading = fold.fold, fold.read  # pickled with what they name: the module would be with all that it holds
    with warnings.catch_warnings():  # of pandas, which PySpark asks for here and is not given
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        found = few.mapInArrow(lambda names: folding(reading(names), ends), fold.DDL)
    return fold.merge(found.toArrow())


def check(events: Folded, said: pd.DataFrame, dead_letters: pd.DataFrame | None = None) -> Reconciliation:
    """Check the receipts ``said`` and ``dead_letters`` against what the events left. Pure. Raises like :func:`reconcile`."""
    _check_form(said)
    said = said.sort_values(["partition", "first", "last", "pod"], ignore_index=True)
    letters = pd.DataFrame({"partition": [], "offset": []}, dtype="int64")
    if dead_letters is not None:
        letters = dead_letters[["partition", "offset"]]
    dead = letters.drop_duplicates()
    bounds = _bounds(events.bounds, said, dead)
    produced = int(bounds["n"].sum())
    ranges = _coverage(said, dead, bounds)
    stray = letters["offset"] >= letters["partition"].map(bounds["log_end"])
    lengths = _lengths(ranges).groupby(ranges["kind"]).sum()
    both = ranges[ranges["also_dead"] & ranges["kind"].isin(["once", "doubled"])]
    counts = ranges.groupby("kind")["count"].sum()
    mismatched = _mismatched(said, events.sums, bounds)
    named = _first_rows(mismatched, "pod")
    gaps_and_copies: dict[str, Any] = {}
    for kind in ("lost", "unseen", "doubled", "phantom"):
        gaps_and_copies |= {f"{kind}_messages": int(counts.get(kind, 0)), kind: _named(ranges, kind, said)}
    return Reconciliation(
        **gaps_and_copies,
        produced=produced,
        processed=int(lengths.get("once", 0) + lengths.get("doubled", 0)),
        receipts=len(said),
        holes=int(bounds["log_end"].sum()) - produced,
        resent=produced - events.seqs,
        mismatched_receipts=len(mismatched),
        mismatched=tuple(Range(number, first, last, count, (pod,)) for number, first, last, count, pod in named),
        dead_messages=int(lengths.get("dead", 0)),
        both_messages=int(_lengths(both).sum()),
        buried_again=len(letters) - len(dead),
        stray_letters=int(stray.sum()),
        dead=_named(ranges, "dead", said),
        both=_named(both.assign(kind="both", count=_lengths(both)), "both", said),
    )


def _check_form(receipts: pd.DataFrame) -> None:
    """Raise a :class:`LabFault` when one of ``receipts`` is none."""
    checked = receipts.isna().assign(
        below_0=receipts["first"] < 0,
        backwards=receipts["first"] > receipts["last"],
        back_in_time=receipts["start"] > receipts["end"],
    )
    wrong = checked.any(axis=1)
    if wrong.any():
        raise LabFault(f"{wrong.sum()} of {len(receipts)} receipts lack a field or have their ends the wrong way round")


def _lengths(ranges: pd.DataFrame) -> pd.Series[int]:
    """How many offsets each range has."""
    return ranges["last"] - ranges["first"] + 1


def _bounds(log: pd.DataFrame, receipts: pd.DataFrame, dead: pd.DataFrame) -> pd.DataFrame:
    """By partition: ``n`` messages, ``log_end`` (the last offset + 1) and ``seen``, the last offset of a receipt or a letter.

    Each is 0 where there is none. No gap is at ``seen`` itself: it is before that, or it is behind.
    """
    through = pd.concat([receipts[["partition", "last"]], dead.rename(columns={"offset": "last"})])
    seen = through.groupby("partition")["last"].max()
    columns = {"n": log["n"], "log_end": log["log_end"], "seen": seen}
    both = log.index.union(seen.index)
    return pd.DataFrame({name: column.reindex(both, fill_value=0) for name, column in columns.items()}, index=both)


def _coverage(receipts: pd.DataFrame, dead: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """Each partition's offsets, cut where coverage changes: partition, kind, also_dead, first, last, count (messages)."""
    number, known, letters = receipts["partition"], bounds.index, dead["partition"]
    ends: list[Any] = [receipts["first"], receipts["last"] + 1, np.zeros_like(known), bounds["log_end"]]
    at = [*ends, dead["offset"], dead["offset"] + 1]
    sizes = [len(each) for each in at]
    columns = {
        "partition": np.concatenate([number, number, known, known, letters, letters]),
        "at": np.concatenate(at),
        "change": np.repeat([1, -1, 0, 0, 0, 0], sizes),
        "letters": np.repeat([0, 0, 0, 0, 1, -1], sizes),
    }
    marks = pd.DataFrame(columns)
    marks = marks.groupby(["partition", "at"])[["change", "letters"]].sum().reset_index()
    # A partition's changes sum to 0, so the depth needs no start anew. Its last mark begins no range: it is beyond the log.
    parts = marks.assign(
        first=marks["at"],
        last=np.roll(marks["at"].to_numpy(), -1) - 1,
        depth=marks["change"].cumsum(),
        also_dead=marks["letters"].cumsum().astype(bool),
    )
    parts = parts.join(bounds, on="partition")
    depth, covered = parts["depth"], parts["depth"].astype(bool)
    in_log = np.select(
        [depth > 1, covered, parts["also_dead"], parts["first"] >= parts["seen"]],
        ["doubled", "once", "dead", "unseen"],
        "lost",
    )
    beyond = np.where(covered, "phantom", "none")
    kind = np.where(parts["first"] >= parts["log_end"], beyond, in_log)
    copies = np.where(kind == "doubled", depth - 1, 1)
    parts = parts.assign(kind=kind, count=(parts["last"] - parts["first"] + 1) * copies)
    # Neighbours of one kind are one range.
    here = parts[["partition", "kind", "also_dead"]]
    run = (here != here.shift()).any(axis=1).cumsum()
    how = dict.fromkeys(here, "first") | {"first": "min", "last": "max", "count": "sum"}
    return parts.groupby(run).agg(how)


def _named(ranges: pd.DataFrame, kind: str, receipts: pd.DataFrame) -> tuple[Range, ...]:
    """The first NAMED ranges of ``kind``, with the pods of the receipts that cover or, of a gap, adjoin them."""
    reach = 1 if kind in ("lost", "unseen", "dead") else 0
    found = []
    for partition, first, last, count in _first_rows(ranges[ranges["kind"] == kind]):
        near = (receipts["first"] <= last + reach) & (receipts["last"] >= first - reach)
        pods = set(receipts["pod"][near & (receipts["partition"] == partition)])
        found.append(Range(partition, first, last, count, tuple(sorted(pods))))
    return tuple(found)


def _first_rows(table: pd.DataFrame, *more: str) -> Iterable[Any]:
    """Of those rows that are named: partition, first, last, count, and the columns ``more``."""
    return table.head(NAMED)[["partition", "first", "last", "count", *more]].itertuples(index=False, name=None)


def _mismatched(receipts: pd.DataFrame, sums: pd.DataFrame, bounds: pd.DataFrame) -> pd.DataFrame:
    """The receipts that contradict the messages in their range."""
    opens, closes = (
        sums[["crc", "upto"]]
        .reindex(pd.MultiIndex.from_frame(receipts[["partition", end]]), fill_value=-1)
        .reset_index(drop=True)
        for end in ("first", "last")
    )
    absent = (opens["crc"] < 0) | (closes["crc"] < 0)
    differs = closes["upto"] - opens["upto"] + opens["crc"] != receipts["checksum"]
    in_log = receipts["last"] < receipts["partition"].map(bounds["log_end"])
    miscounted = receipts["count"] != receipts["last"] - receipts["first"] + 1
    return receipts[miscounted | (in_log & (absent | differs))]
