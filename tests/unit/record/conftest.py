"""The suite's one Spark session, and ledger tables made from plain rows, reconciled without it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from lab.record.ledger.fold import COLUMNS, Folded, ends_of, fold, merge
from lab.record.ledger.ingest import TABLES
from lab.record.ledger.reconcile import check
from lab.record.reconciliation import Reconciliation

KINDS = {"int": "int32", "long": "int64", "double": "float64", "string": "object"}
Rows = Sequence[tuple[object, ...]]


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


def folded(rows: Rows, receipts: pd.DataFrame, tasks: Sequence[Sequence[int]] = ()) -> Folded:
    """Fold ``rows`` of COLUMNS in ``tasks``, each a list of the sizes of its batches; the last takes the rest."""
    table = pa.table(dict(zip(COLUMNS, np.array(rows or np.empty((0, 5)), np.int64).T, strict=True)))
    out, begin = [], 0
    for sizes in tasks:
        batches = []
        for size in sizes:
            batches.append(pa.Table.from_batches(table.slice(begin, size).to_batches(), table.schema).combine_chunks())
            begin += size
        out += fold((one for batch in batches for one in batch.to_batches()), ends_of(receipts))
    out += fold(table.slice(begin).combine_chunks().to_batches(), ends_of(receipts))
    return merge(pa.Table.from_batches(out[::-1]))


def reconciled(events: Rows, receipts: Rows, letters: Rows = ()) -> Reconciliation:
    """The verdict on rows of events, of receipts and of dead letters."""
    said = frame("receipts", receipts)
    left = folded([(partition, offset, *rest) for partition, offset, _, *rest in events], said)
    return check(left, said, frame("dead_letters", letters) if letters else None)


@pytest.fixture(scope="session")
def session(spark: Callable[[], SparkSession]) -> SparkSession:
    """The session of ``--lab-spark-master``, started."""
    return spark()
