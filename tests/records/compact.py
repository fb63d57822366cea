"""Makes a record small: the files that its tests read, without what no measure reads of them, as tightly as Parquet packs."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lab import paths
from lab.record.store import Record
from lab.trial.samples import METRICS
from tests.records.plugin import LEDGER

PAGE = 1 << 30  # a column in one page, so that all of it is compressed together
# Columns that few measures read: what they were for, the reconciliation has done. A test's own of the ledger stay.
UNREAD = {"receipts": ["checksum"], LEDGER: ["entity_id", "crc"]}


def compact(record: Path, target: Path, files: Collection[str]) -> int:
    """Copy of ``record`` only ``files`` to ``target``, made small; returns the bytes it has.

    A column of the ledger is one of them as "ledger/events/COLUMN".
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name in sorted({*files, "trial.json"}):
        source = record / name
        if name == LEDGER and source.is_dir():  # a test may ask for one that the record does not have
            _ledger(source, target / name, {file.rpartition("/")[2] for file in files if file.startswith(f"{LEDGER}/")})
        elif source.suffix == ".parquet":
            _pack(_slim(pq.read_table(source), source.stem), target / name)
        elif source.exists():
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target / name)
    Record(target).trial.sealed(target).write(target)  # the one place where a small record's checksums are written
    return size(target)


def size(folder: Path) -> int:
    """The bytes of all files in ``folder``."""
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def unread_metrics() -> list[str]:
    """The metrics of every trial that no measure, view or report names; those that a trial's own manifests declare are read."""
    folders = [paths.PROJECT / "lab" / name for name in ("charts", "measure", "record", "report")]
    folders += (paths.PROJECT / "tests").glob("*/**/measure")
    code = "".join(file.read_text() for folder in folders for file in folder.rglob("*.py"))
    return [metric for metric in METRICS if f'"{metric}"' not in code]


def _slim(table: pa.Table, name: str, read: Collection[str] = ()) -> pa.Table:
    """``table`` without the columns, but those that are ``read``, and without the metrics that no measure reads."""
    if name == "samples":
        table = table.filter(pc.invert(pc.is_in(table["metric"], pa.array(unread_metrics()))))
    spare = [column for column in UNREAD.get(name, ()) if column in table.column_names and column not in read]
    return table.drop_columns(spare)


def _ledger(source: Path, target: Path, read: Collection[str]) -> None:
    target.mkdir(parents=True)
    table = _slim(pq.read_table(source), LEDGER, read).sort_by("seq")  # in which order times and numbers are almost free
    _pack(table, target / "events.parquet")


def _pack(table: pa.Table, file: Path) -> None:
    packed = {pa.types.is_integer: "DELTA_BINARY_PACKED", pa.types.is_floating: "BYTE_STREAM_SPLIT"}
    encodings = {field.name: way for field in table.schema for fits, way in packed.items() if fits(field.type)}
    others = [name for name in table.column_names if name not in encodings]
    how = {"compression": "zstd", "compression_level": 19, "data_page_size": PAGE, "write_statistics": False}
    rows = max(1, table.num_rows)
    pq.write_table(table, file, row_group_size=rows, use_dictionary=others, column_encoding=encodings, **how)
