"""Settles a stored record's ledger again: from its events, receipts and dead letters, held against its reconciliation."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from lab.errors import InputError
from lab.record.ledger import LEDGER
from lab.record.ledger.reconcile import reconcile
from lab.record.store import Record


def recheck(spark: SparkSession, record: Record) -> None:
    """Reconcile what ``record`` holds again. Raises :class:`InputError` for the first other value, :class:`NoData` for no
    ledger."""
    stated = record.reconciliation.to_json()
    folder = record.file(f"{LEDGER}/events")
    dead = record.dead_letters if (record.folder / "dead_letters.parquet").exists() else None
    found = reconcile(spark, sorted(folder.glob("*.parquet")), record.receipts, dead).to_json()
    for field, value in found.items():
        if stated[field] != value:
            said, now = (_short(content) for content in (stated[field], value))
            where = record.folder / "reconciliation.json"
            raise InputError(where, field, said, f"{now}, which its events and receipts give when they are settled again")


def _short(content: Any) -> Any:
    """A count as it is; ranges by their number and the first."""
    if not isinstance(content, list):
        return content
    return f"{len(content)} ranges, first {content[0] if content else 'none'}"
