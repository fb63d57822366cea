"""The syncs of a trial's HPA: what the controller's log says of each, beside what the watches show that it saw.

Time, proposal and decision of each sync are the controller's own log lines. What it saw is in the HPA's status: the average
of the external metric over the replicas that existed, in thousandths rounded up. As a lag is a whole number of messages,
it follows from the average; another metric, such as what of a lag has lasted, is known to a thousandth for each replica. A
sync that did not change the status saw what the one before it saw. Where a status is lost, for another write overtook it or a
failed sync's followed, only what became of the proposal is known.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from lab.model import hpa, hpa_log
from lab.model.hpa import HpaSpec
from lab.model.hpa_log import Logged, Seen, Sync, may_exist
from lab.record.hpas import EXTERNAL, Status
from lab.record.tables import Watched
from lab.spec import hpa_spec

_MESSAGES = re.compile(r"s\d+-kafka-")  # the names of metrics that KEDA's kafka trigger makes: whole messages
CROSSING_S = 2.0  # on a loaded machine a watch event arrives so much later than what it tells of was read


def syncs(logged: Iterable[Logged], statuses: Sequence[Status], deployment: Iterable[Watched]) -> list[Sync]:
    """The syncs that were ``logged``, in order; ``statuses`` are the HPA's, ``deployment`` the consumer's watch events."""
    history = _History(statuses, deployment)
    return [history.sync(one) for one in logged]


class _History:
    """What the watches saw of the HPA and of the Deployment, by time."""

    def __init__(self, statuses: Sequence[Status], deployment: Iterable[Watched]) -> None:
        self._statuses = statuses
        self._times = [one.t for one in statuses]
        self._specs: dict[str, HpaSpec] = {}
        self._existing = [(one.t, int(one.object.get("status", {}).get("replicas", 0))) for one in deployment]

    def sync(self, logged: Logged) -> Sync:
        """The sync that these lines tell of."""
        at, outcome, proposal = logged.at, logged.outcome, logged.proposal
        desired = outcome.replicas["desiredReplicas"]
        spec = self._spec(at)
        # The status this sync wrote arrives before the next sync begins; where it wrote none, the last one still stands.
        last = bisect_right(self._times, logged.after) - 1
        status = self._statuses[last] if last >= 0 else None
        return Sync(
            at=at,
            spec=spec,
            current=outcome.replicas.get("currentReplicas", desired),
            desired=desired,
            proposed=proposal.replicas["desiredReplicas"] if proposal else None,
            seen=(Seen(0, None),)
            if logged.lost
            else _seen(spec, status, may_exist(self._existing, logged.before, at, CROSSING_S)),
            scaled_at=outcome.t if outcome.words == hpa_log.RESCALED else None,
        )

    def _spec(self, at: float) -> HpaSpec:
        """The HPA's spec that was in force at ``at``."""
        item = self._statuses[max(0, bisect_right(self._times, at) - 1)].object
        key = str(item["metadata"].get("generation")) + str(item["spec"])
        if key not in self._specs:
            self._specs[key] = hpa.parse(item, "the record's HPA")
        return self._specs[key]


def _seen(spec: HpaSpec, status: Status | None, counts: Iterable[int]) -> tuple[Seen, ...]:
    """What a status may tell was seen: for each of ``counts`` replicas that its average is possible with.

    A wrong number is rarely taken for the right one: with R replicas one average in 1000 / R is that of whole messages.
    """
    choices = []
    for existing in counts:
        if any(metric.source != "External" or metric.target != "AverageValue" for metric in spec.metrics):
            return (Seen(existing, None),)
        totals = [_totals(status, metric.name, existing) for metric in spec.metrics]
        choices += [Seen(existing, observed) for observed in itertools.product(*totals)]
    return tuple(choices)


def _totals(status: Status | None, name: str, existing: int) -> list[tuple[int, ...] | None]:
    """The totals in thousandths that the metric's average over ``existing`` replicas can be of, None for one that failed.

    For messages one at most; for another metric the greatest and the least, between which there is no decision to speak of.
    """
    metric = status.metric(EXTERNAL, name) if status else None
    if metric is None or metric.average is None:
        return [None]
    average = hpa_spec.milli(metric.average)
    most, below = average * existing, (average - 1) * existing
    if average == 0:
        return [(0,)]
    if not _MESSAGES.match(name):
        return [(most,), (below + 1,)] if existing > 1 else [(most,)]
    total = most // 1000 * 1000
    return [(total,)] if below < total else []
