"""The record a trial leaves: one relocatable folder that everything said about the trial is computed from.

    trial.json           identity, inputs, versions, machine, times, how it ended
    inputs/              every object as applied, YAML
    transitions.parquet  t, kind, name, event, object (JSON): API watch events
    hpa.log              every sync of the trial's HPA, as kube-controller-manager logged it (klog, UTC)
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
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from lab import wholefile
from lab.errors import InputError, NoData
from lab.record import seal

FINISHED = ("complete", "deadline")  # how a trial ends that went to its end
_PART = {"receipts": "ledger", "rates": "ledger", "dead_letters": "ledger", "reconciliation": "ledger"}  # of closing


@dataclass(frozen=True)
class Record:
    """A trial's record, read when asked for."""

    folder: Path

    @property
    def finished(self) -> bool:
        """Whether its trial went to its end."""
        return str(self.trial.get("ended")).startswith(FINISHED)

    @cached_property
    def trial(self) -> dict[str, Any]:
        """The content of trial.json."""
        return self._json("trial.json")

    @property
    def id(self) -> str:
        """The trial's identity."""
        return str(self.trial["id"])

    @cached_property
    def reconciliation(self) -> dict[str, Any]:
        """The content of reconciliation.json."""
        return self._json("reconciliation.json")

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Prometheus samples."""
        return self._table("samples")

    @cached_property
    def transitions(self) -> pd.DataFrame:
        """API watch events, in order of arrival."""
        return self._table("transitions")

    @cached_property
    def group_events(self) -> pd.DataFrame:
        """What consumers and producer reported, in order of time."""
        return self._table("group_events")

    @cached_property
    def receipts(self) -> pd.DataFrame:
        """The downstream store's receipts."""
        return self._table("receipts")

    @cached_property
    def rates(self) -> pd.DataFrame:
        """Messages in bins of 200 ms and 1 s."""
        return self._table("rates")

    @cached_property
    def dead_letters(self) -> pd.DataFrame:
        """The dead-letter topic, of a trial that had one."""
        return self._table("dead_letters")

    @cached_property
    def produced(self) -> pd.DataFrame:
        """What was produced: partition, offset and seq of every message."""
        folder = self.folder / "ledger" / "events"
        if not any(folder.glob("*.parquet")):
            raise self._absent("ledger")
        return pd.read_parquet(folder, columns=["partition", "offset", "seq"])

    @cached_property
    def objects(self) -> dict[str, list[tuple[float, str, str, dict[str, Any]]]]:
        """The watch events by kind, parsed once: (time, name, event, object), in order of arrival."""
        found: dict[str, list[tuple[float, str, str, dict[str, Any]]]] = {}
        columns = self.transitions[["t", "kind", "name", "event", "object"]]
        for t, kind, name, event, text in columns.itertuples(index=False, name=None):
            found.setdefault(str(kind), []).append((float(t), str(name), str(event), json.loads(text)))
        return found

    @cached_property
    def offsets(self) -> dict[str, dict[str, Any]]:
        """Log end and committed offset at the end of the trial, by partition."""
        found: dict[str, dict[str, Any]] = self.trial.get("offsets") or {}
        if not found:
            raise self._absent("offsets")
        return found

    def file(self, name: str) -> Path:
        """The file ``name`` of the record. Raises :class:`NoData` with the reason when it is not there."""
        path = self.folder / name
        if not path.exists():
            raise self._absent(name)
        return path

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise self._absent(name)
        return pd.read_parquet(path)

    def _json(self, name: str) -> dict[str, Any]:
        content: dict[str, Any] = json.loads(self.file(name).read_text())
        return content

    def _absent(self, name: str) -> NoData:
        """There is no ``name``, and why if trial.json says it."""
        reasons = {} if name == seal.OWN else self.trial.get("missing") or {}
        why = reasons.get(_PART.get(name.removesuffix(".json"), name))
        return NoData(f"{self.folder.name} has no {name}{f': {why}' if why else ''}")


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
            record.folder, "ended", record.trial.get("ended"), f"{' or '.join(FINISHED)}: a part is not judged as the whole"
        )
    return record


def opened(folder: Path) -> Record:
    """The record in ``folder``, whose files are as they were when it was closed.

    Raises :class:`InputError`, in one line, naming each file that is changed, gone or added; and for a record without
    checksums, which was never closed or is of an older version.
    """
    record = Record(folder)
    try:
        files = record.trial.get("files")
    except (NoData, ValueError, AttributeError) as error:
        raise InputError(folder / seal.OWN, "content", str(error), "what a trial writes") from None
    if not isinstance(files, dict):
        allowed = "the SHA-256 of each file: this record was never closed, or is of a version without them; run the trial again"
        raise InputError(folder / seal.OWN, "files", files, allowed)
    if wrong := seal.damage(folder, files):
        raise InputError(folder, "files", "; ".join(wrong), "the record as it was closed: nothing is judged from another")
    return record


def add(folder: Path, name: str, content: object) -> None:
    """Put the JSON file ``name`` into a closed record: what a test learned of its trial while the cluster was there."""
    write_json(folder / name, content)
    trial = Record(folder).trial
    write_json(folder / seal.OWN, trial | {"files": trial["files"] | {name: seal.checksum(folder / name)}})


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
