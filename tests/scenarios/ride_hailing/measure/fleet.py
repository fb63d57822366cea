"""The fleet: what the Deployments beside the consumer were, and what the HPAs of the namespace reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean

from lab.errors import NoData, known
from lab.inputs import hpa_spec
from lab.judge.measure import Measure, measure, number, quantity
from lab.model import hpa
from lab.record.hpas import Condition
from lab.record.store import Record

AMBIGUOUS = "AmbiguousSelector"  # two HPAs claim the same pods


@dataclass(frozen=True)
class Status:
    """An HPA's status at ``t`` (epoch s): replicas seen and asked for, the total of its metric, and the formula's replicas."""

    t: float
    current: int
    wanted: int
    total: float
    formula: int


class Replicas(Measure):
    """The replicas that a Deployment was asked to have."""

    most = number("pods", "most replicas")
    changes = number("steps", "changes of the replicas")


class AtRest(Measure):
    """What an HPA reported in the last third of a phase; ``total`` is that of its metric over all replicas."""

    replicas = number("pods", "replicas at rest")
    total = number("requests", "mean of the metric at rest")
    off_formula = number("pods", "replicas at rest off ceil(total / target)")


@quantity("pod-minutes", "pod-minutes")
def pod_minutes(record: Record, app: str) -> float:
    """The lives of the pods of ``app`` together, minutes as seen; no data when there was none."""
    return sum(record.lives(app).values()) / 60


@measure
def replicas(record: Record, deployment: str) -> Replicas:
    """The replicas asked for of ``deployment``; no data when it was never seen."""
    desired = record.replicas_of(deployment)["desired"]
    return Replicas(most=int(desired.max()), changes=int((desired != desired.shift()).sum()) - 1)


def statuses(record: Record, name: str) -> list[Status]:
    """Every status of HPA ``name`` with a value of its one external metric, in order.

    A status holds the average over its current replicas, rounded up to a milliunit; ``total`` is their product. The formula is
    the HPA's own (:func:`lab.model.hpa.proposals`) within its bounds.
    """
    found = []
    for status in record.hpa_statuses_of(name):
        current, desired = status.current, status.desired
        for metric in status.metrics:
            if metric.average is None or not current or desired is None:
                continue
            spec, total = hpa.parse(status.object, name), hpa_spec.milli(metric.average) * current
            asked = known(hpa.proposals(spec, current, [(total,)])[0], f"proposal of {name}")
            bounded = max(spec.min_replicas, min(spec.max_replicas, asked))
            found.append(Status(status.t, current, desired, total / 1000, bounded))
    return found


@measure
def at_rest(record: Record, name: str, phase: str) -> AtRest:
    """HPA ``name`` in the last third of the profile's ``phase``; no data when it reported nothing then."""
    start, end = record.span(phase)
    found = [one for one in statuses(record, name) if start + (end - start) * 2 / 3 <= one.t <= end]
    if not found:
        raise NoData(f"HPA {name} reported nothing in the last third of {phase}")
    return AtRest(
        replicas=found[-1].wanted,
        total=mean(one.total for one in found),
        off_formula=max(abs(one.wanted - one.formula) for one in found),
    )


def conditions(record: Record, name: str) -> list[Condition]:
    """Every condition that HPA ``name`` ever had, each once, in order."""
    return list(dict.fromkeys(one for status in record.hpa_statuses_of(name) for one in status.conditions))


@quantity("HPAs", "HPAs of one Deployment that report AmbiguousSelector")
def ambiguous(record: Record, names: Iterable[str]) -> int:
    """How many of the HPAs ``names`` ever had that condition; no data when the record has no watch events."""
    return sum(any(one.reason == AMBIGUOUS for one in conditions(record, name)) for name in names)
