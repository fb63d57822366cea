"""Closes the records that a killed session left open, with what there is of them, and settles a ledger that lacks its verdict.

While a session writes a record, the record names it (:func:`claim`), and trial.json is written anew every few seconds. The
samples and the topics go with the cluster: a ledger goes on only where all that the topics held had been ingested.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from lab import wholefile
from lab.record import store
from lab.record.course import ENDED
from lab.record.ledger import CHECKPOINT, LEDGER, VERDICT, ingested
from lab.record.seal import FILE, checksums
from lab.record.store import LINES, STAGING, Record, lines_to_parquet
from lab.record.trial import RUNNING, Trial

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("lab.record")

OWNER = ".session.json"  # of a record: the process that writes it
KILLED = "its session was killed"
FILES = {"load": "load.parquet", "samples": "samples.parquet", "hpa.log": "hpa.log", LEDGER: VERDICT}
TABLES = ("receipts.parquet", "rates.parquet", "dead_letters.parquet", VERDICT)  # of the ledger


def claim(folder: Path) -> None:
    """Say in the record in ``folder`` that this process writes it."""
    from lab.host import identity

    own = identity.identify(os.getpid())
    wholefile.write(folder / OWNER, json.dumps(asdict(own) if own else None))


def release(folder: Path) -> None:
    """Say that nobody writes the record in ``folder`` any more."""
    (folder / OWNER).unlink(missing_ok=True)


def rescue_all(folder: Path, spark: Callable[[], SparkSession]) -> None:
    """Seal the record in ``folder``, or each under it, whose session was killed; settle its ledger if that needs no broker.

    Raises :class:`InputError` for a bad trial.json, :class:`LabFault` for a ledger that can't be settled: the rest is sealed.
    """
    for one in [folder] if (folder / FILE).exists() else store.stored(folder).values():
        if _written(one):
            continue
        if Record(one).trial.files is None and (one / OWNER).exists():
            _seal(one)
        if _settleable(one):
            _settle(one, spark)
        release(one)


def _written(folder: Path) -> bool:
    """Whether the session that writes the record still lives."""
    file = folder / OWNER
    if not file.exists():
        return False
    from lab.host import identity  # psutil is an extra, and whoever judges sealed records needs none

    try:
        owner = identity.read(json.loads(file.read_text()))
    except (OSError, ValueError):
        return False
    return owner is not None and identity.lives(owner)


def _seal(folder: Path) -> None:
    """Make what is in the record whole, name what is missing and why, and seal it."""
    for name, (columns, as_json) in LINES.items():
        lines = folder / f"{name}.jsonl"
        if lines.exists():
            staged = folder / STAGING / f"{name}.parquet"
            staged.parent.mkdir(exist_ok=True)
            os.truncate(lines, lines.read_bytes().rfind(b"\n") + 1)  # a last line without its end was being written
            lines_to_parquet(lines, staged, columns, as_json)
            staged.replace(folder / staged.name)
            lines.unlink()
    trial = Record(folder).trial
    missing = {name: KILLED for name, file in FILES.items() if not (folder / file).exists()}
    missing |= {name: KILLED for name in LINES if not (folder / f"{name}.parquet").exists()}
    missing |= {} if trial.offsets else {"offsets": KILLED}
    if LEDGER in missing and not _settleable(folder):
        files = (folder / STAGING / LEDGER / LEDGER / "events").glob("*.parquet")
        count = sum(pq.read_metadata(file).num_rows for file in files)
        read = f" when {count:,} events were read from it" if count else ""
        missing[LEDGER] = f"{KILLED}{read}, and the topic is gone with its broker"
        shutil.rmtree(folder / STAGING, ignore_errors=True)
    until = _known_until(folder, trial)
    ended = trial.ended
    if ended == RUNNING:
        moment = datetime.fromtimestamp(until, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        ended = f"killed: the record knows the trial until {moment}"
    times = dict(sorted(({ENDED: until} | trial.times).items(), key=lambda one: one[1]))
    trial = replace(trial, ended=ended, times=times, missing=missing | trial.missing, finished=until)
    trial.sealed(folder).write(folder)
    log.warning("%s: %s, and its record is closed with what there is", folder.name, KILLED)


def _known_until(folder: Path, trial: Trial) -> float:
    """The last moment that the record knows something of, epoch s."""
    moments = [trial.begun, *trial.times.values()]
    for name in LINES:
        file = folder / f"{name}.parquet"
        if file.exists() and len(rows := pq.read_table(file, columns=["t"])["t"].drop_null()):
            moments.append(float(rows[-1].as_py()))
    return max(moments)


def _settleable(folder: Path) -> bool:
    """Whether a ledger lacks no more than its verdict, or than being moved to its place."""
    staging = folder / STAGING / LEDGER
    concluded = (staging / VERDICT).exists() or (folder / VERDICT).exists()
    return ingested(staging) or (staging.exists() and concluded and not (staging / LEDGER / CHECKPOINT).exists())


def _settle(folder: Path, spark: Callable[[], SparkSession]) -> None:
    """Draw the verdict that the ledger lacks, move the ledger to its place, and seal it with the rest of the record."""
    from lab.record.ledger.settle import conclude  # imports Spark, which few readers of a record need

    staging = folder / STAGING / LEDGER
    if ingested(staging):
        conclude(spark(), staging)
    for path in sorted(staging.iterdir(), key=lambda one: one.name == VERDICT):
        path.replace(folder / path.name)
    trial = Record(folder).trial
    missing = {name: why for name, why in trial.missing.items() if name != LEDGER}
    own = {name: value for name, value in checksums(folder).items() if name in TABLES or name.startswith(f"{LEDGER}/")}
    replace(trial, missing=missing, files=(trial.files or {}) | own).write(folder)
    shutil.rmtree(folder / STAGING, ignore_errors=True)  # until here the ledger is settleable, so that a repeat ends the work
    log.info("%s: its ledger is settled from what was ingested", folder.name)
