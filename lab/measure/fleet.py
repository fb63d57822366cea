"""The fleet: what the Deployments beside the consumer were, and what the HPAs of the namespace said."""

from __future__ import annotations

import math
from dataclasses import dataclass

from lab.model import hpa
from lab.record.hpas import Condition
from lab.record.store import Record


@dataclass(frozen=True)
class Said:
    """A status of an HPA: replicas it saw and asked for, the total its metric stood for, and what the formula gives."""

    t: float
    current: int
    wanted: int
    total: float
    formula: int


def pod_minutes(record: Record, app: str) -> float:
    """Lives of the pods of ``app`` together, minutes as seen. Raises :class:`NoData` when there was none."""
    return sum(record.lives(app).values()) / 60


def wanted(record: Record, deployment: str) -> list[tuple[float, int]]:
    """(time, replicas asked for) of ``deployment``, a row at every change. Raises :class:`NoData` when it was never seen."""
    curve = record.replicas_of(deployment)
    changed = curve[curve["desired"] != curve["desired"].shift()]
    return [(float(t), int(count)) for t, count in changed[["t", "desired"]].itertuples(index=False, name=None)]


def said(record: Record, name: str, threshold: float, least: int, most: int) -> list[Said]:
    """Every status of HPA ``name`` with a value of its external metric (AverageValue ``threshold``), in order.

    A status holds the average over its current replicas, rounded to a milliunit; ``total`` is their product. The formula is
    ceil(total / threshold) within the bounds, or the current replicas where the ratio is within the HPA's tolerance.
    """
    found = []
    for status in record.hpa_statuses_of(name):
        current, desired = status.current, status.desired
        for metric in status.metrics:
            if metric.average is None or not current or desired is None:
                continue
            total = float(metric.average) * current
            ratio = total / (threshold * current)
            asked = current if abs(ratio - 1) <= hpa.DEFAULTS.tolerance else math.ceil(total / threshold)
            found.append(Said(status.t, current, desired, total, max(least, min(most, asked))))
    return found


def conditions(record: Record, name: str) -> list[Condition]:
    """Every condition that HPA ``name`` ever had, each once, in order."""
    return list(dict.fromkeys(one for status in record.hpa_statuses_of(name) for one in status.conditions))
