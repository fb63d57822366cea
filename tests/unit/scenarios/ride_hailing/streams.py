"""A topic as a folder of files, so that a test runs the streaming query itself without a broker: a file is a micro-batch."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

KAFKA = pa.schema([("value", pa.binary()), ("partition", pa.int32()), ("offset", pa.int64())])
PARTITION = 9  # of each record; its offset is its place in the micro-batch


class Topic:
    """Records with Kafka's columns in the files of ``folder``, in the order in which they were added."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._files = folder, 0
        folder.mkdir()

    def add(self, *values: bytes) -> None:
        """One more micro-batch."""
        content = [{"value": value, "partition": PARTITION, "offset": number} for number, value in enumerate(values)]
        path = self._folder / f"{self._files:04d}.parquet"
        pq.write_table(pa.Table.from_pylist(content, KAFKA), path)
        os.utime(path, (self._files, self._files))  # s: Spark reads files by age, and two are written within a clock tick
        self._files += 1

    def read(self, session: SparkSession) -> DataFrame:
        """The stream of all micro-batches."""
        schema = "value binary, partition int, offset bigint"
        return session.readStream.schema(schema).option("maxFilesPerTrigger", 1).parquet(str(self._folder))


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Have these settings of the session, which all tests share, within the block."""
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)
