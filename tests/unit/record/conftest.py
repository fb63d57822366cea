"""The suite's one Spark session, and ledger tables made from plain rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pytest
from pyspark.sql import SparkSession

from lab.record.ledger.ingest import TABLES
from lab.record.ledger.reconcile import reconcile
from lab.record.reconciliation import Reconciliation

KINDS = {"int": "int32", "long": "int64", "double": "float64", "string": "object"}
Rows = Sequence[tuple[object, ...]]
Settle = Callable[..., Reconciliation]


def frame(name: str, rows: Rows) -> pd.DataFrame:
    """The table ``name`` of ``rows`` in the order of its schema, in the types that Spark gives it."""
    columns = [field.split() for field in TABLES[name].split(", ")]
    table = pd.DataFrame(list(rows), columns=[one for one, _ in columns])
    return table.astype({one: KINDS[kind] for one, kind in columns})


def messages(count: int) -> pd.DataFrame:
    """So many messages of partition 0, each with the crc 5."""
    return frame("events", [(0, at, 7, at, 0, 5) for at in range(count)])


def batches(count: int, size: int) -> pd.DataFrame:
    """The receipts of pod a for :func:`messages`, processed ``size`` at a time."""
    return frame("receipts", [("a", 0, at, at + size - 1, size, 5 * size, 1.0 + at, 2.0 + at) for at in range(0, count, size)])


@pytest.fixture(scope="session")
def session(spark: Callable[[], SparkSession]) -> SparkSession:
    """The session of ``--lab-spark-master``, started."""
    return spark()


@pytest.fixture(scope="module")
def settle(session: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Settle:
    """Reconcile rows of events, which go into two files, with rows of receipts and of dead letters."""
    folder = tmp_path_factory.mktemp("events")

    def found(events: Rows, receipts: Rows, letters: Rows = ()) -> Reconciliation:
        table, files = frame("events", events), [folder / "0.parquet", folder / "1.parquet"]
        for number, file in enumerate(files):
            table[number::2].to_parquet(file)
        return reconcile(session, files, frame("receipts", receipts), frame("dead_letters", letters) if letters else None)

    return found
