"""The log of Spark's file sink, ``_spark_metadata``: which files a table has. It is read without Spark.

Each batch is a file of the log, and its number is the name. The file is renamed into place when all rows of the batch are on
disk, so a batch is in the table whole or not at all. Every tenth file ("9.compact") also has the entries of all batches before
it, and Spark deletes those after a while. Source: ``FileStreamSinkLog`` and ``CompactibleFileStreamLog`` of Spark 4.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

NAME, COMPACT = "_spark_metadata", ".compact"


class SinkLog:
    """The log of the table in ``folder``, read batch by batch."""

    def __init__(self, folder: Path) -> None:
        self._log = self.folder_of(folder)
        self._next = 0
        self._known: set[Path] = set()

    @staticmethod
    def folder_of(table: Path) -> Path:
        """The folder of the log of the table in the folder ``table``."""
        return table / NAME

    def take(self) -> Iterator[tuple[int, list[Path]]]:
        """Each batch that was committed since the last call, with its files.

        A reader that begins when the first batches are gone from the log is given their files with the first compact batch.
        """
        for batch, file in self._ahead():
            files = entries(file)
            if file.suffix == COMPACT:  # it has the entries of all batches before it as well
                fresh, self._known = [one for one in files if one not in self._known], set(files)
            else:
                fresh = files
                self._known.update(files)
            self._next = batch + 1
            yield batch, fresh

    def _ahead(self) -> list[tuple[int, Path]]:
        """The files of the log that are to be read, in order: without a gap, or from a compact one on."""
        there = sorted((number, file) for number, file in batches(self._log) if number >= self._next)
        if there and there[0][0] != self._next:
            compact = next((place for place, (_, file) in enumerate(there) if file.suffix == COMPACT), len(there))
            there = there[compact:]
        return [one for place, one in enumerate(there) if one[0] == there[0][0] + place]


def batches(log: Path) -> Iterator[tuple[int, Path]]:
    """The number and the file of each batch in the folder ``log``, in no order; nothing where there is no such folder."""
    for file in log.glob("[0-9]*"):
        number = file.name.removesuffix(COMPACT)
        if number.isdecimal():
            yield int(number), file


def entries(file: Path) -> list[Path]:
    """The files that a file of the log adds to the table. Its first line is the version of its format."""
    rows = map(json.loads, file.read_text().splitlines()[1:])
    return [Path(unquote(urlsplit(row["path"]).path)) for row in rows if row["action"] == "add"]


def table(folder: Path) -> tuple[set[Path], float] | None:
    """The files of the table in ``folder`` by its log, and the time of the last commit, epoch s; None before the first."""
    there = sorted(batches(SinkLog.folder_of(folder)))
    if not there:
        return None
    compact = max((place for place, (_, file) in enumerate(there) if file.suffix == COMPACT), default=0)
    return {one for _, file in there[compact:] for one in entries(file)}, there[-1][1].stat().st_mtime


def sweep(folder: Path) -> int:
    """Delete what is no longer of the table in ``folder``, or never was: returns how many files.

    A file that is older than the last commit and not in the log has passed its retention, or is of a batch that was killed. It
    holds for a table with one writer, and only the writer may call it: a batch under way is younger than the last commit.
    """
    found = table(folder)
    if found is None:
        return 0
    files, committed = found
    old = [one for one in folder.glob("*.parquet") if one not in files and one.stat().st_mtime < committed]
    for one in old:
        one.unlink()
        one.with_name(f".{one.name}.crc").unlink(missing_ok=True)
    return len(old)
