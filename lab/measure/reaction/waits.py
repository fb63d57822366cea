"""Decision: the part of a reaction that waits for KEDA and the HPA, split at the syncs of the HPA's own log."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.measure.reaction.step import crossing, first_step
from lab.model import hpa_log
from lab.model.hpa_log import Line, Logged
from lab.record.store import Record

LATE_S = 2.0  # the controller logs a step after it has written it, and a watch may see it before or, on a busy machine, after


class Decision(Measure):
    """From the time when lag asks for more replicas until the watch sees the first step up, in parts that sum to it.

    ``wait_s`` ends when the first sync after the crossing has its metrics. ``older_s`` ends at the first sync whose metric asks
    for more: a sync before it saw an older lag. ``held_s`` ends at the sync that rescales: stabilization window and policies
    held it until then. ``write_s`` is from that sync's metrics until the watch sees the new replicas. A part whose end came
    before its turn is 0, so a step on an earlier lag than the crossing is all ``write_s``.

    ``phase`` is ``wait_s`` over the sync period: anything from 0 to 1, as each trial draws it, and more by
    what a sync takes.
    """

    wait_s = number("s", "wait for the HPA's next sync")
    older_s = number("s", "syncs that saw an older lag")
    held_s = number("s", "syncs that the window and the policies up held back")
    write_s = number("s", "time from the sync's metrics to the new replicas", UNSCALED)
    phase = number("sync periods", "wait for the HPA's next sync over the sync period")


@measure
def decision(record: Record) -> Decision:
    """Split the wait. There is no data without an HPA's log, without a step up, and where no sync of the log took that step."""
    crossed, stepped = crossing(record, record.zero), first_step(record)
    wait, older, held, write = split(list(hpa_log.syncs(record.hpa_lines)), crossed, stepped)
    return Decision(wait_s=wait, older_s=older, held_s=held, write_s=write, phase=wait / record.scale.hpa_sync_s)


def split(syncs: Sequence[Logged], crossed: float, stepped: float) -> tuple[float, float, float, float]:
    """The lengths of the four parts from ``crossed`` to ``stepped`` (epoch s), of which none is negative.

    Raises :class:`NoData` when none of ``syncs`` rescaled up at about ``stepped``.
    """
    taken = [one for one in syncs if one.outcome.words == hpa_log.RESCALED and _desired(one.outcome) > _current(one)]
    last = min(taken, key=lambda one: abs(one.outcome.t - stepped), default=None)
    if last is None or abs(last.outcome.t - stepped) > LATE_S:
        raise NoData("no sync in the HPA's log took the first step up")
    after = [one.at for one in syncs if crossed <= one.at <= last.at]
    asking = [one.at for one in syncs if crossed <= one.at <= last.at and _desired(one.proposal) > _current(one)]
    stamps = [crossed]
    for end in (after[0] if after else crossed, asking[0] if asking else crossed, last.at, stepped):
        stamps.append(max(stamps[-1], min(end, stepped)))
    wait, older, held, write = (later - earlier for earlier, later in pairwise(stamps))
    return wait, older, held, write


def _desired(line: Line | None) -> int:
    return 0 if line is None else line.replicas.get("desiredReplicas", 0)


def _current(one: Logged) -> int:
    return one.outcome.replicas.get("currentReplicas", _desired(one.outcome))
