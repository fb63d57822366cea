"""What is known of a trial under way, kept as its trial.json will have it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lab import clock
from lab.inputs.events import Kill
from lab.inputs.steps import Decree
from lab.record.trial import Fault, Step, Trial

log = logging.getLogger("lab.trial")


class Journal:
    """The ``trial`` so far, and the ``phase`` that it is in, in words for the live line."""

    def __init__(self, trial: Trial) -> None:
        self.trial, self.phase = trial, "preparing"
        self._noting = threading.Lock()  # a part of the record that was given up may go on in its thread

    def note(self, **known: Any) -> None:
        """Keep the values of fields of the trial."""
        with self._noting:
            self.trial = replace(self.trial, **known)

    def mark(self, phase: str) -> None:
        """Enter ``phase``, and keep its time."""
        self.phase = phase
        self.note(times=self.trial.times | {phase: clock.now()})
        log.info("%s: %s", self.trial.id, phase)

    def add_event(self, row: Mapping[str, Any]) -> None:
        """Keep what came of an event; a decree is a step too, and a kill a fault, whose time is that of its signal."""
        self.note(events=(*self.trial.events, dict(row)))
        result = row["result"]
        if row["event"] == Decree.name:
            step = Step(row["t"], result["kind"], row["before"], row["after"], result["settled"], result["observed"])
            self.note(steps=(*self.trial.steps, step))
        elif row["event"] == Kill.name:
            self.note(faults=(*self.trial.faults, Fault(**{"t": row["t"], "fault": "sigkill"} | result)))
