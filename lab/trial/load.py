"""Samples the load of the machine while a trial runs: what the trial's own processes take, and what everything else takes.

Of the trial's own processes it also keeps the resident memory and the CPU time, by what they are. A process that was forked has
its parent's command, so the pods of one program are one row.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from lab import clock
from lab.errors import LabFault
from lab.host import load
from lab.host.load import RESOURCES, Process, Reading

EVERY_S = 2.0  # a reading takes 3 ms of CPU with 110 processes
MEMORY_EVERY = 5  # readings: an hour of some 20 kinds of processes is 7,000 rows
GONE_S = 5.0
FILE, MEMORY_FILE = "load.parquet", "memory.parquet"
MEMORY = ["t", "process", "count", "rss_bytes", "cpu_s"]
COLUMNS = ["t", "busy_s", "steal_s", "own_s", "others_s", *(f"{resource}_waiting_s" for resource in RESOURCES)]


class Sampler:
    """Reads the load every ``every_s`` seconds, from now until :meth:`write`.

    The trial's own processes are this one, those of ``own``, and all that descend from them. Where ``own`` is None they can't
    be seen, and the table does not say what they took.
    """

    def __init__(
        self, *, own: Collection[int] | None, every_s: float = EVERY_S, read: Callable[[], Reading] = load.reading
    ) -> None:
        self.rows: list[dict[str, Any]] = []
        self.memory: list[tuple[float, str, int, int, float]] = []
        self._names: dict[load.Key, str] = {}
        self._roots = None if own is None else {os.getpid(), *own}
        self._every_s, self._read = every_s, read
        self._before: Mapping[load.Key, Process] = {}
        self._others: Mapping[load.Key, Process] = {}
        self._own_s = self._others_s = 0.0
        self.fault: str | None = None  # why no further reading was taken
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._sample, name="load", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take no further reading."""
        self._done.set()
        self._thread.join(GONE_S)

    def write(self, into: Path) -> None:
        """Stop, and leave the tables in the folder ``into``. Raises :class:`LabFault` when the load could not be read."""
        self.stop()
        if self.fault:
            raise LabFault(self.fault)
        pd.DataFrame(self.rows, columns=COLUMNS).astype(float).to_parquet(into / FILE)
        if self._roots is not None:
            pd.DataFrame(self.memory, columns=MEMORY).to_parquet(into / MEMORY_FILE)

    def _sample(self) -> None:
        try:
            while True:
                self._take()
                if self._done.wait(self._every_s):
                    return
        except Exception as error:
            self.fault = f"the load of the machine can't be read: {error}"

    def _take(self) -> None:
        t, now = clock.now(), self._read()
        own = {key: now.processes[key] for key in load.descendants(now.processes, self._roots or (), self._before)}
        others = {key: process for key, process in now.processes.items() if key not in own}
        if self.rows:
            self._own_s += load.growth(self._before, own)
            self._others_s += load.growth(self._others, others)
        self._before, self._others = own, others
        if self._roots is not None and len(self.rows) % MEMORY_EVERY == 0:
            self._weigh(t, own)
        row: dict[str, float | None] = {"t": t, "busy_s": now.busy_s, "steal_s": now.steal_s}
        if self._roots is not None:
            row |= {"own_s": self._own_s, "others_s": self._others_s}
        self.rows.append(row | {f"{name}_waiting_s": now.waiting.get(name) for name in RESOURCES})

    def _weigh(self, t: float, own: Mapping[load.Key, Process]) -> None:
        """Keep the resident memory and the CPU time of ``own``, by what they are."""
        self._names = {key: self._names.get(key) or load.what(load.command(key[0])) for key in own}
        held: dict[str, list[Process]] = {}
        for key, process in own.items():
            held.setdefault(self._names[key], []).append(process)
        self.memory += [
            (t, name, len(each), sum(one.rss_bytes for one in each), sum(one.own_s for one in each))
            for name, each in sorted(held.items())
        ]
