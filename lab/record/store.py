"""The record a trial leaves: one relocatable folder that everything said about the trial is computed from.

    trial.json           identity, inputs, versions, machine, times, how it ended (lab/record/trial.py)
    inputs/              every object as applied, YAML
    transitions.parquet  t, kind, name, event, object (JSON): API watch events
    hpa.log              every sync of the trial's HPA, as kube-controller-manager logged it (klog, UTC)
    load.parquet         t, busy_s, steal_s, own_s, cpu_waiting_s, io_waiting_s, memory_waiting_s: the machine's load
    samples.parquet      t, metric, pod, labels (JSON), value: Prometheus samples
    group_events.parquet t, mono, pod, event, partitions, owned, seconds, created, detail (JSON)
    receipts.parquet     pod, partition, first, last, count, checksum, start, end
    rates.parquet        bin_s, t, series, pod, messages
    dead_letters.parquet partition, offset, topic, attempts, error, first_failure, failed, replays, seq, crc, at_partition, at
    reconciliation.json  processed against produced, with every lost and doubled range
    ledger/events/       partition, offset, entity_id, seq, ts, crc: what was produced
    measures.json        the measures, as last judged

All times are epoch seconds. Files that a trial did not come to are absent; asking for one raises :class:`NoData`, with the
reason that trial.json has for it. trial.json holds the SHA-256 of every other file but measures.json, and :func:`opened` checks
them.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pandas as pd

from lab import wholefile
from lab.errors import InputError
from lab.record.trial import FILE, FINISHED, checksum, damage
from lab.record.views import Views


class Record(Views):
    """A trial's record, read when asked for."""


def find(folder: Path, identity: str) -> Record:
    """The finished record of trial ``identity`` among those stored under ``folder`` (``results`` or ``results/records``).

    Raises :class:`InputError` naming what is there when it is not, for a trial that did not go to its end, and like
    :func:`opened`.
    """
    there = stored(folder)
    if identity not in there:
        raise InputError(folder, "record", identity, f"a stored trial; there are: {', '.join(there) or 'none'}")
    record = opened(there[identity])
    if not record.finished:
        raise InputError(
            record.folder, "ended", record.trial.ended, f"{' or '.join(FINISHED)}: a part is not judged as the whole"
        )
    return record


def opened(folder: Path) -> Record:
    """The record in ``folder``, whose files are as they were when it was closed.

    Raises :class:`InputError`, in one line, naming each file that is changed, gone or added; for a record without checksums,
    which was never closed; and like :func:`lab.record.trial.read`.
    """
    record = Record(folder)
    if (files := record.trial.files) is None:
        allowed = "the SHA-256 of each file: this record was never closed; run its trial again"
        raise InputError(folder / FILE, "files", files, allowed)
    if wrong := damage(folder, files):
        raise InputError(folder, "files", "; ".join(wrong), "the record as it was closed: nothing is judged from another")
    return record


def add(folder: Path, name: str, content: object) -> None:
    """Put the JSON file ``name`` into a closed record: what a test learned of its trial while the cluster was there."""
    write_json(folder / name, content)
    trial = Record(folder).trial
    replace(trial, files=(trial.files or {}) | {name: checksum(folder / name)}).write(folder)


def stored(folder: Path) -> dict[str, Path]:
    """The folders of the records under ``folder`` (``results`` or ``results/records``), by identity."""
    root = folder / "records" if (folder / "records").is_dir() else folder
    return {file.parent.name: file.parent for file in sorted(root.glob("*/trial.json"))}


def write_json(file: Path, content: object) -> None:
    """Write ``content`` as readable JSON, whole or not at all."""
    wholefile.write(file, json.dumps(content, indent=1, default=str) + "\n")


def lines_to_parquet(lines: Path, table: Path, columns: list[str], as_json: tuple[str, ...] = ()) -> None:
    """Make a Parquet table of a file of JSON lines; what is not a named column goes into ``detail`` as JSON."""
    rows = []
    for line in lines.read_text().splitlines():
        row = json.loads(line)
        rest = {key: row.pop(key) for key in list(row) if key not in columns}
        for column in as_json:
            row[column] = json.dumps(row[column])
        rows.append(row | ({"detail": json.dumps(rest)} if "detail" in columns else {}))
    pd.DataFrame(rows, columns=columns).sort_values("t", kind="stable", ignore_index=True).to_parquet(table)
