"""Trials of one session: equal inputs run once, or are read from stored records."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from lab.errors import InputError, NoData
from lab.record import store
from lab.record.store import Record
from lab.spec import inputs
from lab.spec.inputs import Inputs
from lab.spec.manifests import COMMITTED, Library
from lab.spec.scale import Scale
from lab.spec.workload import Workload

log = logging.getLogger("lab.trial")


def _refuse(error: InputError) -> NoReturn:
    raise error


@dataclass
class Trials:
    """Runs trials by name, looked up in ``library``; ``execute`` makes or finds the record of checked inputs.

    ``refuse`` is called with the error of inputs that can't be used, and must not return; by default it raises the error.
    ``repeat`` is the number of runs of each plan of :meth:`interleaved`.
    """

    scale: Scale
    runtime: str
    execute: Callable[[Inputs], Record]
    repeat: int = 1
    library: Library = COMMITTED
    refuse: Callable[[InputError], NoReturn] = _refuse
    done: dict[str, Record] = field(default_factory=dict)

    def run(
        self, profile: str | Path, policy: str | Path, workload: Workload | None = None, seed: int = 1, **how: Any
    ) -> Record:
        """The record of this trial; it is executed at most once a session.

        A path is a user's file. ``how`` is that of :func:`lab.spec.inputs.read`.
        """
        how = {"library": self.library} | how
        try:
            chosen = inputs.read(profile, policy, workload or Workload(), seed, self.scale, self.runtime, **how)
        except InputError as error:
            self.refuse(error)
        if chosen.id not in self.done:
            self.done[chosen.id] = self.execute(chosen)
        return self.done[chosen.id]

    def interleaved(self, plans: Mapping[str, Mapping[str, Any]]) -> dict[str, list[Record]]:
        """The records of every plan (what :meth:`run` takes), :attr:`repeat` of each, in turns: a drift hits all alike."""
        found: dict[str, list[Record]] = {name: [] for name in plans}
        for repetition in range(1, self.repeat + 1):
            for name, plan in plans.items():
                found[name].append(self.run(**plan, repetition=repetition))
        return found


def stored(folder: Path, settle: Callable[[Record], None] | None = None) -> Callable[[Inputs], Record]:
    """A function that finds the record of inputs among those stored under ``folder``, and executes nothing.

    ``settle`` is called with each record that is found, and raises when its ledger settles otherwise now; a record without a
    ledger to settle is logged. The function raises :class:`InputError` like :func:`lab.record.store.find`.
    """

    def find(chosen: Inputs) -> Record:
        found = store.find(folder, chosen.id)
        if settle is not None:
            try:
                settle(found)
            except NoData as nothing:
                log.warning("%s: not settled again: %s", found.id, nothing)
        return found

    return find
