"""Winner: which of several metrics decided, told by the controller's own log and checked against the HPA's status.

An HPA works out a proposal for each metric and takes the largest (``computeReplicasForMetrics`` in
``pkg/controller/podautoscaler/horizontal.go``); its log names the metric that won, and its status holds what each one was.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from lab.errors import NoData, known
from lab.model import hpa, hpa_log
from lab.record.hpas import EXTERNAL, Status
from lab.record.store import Record

CPU, LAG = "cpu", "lag"
_METRIC = re.compile(r'"Proposing desired replicas".*? metric="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class Step:
    """A step up: when, from and to how many replicas, the metric that ``won``, and each metric's own proposal by its status.

    ``t`` is in epoch s. ``values`` are what the status held: messages per replica for lag, percent of the request for cpu.
    """

    t: float
    before: int
    after: int
    won: str
    proposals: dict[str, int]
    values: dict[str, float]

    @property
    def largest(self) -> int:
        """The largest of the proposals."""
        return max(self.proposals.values())


def steps_up(record: Record) -> list[Step]:
    """Every step up that the HPA took since the spike began, in order.

    Raises :class:`NoData` when there was none, or no HPA's log.
    """
    begun, spike, lines = record.trial.begun, record.zero, record.hpa_lines
    winners = {line.t: found for line, found in _winners(record.hpa_log, begun)}
    found = []
    for logged in hpa_log.syncs(lines):
        before, after = (logged.outcome.replicas.get(f"{name}Replicas", 0) for name in ("current", "desired"))
        if logged.outcome.words != hpa_log.RESCALED or after <= before or logged.outcome.t < spike or not logged.proposal:
            continue
        # The status this sync wrote is the first that asks for what it decided.
        wrote = next((one for one in record.hpa_statuses if one.t >= logged.at and one.desired == after), None)
        values, proposals = _told(wrote, before) if wrote else ({}, {})
        found.append(Step(logged.outcome.t, before, after, winners.get(logged.proposal.t, ""), proposals, values))
    if not found:
        raise NoData("the HPA never went up after the spike began")
    return found


def named(metric: str) -> str:
    """What a metric's description in the controller's log is about: "cpu", "lag" or the words themselves."""
    if metric.startswith("cpu resource"):
        return CPU
    return LAG if metric.startswith("external metric") else metric


def _winners(text: str, begun: float) -> list[tuple[hpa_log.Line, str]]:
    found = []
    for line in text.splitlines():
        if match := _METRIC.search(line):
            found += [(one, named(match[1])) for one in hpa_log.parse(line, begun)]
    return found


def _told(status: Status, replicas: int) -> tuple[dict[str, float], dict[str, int]]:
    """(value, proposal) of each metric in an HPA's status, for ``replicas`` that were there, all of them ready."""
    values: dict[str, float] = {}
    proposals: dict[str, int] = {}
    spec = hpa.parse(status.object, "the record's HPA")
    for metric in status.metrics:
        target = next(one for one in spec.metrics if one.source.lower() == metric.kind)
        if metric.kind == EXTERNAL:
            name, values[LAG] = LAG, float(known(metric.average, "average of the external metric"))
            ratio = values[LAG] / (target.amount / 1000)
        else:
            name, values[CPU] = CPU, float(known(metric.utilization, "utilization"))
            ratio = values[CPU] / target.amount
        proposals[name] = replicas if abs(ratio - 1) <= hpa.DEFAULTS.tolerance else math.ceil(round(ratio * replicas, 6))
    return values, proposals
