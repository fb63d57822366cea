"""Agreement: whether the model decides each sync of a trial's HPA as the controller did."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.model import hpa
from lab.model.hpa import Controller
from lab.model.hpa_log import Disagreement, replay
from lab.record.store import Record


class Agreement(Measure):
    """The syncs of a trial's HPA, decided by the model on the inputs that the controller saw.

    The terms are those of :class:`lab.model.hpa_log.Replay`.
    """

    syncs = number("syncs", "syncs replayed")
    computed = number("syncs", "syncs whose proposal was worked out too")
    rescaled = number("syncs", "syncs that rescaled")
    at_an_edge = number("syncs", "syncs that agree at an edge of the clock")
    alternatives = number("syncs", "syncs that agree on an input that is possible and not the likeliest")
    agreement = number("%", "HPA decisions that the model takes too")
    disagreements = detail(tuple[Disagreement, ...], "the syncs that the model decides otherwise")


@measure
def agreement(record: Record) -> Agreement:
    """Replay the trial's syncs. There is no data for a trial without an HPA and for one whose log was not kept."""
    found = record.hpa_syncs
    if not found:
        raise NoData("no sync of an HPA in the record")
    stabilization_s = record.scale.seconds(hpa.DEFAULTS.downscale_stabilization_s)
    again = replay(found, Controller(downscale_stabilization_s=stabilization_s))
    return Agreement(**{name: getattr(again, name) for name in Agreement.declared()})
