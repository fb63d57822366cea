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

All times are epoch seconds. Files that a trial did not come to are absent; asking for one raises :class:`NoData`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from lab.errors import InputError


class NoData(LookupError):
    """The record does not hold what a measure needs: "no data", never a pass."""


T = TypeVar("T")


def known(value: T | None, what: str) -> T:
    """``value``, or :class:`NoData` saying ``what`` there is none of."""
    if value is None:
        raise NoData(f"no {what}")
    return value


@dataclass(frozen=True)
class Record:
    """A trial's record, read when asked for."""

    folder: Path

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
            raise NoData(f"{self.folder.name} has no ledger of events")
        return pd.read_parquet(folder, columns=["partition", "offset", "seq"])

    @cached_property
    def objects(self) -> dict[str, list[tuple[float, str, str, dict[str, Any]]]]:
        """The watch events by kind, parsed once: (time, name, event, object), in order of arrival."""
        found: dict[str, list[tuple[float, str, str, dict[str, Any]]]] = {}
        columns = self.transitions[["t", "kind", "name", "event", "object"]]
        for t, kind, name, event, text in columns.itertuples(index=False, name=None):
            found.setdefault(str(kind), []).append((float(t), str(name), str(event), json.loads(text)))
        return found

    def _table(self, name: str) -> pd.DataFrame:
        file = self.folder / f"{name}.parquet"
        if not file.exists():
            raise NoData(f"{self.folder.name} has no {name}")
        return pd.read_parquet(file)

    def _json(self, name: str) -> dict[str, Any]:
        file = self.folder / name
        if not file.exists():
            raise NoData(f"{self.folder.name} has no {name}")
        content: dict[str, Any] = json.loads(file.read_text())
        return content


def find(folder: Path, identity: str) -> Record:
    """The finished record of trial ``identity`` among those stored under ``folder`` (``results`` or ``results/records``).

    Raises :class:`InputError` naming what is there when it is not.
    """
    there = stored(folder)
    if identity not in there:
        raise InputError(folder, "record", identity, f"a stored trial; there are: {', '.join(there) or 'none'}")
    return Record(there[identity])


def stored(folder: Path) -> dict[str, Path]:
    """The folders of the records under ``folder`` (``results`` or ``results/records``), by identity."""
    root = folder / "records" if (folder / "records").is_dir() else folder
    return {file.parent.name: file.parent for file in sorted(root.glob("*/trial.json"))}


def write_json(file: Path, content: object) -> None:
    """Write ``content`` as readable JSON, whole or not at all."""
    partial = file.with_suffix(".partial")
    partial.write_text(json.dumps(content, indent=1, default=str) + "\n")
    partial.replace(file)


def lines_to_parquet(lines: Path, table: Path, columns: list[str], as_json: tuple[str, ...] = ()) -> None:
    """Turn a file of JSON lines into a Parquet table; what is not a named column goes into ``detail`` as JSON."""
    rows = []
    for line in lines.read_text().splitlines():
        row = json.loads(line)
        rest = {key: row.pop(key) for key in list(row) if key not in columns}
        for column in as_json:
            row[column] = json.dumps(row[column])
        rows.append(row | ({"detail": json.dumps(rest)} if "detail" in columns else {}))
    pd.DataFrame(rows, columns=columns).sort_values("t", kind="stable", ignore_index=True).to_parquet(table)
    lines.unlink()
