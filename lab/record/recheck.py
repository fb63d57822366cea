"""Settles a stored record's ledger again: from its events, receipts and dead letters, held against its reconciliation."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession

from lab.errors import InputError
from lab.record.ledger.ingest import TABLES
from lab.record.ledger.reconcile import reconcile
from lab.record.ledger.settle import LEDGER
from lab.record.store import Record


def recheck(spark: SparkSession, record: Record) -> None:
    """Reconcile what ``record`` holds again. Raises :class:`InputError` for the first count or range that is another.

    Raises :class:`NoData` when the record has no ledger to settle.
    """
    stated = record.reconciliation.to_json()
    files = {"events": f"{LEDGER}/events", "receipts": "receipts.parquet", "dead_letters": "dead_letters.parquet"}
    tables = {name: _read(spark, record, name, file) for name, file in files.items() if _there(record, name, file)}
    found = reconcile(tables["events"], tables["receipts"], tables.get("dead_letters")).to_json()
    for field, value in found.items():
        if stated[field] != value:
            said, now = (_short(content) for content in (stated[field], value))
            where = record.folder / "reconciliation.json"
            raise InputError(where, field, said, f"{now}, which its events and receipts give when they are settled again")


def _there(record: Record, name: str, file: str) -> bool:
    if name == "dead_letters":
        return (record.folder / file).exists()
    return record.file(file).exists()


def _read(spark: SparkSession, record: Record, name: str, file: str) -> DataFrame:
    return spark.read.schema(TABLES[name]).parquet(str(record.folder / file))


def _short(content: Any) -> Any:
    """A count as it is; ranges by their number and the first."""
    if not isinstance(content, list):
        return content
    return f"{len(content)} ranges, first {content[0] if content else 'none'}"
