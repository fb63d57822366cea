"""The record a trial leaves: one relocatable folder that everything said about the trial is computed from.

    trial.json           identity, inputs, versions, machine, times, how it ended (lab/record/trial.py)
    inputs/              every object as applied, YAML
    transitions.parquet  t, kind, name, event, object (JSON): API watch events
    hpa.log              every sync of the trial's HPA, as kube-controller-manager logged it (klog, UTC)
    load.parquet         t, busy_s, steal_s, own_s, others_s, cpu_waiting_s, io_waiting_s, memory_waiting_s: the machine's load
    memory.parquet       t, process, count, rss_bytes, cpu_s: memory and CPU time of the lab's processes, by what they are
    samples.parquet      t, metric, pod, labels (JSON), value: Prometheus samples
    group_events.parquet t, mono, pod, event, partitions, owned, seconds, created, detail (JSON)
    receipts.parquet     pod, partition, first, last, count, checksum, start, end
    rates.parquet        bin_s, t, series, pod, messages
    dead_letters.parquet partition, offset, topic, attempts, error, first_failure, failed, replays, seq, crc, at_partition, at
    reconciliation.json  processed against produced, with every lost and doubled range
    ledger/events/       partition, offset, entity_id, seq, ts, crc: what was produced
    board.png            the live board, as a browser showed it during the trial; where a session takes one
    measures.json        the measures, as last judged

All times are epoch seconds. Files that a trial did not come to are absent; asking for one raises :class:`NoData`, with the
reason that trial.json has for it. trial.json holds the SHA-256 of every file but measures.json, and :func:`opened` checks them.

A session only adds records. The first attempt at a trial is in a folder of its identity, the second in "<identity>.2".
"""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lab import wholefile
from lab.errors import InputError
from lab.record.seal import FILE, checksum, damage
from lab.record.trial import FINISHED
from lab.record.views import Views

log = logging.getLogger("lab.record")

PART = 10_000  # lines
BOARD = "board.png"
STAGING = ".closing"  # in a record: the folder of each of its parts until that is whole
# The tables that are kept as JSON lines while a trial runs: their columns, and those of them that hold JSON.
LINES = {
    "transitions": (["t", "kind", "name", "event", "object"], ("object",)),
    "group_events": (["t", "mono", "pod", "event", "partitions", "owned", "seconds", "created", "detail"], ()),
}


class Record(Views):
    """A trial's record, read when asked for."""


def find(folder: Path, identity: str) -> Record:
    """The last finished record of trial ``identity`` among those stored under ``folder`` (``results`` or ``results/records``).

    Raises :class:`InputError` naming what is there when it is not, for a trial that was cut short, and like :func:`opened`.
    """
    tried = attempts(folder, identity)
    if not tried:
        raise InputError(folder, "record", identity, f"a stored trial; there are: {', '.join(stored(folder)) or 'none'}")
    ended = [path for path in tried.values() if Record(path).finished]
    record = opened(ended[-1] if ended else list(tried.values())[-1])
    if not record.finished:
        raise InputError(
            record.folder, "ended", record.trial.ended, f"{' or '.join(FINISHED)}: a part is not judged as the whole"
        )
    return record


def opened(folder: Path) -> Record:
    """The record in ``folder``, whose files are as they were when it was closed.

    Raises :class:`InputError` naming each file that is changed, gone or added, and for a record that was never closed.
    """
    record = Record(folder)
    if (files := record.trial.files) is None:
        allowed = "the SHA-256 of each file: this record was never closed; run its trial again"
        raise InputError(folder / FILE, "files", files, allowed)
    if wrong := damage(folder, files):
        raise InputError(folder, "files", "; ".join(wrong), "the record as it was closed: nothing is judged from another")
    return record


def add(folder: Path, name: str, content: object) -> None:
    """Put the JSON file ``name`` into a closed record: what a test learned of its trial while the cluster was there.

    Raises :class:`InputError` like :func:`opened`: nothing is added to a damaged record.
    """
    trial = opened(folder).trial
    write_json(folder / name, content)
    wholefile.sync(folder / name)
    replace(trial, files=(trial.files or {}) | {name: checksum(folder / name)}).write(folder)


def stored(folder: Path) -> dict[str, Path]:
    """The folders of the records under ``folder`` (``results`` or ``results/records``), by name: each attempt is one."""
    root = folder / "records" if (folder / "records").is_dir() else folder
    return {file.parent.name: file.parent for file in sorted(root.glob("*/trial.json"))}


