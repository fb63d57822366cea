"""HPAs as the API server's watch saw them: every status with the metrics that it held."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from lab.record.tables import Watched
from lab.spec import hpa_spec

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
    """An HPA at ``t`` (epoch s): the replicas that it saw and asked for, None where its status has none, and its metrics.

    ``object`` is the whole of it, with the spec that was in force.
    """

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
