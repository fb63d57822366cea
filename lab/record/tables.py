"""The files of a record as they are stored: each is read when it is asked for; an absent one is no data."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.parquet as pq

from lab.errors import InputError, NoData
from lab.record import trial as trials
from lab.record.reconciliation import Reconciliation
from lab.record.trial import Offsets, Trial

# What the part of the closing is called that a file comes from, where it is not the file's own name.
_PART = {"memory": "load", "receipts": "ledger", "rates": "ledger", "dead_letters": "ledger", "reconciliation": "ledger"}
EVENTS = 2**18  # messages that are read at a time


class Watched(NamedTuple):
    """A watch event of the API server: when it came, and the object with that name as it was then."""

    t: float
    name: str
    event: str
    object: dict[str, Any]


@dataclass(frozen=True)
class Tables:
    """The record in ``folder``, file by file. Each raises :class:`NoData` when it is not there."""

    folder: Path

    @cached_property
    def trial(self) -> Trial:
        """The content of trial.json. Raises :class:`InputError` for one that is not what a trial writes."""
        return trials.read(self.folder)

    @cached_property
    def reconciliation(self) -> Reconciliation:
        """The content of reconciliation.json. Raises :class:`InputError` for one that is not what a trial writes."""
        file = self.file("reconciliation.json")
        try:
            return Reconciliation.from_json(json.loads(file.read_text()))
        except ValueError as error:
            raise InputError(file, "content", str(error), "what the ledger of a trial writes") from None

    @cached_property
    def samples(self) -> pd.DataFrame:
        """Prometheus samples."""
        return self._table("samples")

    @cached_property
    def load(self) -> pd.DataFrame:
        """The machine's load while the trial ran, in seconds that only grow; a value that could not be had is NaN."""
        return self._table("load")

    @cached_property
    def memory(self) -> pd.DataFrame:
        """Memory and CPU time of the lab's processes while the trial ran: t, process, count, rss_bytes, cpu_s."""
        return self._table("memory")

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
        return self.events("partition", "offset", "seq")

    def events(self, *columns: str) -> pd.DataFrame:
        """These columns of the messages on the topic, all at once. An old small record may lack some."""
        table = pq.ParquetDataset(list(map(str, self._event_files(columns))))
        found: pd.DataFrame = table.read(columns=list(columns)).to_pandas()
        return found

    def event_parts(self, *columns: str, most: int = EVENTS) -> Iterator[tuple[npt.NDArray[np.int64], ...]]:
        """The same of columns of whole numbers, ``most`` messages at a time: an hour's trial has a hundred million."""
        for path in self._event_files(columns):
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(most, columns=list(columns)):
                    if batch.num_rows:
                        yield tuple(batch.column(name).to_numpy() for name in columns)

    def _event_files(self, columns: Sequence[str]) -> list[Path]:
        """The files of events. No data where there is none, and where they lack one of ``columns``."""
        files = sorted((self.folder / "ledger" / "events").glob("*.parquet"))
        if not files:
            raise self.absent("ledger")
        if lacking := [name for name in columns if name not in pq.read_schema(files[0]).names]:
            raise NoData(f"the ledger of {self.folder.name} has no {', '.join(lacking)}")
        return files

    @cached_property
    def offsets(self) -> dict[int, Offsets]:
        """Log end and committed offset at the end of the trial, by partition."""
        if not self.trial.offsets:
            raise self.absent("offsets")
        return self.trial.offsets

    @cached_property
    def hpa_log(self) -> str:
        """What kube-controller-manager said of the trial's HPA (klog, UTC). A trial without an HPA has none."""
        return self.file("hpa.log").read_text()

    @cached_property
    def _objects(self) -> dict[str, list[Watched]]:
        """The watch events of each kind that was asked for. Most are of pods, which few measures ask for."""
        return {}

    def watched(self, kind: str, name: str | None = None) -> list[Watched]:
        """The watch events of ``kind`` (and ``name``), in order of arrival. Each kind is parsed once."""
        if kind not in self._objects:
            rows = self.transitions.loc[self.transitions["kind"] == kind, ["t", "name", "event", "object"]]
            self._objects[kind] = [
                Watched(float(t), str(of), str(event), json.loads(text))
                for t, of, event, text in rows.itertuples(index=False, name=None)
            ]
        return [one for one in self._objects[kind] if name in (None, one.name)]

    def file(self, name: str) -> Path:
        """The file ``name`` of the record."""
        path = self.folder / name
        if not path.exists():
            raise self.absent(name)
        return path

    def absent(self, name: str) -> NoData:
        """Say that there is no ``name``, and why if trial.json has a reason."""
        why = self.trial.missing.get(_PART.get(name.removesuffix(".json"), name))
        return NoData(f"{self.folder.name} has no {name}{f': {why}' if why else ''}")

    def _table(self, name: str) -> pd.DataFrame:
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            raise self.absent(name)
        return pd.read_parquet(path)
