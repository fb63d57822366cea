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

from lab import validation
from lab.errors import NoData
from lab.inputs.own_consumer import OFF, RECEIPTS
from lab.record import trial as trials
from lab.record.ledger import LEDGER
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


def _stored(name: str) -> cached_property[pd.DataFrame]:
    """The table ``name``, which is read when it is asked for first."""

    def read(record: Tables) -> pd.DataFrame:
        path = record.folder / f"{name}.parquet"
        if not path.exists():
            raise record.absent(name)
        return pd.read_parquet(path)

    return cached_property(read)


@dataclass(frozen=True)
class Tables:
    """The record in ``folder``, file by file (columns: :mod:`lab.record.store`). Raises :class:`NoData` where one is absent."""

    folder: Path

    def release(self) -> None:
        """Forget all that was read but trial.json; it is read again when asked for. A session keeps the records of hundreds."""
        for name in vars(self).keys() - {"folder", "trial"}:
            del vars(self)[name]

    @cached_property
    def trial(self) -> Trial:
        """The content of trial.json. Raises :class:`InputError` for one that is not what a trial writes."""
        return trials.read(self.folder)

    @cached_property
    def reconciliation(self) -> Reconciliation:
        """The content of reconciliation.json. Raises :class:`InputError` for one that is not what a trial writes."""
        return validation.read_file(Reconciliation, self.file("reconciliation.json"))

    samples = _stored("samples")  # of Prometheus
    load = _stored("load")  # the machine's while the trial ran, in seconds that only grow; what could not be had is NaN
    memory = _stored("memory")  # and CPU time, of the lab's processes while the trial ran
    transitions = _stored("transitions")  # API watch events, in order of arrival
    group_events = _stored("group_events")  # what consumers and producer reported, in order of time
    receipts = _stored("receipts")  # of the downstream store
    rates = _stored("rates")  # messages in bins of 200 ms and 1 s
    dead_letters = _stored("dead_letters")  # of a trial that had a topic for them

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
        part, rung = _PART.get(name.removesuffix(".json"), name), self.trial.inputs.workload.rung
        why = self.trial.missing.get(part)
        if part == LEDGER and rung != RECEIPTS:
            why = f"the consumer writes no receipts (rung: {rung})"
        elif part == LEDGER and self.trial.inputs.driver == OFF:
            why = "the traffic was your own, and its topic is not read"
        return NoData(f"{self.folder.name} has no {name}{f': {why}' if why else ''}")
