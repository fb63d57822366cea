"""Closing a record: the last messages ingested, the verdict drawn, and tables left that read without Spark."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from lab import wholefile
from lab.record.ledger.ingest import CHECKPOINT, MOST_OFFSETS, TABLES, Topics, ingest, read
from lab.record.ledger.reconcile import check, folded
from lab.record.ledger.rollup import RATES, rates
from lab.record.reconciliation import Reconciliation

LEDGER, VERDICT = "ledger", "reconciliation.json"
COMMITTED = "_committed.json"  # the files of events that count, while the others are removed


def settle(
    spark: SparkSession,
    bootstrap: str,
    topics: Topics,
    record: Path,
    at_rest: bool = True,
    settings: Mapping[str, str] | None = None,
    most_offsets: int = MOST_OFFSETS,
) -> Reconciliation:
    """Ingest what the topics hold into ``record``/ledger, and write the verdict on it beside.

    Leaves ``reconciliation.json``, ``receipts.parquet``, ``rates.parquet`` (:func:`lab.record.ledger.rollup.rates`, sorted),
    ``ledger/events/*.parquet`` and, of a trial that has a topic for them, ``dead_letters.parquet``. A continuous ingestion into
    the same ledger must have been stopped; it is carried on. ``at_rest`` says that nobody writes to the topics any more.
    ``settings`` are those with which a client logs in to Kafka, if it has to. On failure everything is left as it is, to be
    called again: it then goes on after the last batch (``most_offsets`` messages) that was ingested. Raises :class:`LabFault`.
    """
    ledger = record / LEDGER
    if (ledger / COMMITTED).exists():  # all was written, and what is in the way was being removed
        _close(ledger)
        return Reconciliation.from_json(json.loads((record / VERDICT).read_text()))
    ingest(spark, bootstrap, topics, ledger, in_turn=not at_rest, settings=settings, most_offsets=most_offsets)
    events, receipts = read(spark, ledger, "events"), read(spark, ledger, "receipts")
    dead = read(spark, ledger, "dead_letters") if topics.dead_letters else None
    said = receipts.toArrow()
    left = folded(events, said.to_pandas())
    verdict = check(left, said.to_pandas(), None if dead is None else dead.toPandas())
    _write(said.sort_by([(name, "ascending") for name in ("start", "partition", "first")]), record / "receipts.parquet")
    if dead is not None:
        order = [(name, "ascending") for name in ("failed", "partition", "offset", "at")]
        _write(dead.toArrow().sort_by(order), record / "dead_letters.parquet")
    _write(pa.Table.from_pandas(rates(left.scheduled, said.to_pandas()), RATES), record / "rates.parquet")
    wholefile.write(record / VERDICT, json.dumps(verdict.to_json(), indent=1) + "\n")
    wholefile.write(ledger / COMMITTED, json.dumps(_committed(events)))
    _close(ledger)
    return verdict


def _write(table: pa.Table, path: Path) -> None:
    """One Parquet file, there only when it is complete."""
    partial = path.with_suffix(".partial")
    pq.write_table(table, partial)
    partial.rename(path)


def _committed(events: DataFrame) -> list[str]:
    """The names of the files that ``events`` are in."""
    return sorted(Path(unquote(urlparse(name).path)).name for name in events.inputFiles())


def _close(ledger: Path) -> None:
    """Make the events plain files that can be moved, and remove what only a further ingestion would need.

    Spark's log of the files it committed names them by absolute path, so a folder with it can't be read elsewhere; without
    it, a file that a failed and repeated batch left behind would be read too.
    """
    committed = set(json.loads((ledger / COMMITTED).read_text()))
    for path in (ledger / "events").iterdir():
        if path.name == "_spark_metadata":
            shutil.rmtree(path)
        elif path.name not in committed:
            path.unlink()
    for name in TABLES:
        if name != "events":
            shutil.rmtree(ledger / name, ignore_errors=True)
    shutil.rmtree(ledger / CHECKPOINT, ignore_errors=True)
    (ledger / COMMITTED).unlink()
