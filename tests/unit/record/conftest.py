"""The suite's one Spark session, and ledger tables made from plain rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pandas as pd
import pytest
from pyspark.sql import DataFrame, SparkSession

from lab.record.ledger.ingest import TABLES

Table = Callable[[str, Sequence[tuple[object, ...]]], DataFrame]


@pytest.fixture(scope="session")
def session(spark: Callable[[], SparkSession]) -> SparkSession:
    """The session of ``--spark-master``, started."""
    return spark()


@pytest.fixture(scope="session")
def table(session: SparkSession) -> Table:
    """Make the table "events" or "receipts" of rows in the order of its schema."""

    def make(name: str, rows: Sequence[tuple[object, ...]]) -> DataFrame:
        columns = [field.split()[0] for field in TABLES[name].split(", ")]
        return session.createDataFrame(pd.DataFrame(list(rows), columns=columns), TABLES[name])

    return make
