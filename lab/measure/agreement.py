"""Agreement: whether the model decides every sync of a trial's HPA as the real controller did, on what that one saw.

What each sync saw and decided is :attr:`Record.hpa_syncs`.
"""

from __future__ import annotations

from lab.errors import NoData
from lab.model import hpa
from lab.model.hpa import Controller
from lab.model.replay import Replay, replay
from lab.record.store import Record


def agreement(record: Record) -> Replay:
    """Replay the trial's syncs. Raises :class:`NoData` for a trial without an HPA or from before its syncs were kept."""
    found = record.hpa_syncs
    if not found:
        raise NoData("no sync of an HPA in the record")
    return replay(found, Controller(downscale_stabilization_s=record.scale.seconds(hpa.DEFAULTS.downscale_stabilization_s)))
