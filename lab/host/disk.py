"""The disk space that a trial needs, by its profile, and the check before the trial begins."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from lab.errors import LabFault

# Measured: an event with a value of 256 B takes 278 B in the broker's log, and a receipt of some 16 events takes 100 B there.
# The record of 774,400 events took 19.4 MB, most of it the ledger of events.
LOG_BYTES, RECORD_BYTES = 285, 26
BASE_BYTES = 100_000_000  # logs of the components, etcd, Spark's scratch


def needed(events: int) -> tuple[int, int]:
    """The bytes that a trial of so many ``events`` needs: in the folder of the broker's log, and in that of the record."""
    return BASE_BYTES + LOG_BYTES * events, RECORD_BYTES * events


def shortage(wanted: Mapping[Path, int]) -> str | None:
    """One line for the first folder with fewer free bytes than ``wanted``; None when all have enough.

    Folders on one file system share its free space.
    """
    systems: dict[int, dict[Path, int]] = {}
    for folder, amount in wanted.items():
        systems.setdefault(folder.stat().st_dev, {})[folder] = amount
    for folders in systems.values():
        total, first = sum(folders.values()), next(iter(folders))
        if (free := shutil.disk_usage(first).free) < total:
            return f"disk: {' and '.join(map(str, folders))}: {total:,} bytes are needed, {free:,} are free"
    return None


def check(events: int, log: Path, results: Path) -> None:
    """Raise :class:`LabFault` when a trial of ``events`` would fill the disk of the broker's ``log`` or of ``results``."""
    for_log, for_record = needed(events)
    if line := shortage({log: for_log, results: for_record} if log != results else {log: for_log + for_record}):
        raise LabFault(f"{line}; this trial sends {events:,} events")