def unused(folder: Path) -> Path:
    """``folder``, or a new one beside it where that has records: ``results`` is followed by ``results-2``."""
    beside = (folder.with_name(f"{folder.name}-{number}") for number in count(2))
    return next(one for one in chain([folder], beside) if not ((one / "records").is_dir() and stored(one)))


def identities(folder: Path) -> set[str]:
    """The ids of the trials that have a record under ``folder``."""
    return {_identity(path) for path in stored(folder).values()}


def attempts(folder: Path, identity: str) -> dict[int, Path]:
    """The folders of all attempts at trial ``identity`` that are stored under ``folder``, by their number, in order.

    The trial is the one that trial.json says; the folder's name tells the number.
    """
    found = {_parted(name)[1]: path for name, path in stored(folder).items() if _identity(path) == identity}
    return dict(sorted(found.items()))


def _identity(record: Path) -> str:
    """The id in the trial.json of a ``record``; of one that can't be read what the folder's name says."""
    file = record / FILE
    try:
        return _id_in(file, file.stat().st_mtime_ns)
    except (OSError, ValueError, LookupError, TypeError):
        return _parted(record.name)[0]


@cache
def _id_in(file: Path, changed: int) -> str:
    return str(json.loads(file.read_text())["id"])


def _parted(name: str) -> tuple[str, int]:
    """The trial's id and the number of the attempt in the name of a record's folder."""
    own, dot, number = name.rpartition(".")
    return (own, int(number)) if dot and number.isdecimal() else (name, 1)


def begin(results: Path, identities: Sequence[str]) -> list[Path]:
    """Make a folder for the next attempt at these trials, executed together, under ``results``: all with the same number."""
    records = results / "records"
    number = 1 + max((one for identity in identities for one in _numbers(records, identity)), default=0)
    made = [records / (identity if number == 1 else f"{identity}.{number}") for identity in identities]
    for folder in made:
        (folder / "inputs").mkdir(parents=True)
    return made


def _numbers(records: Path, identity: str) -> list[int]:
    """The numbers that attempts have; a folder without trial.json is one too, for it is not to be overwritten."""
    ends = [path.name.removeprefix(identity) for path in records.glob(f"{identity}*")]
    return [int(end[1:] or 1) for end in ends if not end or (end[0] == "." and end[1:].isdecimal())]


def whole(folder: Path, identities: Sequence[str]) -> tuple[Record, ...] | None:
    """The records of the last attempt under ``folder`` in which all these went to their end, whole and sealed, if any."""
    tried = [attempts(folder, identity) for identity in identities]
    for number in sorted(set[int].intersection(*(set(one) for one in tried)), reverse=True):
        records = tuple(Record(one[number]) for one in tried)
        if all(map(_is_whole, records)):
            return records
    return None


def _is_whole(record: Record) -> bool:
    try:
        opened(record.folder)
    except InputError as error:
        log.warning("%s: not taken for a finished record: %s", record.folder.name, error)
        return False
    return record.finished and not record.trial.missing


def write_json(file: Path, content: object) -> None:
    """Write ``content`` as readable JSON, whole or not at all."""
    wholefile.write(file, json.dumps(content, indent=1, default=str) + "\n")


def lines_to_parquet(lines: Path, table: Path, columns: list[str], as_json: tuple[str, ...] = ()) -> None:
    """Make a Parquet table of JSON lines, in parts of PART; what is not a named column goes into ``detail`` as JSON."""
    with lines.open() as file:
        parts = [_part(some, columns, as_json) for some in iter(lambda: list(itertools.islice(file, PART)), [])]
    parts = parts or [_part([], columns, as_json)]
    whole = pa.concat_tables(parts, promote_options="permissive")
    order = np.argsort(whole["t"].to_numpy(), kind="stable")
    pq.write_table(whole.take(pa.array(order)), table)


def _part(lines: Sequence[str], columns: list[str], as_json: tuple[str, ...]) -> pa.Table:
    rows = []
    for line in lines:
        row = json.loads(line)
        rest = {key: row.pop(key) for key in list(row) if key not in columns}
        for column in as_json:
            row[column] = json.dumps(row[column])
        rows.append(row | ({"detail": json.dumps(rest)} if "detail" in columns else {}))
    return pa.table({column: [row.get(column) for row in rows] for column in columns})
