"""HPAs as the API server's watch saw them: every status with its metrics, and every sync with its inputs.

Time, proposal and decision of a sync are the controller's log lines. Its inputs are in the HPA's status: the average of the
external metric over the existing replicas, in thousandths rounded up, from which a lag follows, a whole number of messages.
Another metric is known to a thousandth for each replica. A sync that did not change the status saw the same as the one
before. Where a status was lost, only the outcome of the proposal is known.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from lab.inputs import hpa_spec
from lab.model import hpa, hpa_log
from lab.model.hpa import HpaSpec
from lab.model.hpa_log import Logged, Seen, Sync, may_exist
from lab.record.tables import Watched

EXTERNAL, RESOURCE = "external", "resource"


class Condition(NamedTuple):
    """A condition of an HPA in the API's words."""

    type: str
    status: str
    reason: str
    message: str


@dataclass(frozen=True)
class Current:
    """A current metric of a status: of an external one the ``average`` over the replicas or the ``value``, of a resource the
    ``utilization`` in percent of the pods' requests; None for what it does not hold."""

    kind: str
    name: str
    average: Fraction | None = None
    value: Fraction | None = None
    utilization: int | None = None

    def total(self, replicas: int) -> float | None:
        """An external metric's value for ``replicas`` together, a resource's utilization; None where the status has none."""
        if self.kind == RESOURCE:
            return None if self.utilization is None else float(self.utilization)
        if self.average is not None:
            return float(self.average) * replicas
        return None if self.value is None else float(self.value)


@dataclass(frozen=True)
class Status:
    """An HPA at ``t`` (epoch s): the replicas that it saw and asked for, its metrics, and the whole ``object``."""

    t: float
    current: int
    desired: int | None
    metrics: tuple[Current, ...]
    conditions: tuple[Condition, ...]
    object: dict[str, Any]

    def metric(self, kind: str, name: str | None = None) -> Current | None:
        """The first metric of ``kind`` (and ``name``); None where there is none."""
        return next((one for one in self.metrics if one.kind == kind and name in (None, one.name)), None)


def statuses(seen: Iterable[Watched]) -> list[Status]:
    """Every state of the HPAs that were ``seen``, in order; an HPA that is removed has none."""
    return [_status(one.t, one.object) for one in seen if one.event != "DELETED"]


def _status(t: float, item: dict[str, Any]) -> Status:
    status = item.get("status") or {}
    desired = status.get("desiredReplicas")
    return Status(
        t=t,
        current=int(status.get("currentReplicas", 0)),
        desired=None if desired is None else int(desired),
        metrics=tuple(
            _current(one, kind) for one in status.get("currentMetrics") or () for kind in (EXTERNAL, RESOURCE) if kind in one
        ),
        conditions=tuple(
            Condition(*(str(one.get(field, "")) for field in ("type", "status", "reason", "message")))
            for one in status.get("conditions") or ()
        ),
        object=item,
    )


def _current(metric: dict[str, Any], kind: str) -> Current:
    content = metric[kind] or {}
    current = content.get("current") or {}
    average, value = (current.get(field) for field in ("averageValue", "value"))
    return Current(
        kind=kind,
        name=str(content.get("name") or content.get("metric", {}).get("name")),
        average=None if average is None else hpa_spec.parse_quantity(average),
        value=None if value is None else hpa_spec.parse_quantity(value),
        utilization=None if current.get("averageUtilization") is None else int(current["averageUtilization"]),
    )


_MESSAGES = re.compile(r"s\d+-kafka-")  # the names of metrics that KEDA's kafka trigger makes: whole messages
NO_AVERAGE = Fraction(hpa_spec.MAX_INT64, 1000)  # over 0 replicas it is what no int64 can hold, which on amd64 is the least
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
        # How often the status had changed by each event; an event may be of the spec alone.
        changed = (one.object.get("status") != other.object.get("status") for other, one in itertools.pairwise(statuses))
        self._version = list(itertools.accumulate(changed, initial=0)) if statuses else []
        self._last = -1  # the place of the last sync's status

    def sync(self, logged: Logged) -> Sync:
        """The sync that these lines tell of."""
        at, outcome, proposal = logged.at, logged.outcome, logged.proposal
        desired = outcome.replicas["desiredReplicas"]
        spec = self._spec(at)
        place = self._place(logged)
        self._last = self._last if place is None else place
        status = self._statuses[place] if place is not None and place >= 0 else None
        return Sync(
            at=at,
            spec=spec,
            current=outcome.replicas.get("currentReplicas", desired),
            desired=desired,
            proposed=proposal.replicas["desiredReplicas"] if proposal else None,
            seen=(Seen(0, None),)
            if logged.lost or place is None
            else possible(spec, status, may_exist(self._existing, logged.before, at, CROSSING_S)),
            scaled_at=outcome.t if outcome.words == hpa_log.RESCALED else None,
        )

    def _place(self, logged: Logged) -> int | None:
        """Where among the statuses the one is that shows what this sync saw: -1 before the first, None where it never came.

        It mostly arrives before the next sync begins, from a late watch after it. A sync that wrote none has the last one.
        """
        last, used = bisect_right(self._times, logged.after) - 1, self._last
        if used < 0 or not logged.wrote or logged.lost or self._version[last] > self._version[used]:
            return max(last, used)
        own = bisect_right(self._version, self._version[used])
        return own if own < len(self._times) and self._times[own] <= logged.outcome.t + CROSSING_S else None

    def _spec(self, at: float) -> HpaSpec:
        """The HPA's spec that was in force at ``at``."""
        item = self._statuses[max(0, bisect_right(self._times, at) - 1)].object
        key = str(item["metadata"].get("generation")) + str(item["spec"])
        if key not in self._specs:
            self._specs[key] = hpa.parse(item, "the record's HPA")
        return self._specs[key]


def possible(spec: HpaSpec, status: Status | None, counts: Iterable[int]) -> tuple[Seen, ...]:
    """What a status may tell was seen: for each of ``counts`` replicas that its average is possible with (one in 1000 / R)."""
    averages = [one.average for one in status.metrics if one.average is not None] if status else []
    over_none = any(abs(average) >= NO_AVERAGE for average in averages)
    unknown = over_none or any(metric.source != "External" or metric.target != "AverageValue" for metric in spec.metrics)
    choices = []
    for existing in counts:
        if unknown:
            return (Seen(existing, None),)
        totals = [_totals(status, metric.name, existing) for metric in spec.metrics]
        choices += [Seen(existing, observed) for observed in itertools.product(*totals)]
    return tuple(choices)


def _totals(status: Status | None, name: str, existing: int) -> list[tuple[int, ...] | None]:
    """The possible totals in thousandths of an average over ``existing``: of messages one, else the least and the greatest."""
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
