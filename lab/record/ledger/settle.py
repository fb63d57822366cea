"""Closes a record: the last messages ingested, the verdict drawn, tables left that read without Spark; and checks it again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lab import validation, wholefile
from lab.errors import InputError
from lab.record.ledger import CHECKPOINT, INGESTED, LEDGER, VERDICT, ingested
from lab.record.ledger.fold import BIN_NS, arrow_schema
from lab.record.ledger.ingest import TABLES, Topics, ingest, read
from lab.record.ledger.reconcile import check, folded, reconcile
from lab.record.reconciliation import Reconciliation
from lab.record.store import Record, write_json

PER_SECOND = (10**9 // BIN_NS, 1)  # bins; whole numbers, so that a bin's edge is exact in a double; each divides the first
GROUP = ""  # the pod of the group's total
RATES = arrow_schema("bin_s double, t double, series string, pod string, messages double")


def settle(
    spark: SparkSession,
    bootstrap: str,
    topics: Topics,
    record: Path,
    at_rest: bool = True,
    settings: Mapping[str, str] | None = None,
) -> Reconciliation:
    """Ingest what the topics hold into ``record``/ledger, and :func:`conclude`; called again after a failure, it goes on.

    ``at_rest``: nobody writes to the topics any more. Raises :class:`LabFault`.
    """
    ledger = record / LEDGER
    if not ingested(record):
        ingest(spark, bootstrap, topics, ledger, in_turn=not at_rest, settings=settings)
        names = [name for name in TABLES if name != "dead_letters" or topics.dead_letters]
        wholefile.write(ledger / INGESTED, json.dumps({name: _files(read(spark, ledger, name)) for name in names}))
    return conclude(spark, record)


def conclude(spark: SparkSession, record: Path) -> Reconciliation:
    """Draw the verdict on what was ingested into ``record``/ledger, without a broker; called again if interrupted, it goes on.

    Leaves the verdict, receipts, rates, ``ledger/events``, dead_letters. Raises :class:`LabFault` for receipts that are none.
    """
    ledger = record / LEDGER
    files = json.loads((ledger / INGESTED).read_text())
    if not (record / VERDICT).exists():  # where it is, all was written, and what is in the way was being removed
        said = _table(ledger, "receipts", files["receipts"])
        frame = said.to_pandas()
        left = folded(spark, [ledger / "events" / file for file in files["events"]], frame)
        dead = _table(ledger, "dead_letters", files["dead_letters"]) if "dead_letters" in files else None
        verdict = check(left, frame, None if dead is None else dead.to_pandas())
        order = [(name, "ascending") for name in ("start", "partition", "first")]
        pq.write_table(said.sort_by(order), record / "receipts.parquet")
        if dead is not None:
            order = [(name, "ascending") for name in ("failed", "partition", "offset", "at")]
            pq.write_table(dead.sort_by(order), record / "dead_letters.parquet")
        pq.write_table(pa.Table.from_pandas(rates(left.scheduled, frame), RATES), record / "rates.parquet")
        write_json(record / VERDICT, asdict(verdict))  # the last: without it all are written again
    _close(ledger, files["events"])
    return validation.read_file(Reconciliation, record / VERDICT)


def rates(scheduled: pd.DataFrame, receipts: pd.DataFrame) -> pd.DataFrame:
    """Messages by bin in the columns of ``RATES``, sorted by bin_s, series, pod, t; none without messages. Pure.

    "consumed" spreads each receipt's count evenly over its start..end, by pod and, with pod "", for the group. "produced"
    counts events by when they were ``scheduled``. ``t`` is the bin's start, epoch s.
    """
    fine = scheduled.assign(pod=GROUP)
    parts: list[pd.DataFrame] = []
    for per_second in PER_SECOND:
        produced = fine.assign(bin=fine["bin"] // (PER_SECOND[0] // per_second))
        consumed = _consumed(receipts, per_second)
        both = {"produced": produced, "consumed": pd.concat([consumed, consumed.assign(pod=GROUP)])}
        for series, table in both.items():
            summed = table.groupby(["pod", "bin"], as_index=False)["messages"].sum()
            parts.append(summed.assign(series=series, bin_s=1 / per_second, t=summed["bin"] / per_second))
    whole = pd.concat(parts).sort_values(["bin_s", "series", "pod", "t"], ignore_index=True)
    columns: list[str] = RATES.names
    return whole.loc[whole["messages"] > 0, columns]


def _consumed(receipts: pd.DataFrame, per_second: int) -> pd.DataFrame:
    """The share of each receipt in each bin it lies in: pod, bin, messages."""
    start, end = (receipts[name].to_numpy() * per_second for name in ("start", "end"))
    first, last = np.floor(start).astype("int64"), np.floor(end).astype("int64")
    spans = last - first + 1
    of = np.repeat(np.arange(len(receipts)), spans)  # the receipt of each share
    bins = first[of] + np.arange(len(of)) - (spans.cumsum() - spans)[of]
    # The part done by a bin's edges; the outermost are 0 and 1 by definition, so that no rounding loses a message.
    start, lasts = start[of], np.where(end > start, end - start, 1)[of]
    before = np.where(bins == first[of], 0, (bins - start) / lasts)
    after = np.where(bins == last[of], 1, (bins + 1 - start) / lasts)
    shared = receipts[["pod", "count"]].iloc[of]
    return pd.DataFrame({"pod": shared["pod"], "bin": bins, "messages": shared["count"] * (after - before)})


def _files(table: DataFrame) -> list[str]:
    """The names of the files that ``table`` is in. A batch that failed and was repeated leaves others beside them."""
    return sorted(Path(unquote(urlparse(name).path)).name for name in table.inputFiles())


def _table(ledger: Path, name: str, files: Sequence[str]) -> pa.Table:
    """The table in ``files``. Spark's own log names them by absolute path, and the record may have been moved."""
    schema = arrow_schema(TABLES[name])
    return pa.concat_tables([schema.empty_table(), *(pq.read_table(ledger / name / file, schema=schema) for file in files)])


def _close(ledger: Path, events: Collection[str]) -> None:
    """Make the events plain files that can be moved: without Spark's log of absolute paths, and what repeated batches left."""
    for path in (ledger / "events").iterdir():
        if path.name == "_spark_metadata":
            shutil.rmtree(path)
        elif path.name not in events:
            path.unlink()
    for name in TABLES:
        if name != "events":
            shutil.rmtree(ledger / name, ignore_errors=True)
    shutil.rmtree(ledger / CHECKPOINT, ignore_errors=True)
    (ledger / INGESTED).unlink()


def recheck(spark: SparkSession, record: Record) -> None:
    """Reconcile ``record`` again. Raises :class:`InputError` for the first other value, :class:`NoData` without a ledger."""
    stated = asdict(record.reconciliation)
    folder = record.file(f"{LEDGER}/events")
    dead = record.dead_letters if (record.folder / "dead_letters.parquet").exists() else None
    found = reconcile(spark, sorted(folder.glob("*.parquet")), record.receipts, dead)
    for field, value in asdict(found).items():
        if stated[field] != value:
            said, now = (_in_short(content) for content in (stated[field], value))
            where = record.folder / "reconciliation.json"
            raise InputError(where, field, said, f"{now}, which its events and receipts give when they are settled again")


def _in_short(content: Any) -> Any:
    """A count as it is; ranges by their number and the first."""
    ranges = isinstance(content, tuple)
    return f"{len(content)} ranges, first {content[0] if content else 'none'}" if ranges else content
