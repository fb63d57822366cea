"""The ledger: what was produced and processed, message by message, reconciled with Spark. Importing this imports no Spark."""

from __future__ import annotations

from pathlib import Path

LEDGER, VERDICT = "ledger", "reconciliation.json"  # of a record
CHECKPOINT = "_checkpoint"  # of a ledger: how far it is ingested
INGESTED = "_ingested.json"  # the files of each table: all that the topics held is in them, and the rest needs no broker


def ingested(record: Path) -> bool:
    """Whether ``record``/ledger has all that the topics held, and the verdict on it is still to be drawn or tidied up after."""
    return (record / LEDGER / INGESTED).exists()
