"""The metric that won each step up of an HPA with several.

An HPA works out a proposal for each metric and takes the largest one (``computeReplicasForMetrics`` in
``pkg/controller/podautoscaler/horizontal.go``). Its log names the winning metric, and its status holds each metric's value.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from lab.errors import NoData, known
from lab.inputs import hpa_spec
from lab.judge.measure import Measure, detail, measure, number
from lab.model import hpa, hpa_log
from lab.model.hpa import Observed
from lab.record.hpas import Status
from lab.record.store import Record

CPU, LAG = "cpu", "lag"
_KINDS = {"cpu resource": CPU, "external metric": LAG}  # by the beginning of a metric's description in the controller's log
_METRIC = re.compile(r'"Proposing desired replicas".*? metric="((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True)
class ScaleUp:
    """A step up from ``before`` to ``after`` replicas at ``t`` (epoch s), with the metric that ``won`` and each one's proposal.

    ``values`` are the metrics in the HPA's status: messages per replica for lag, percent of the request for cpu.
    """

    t: float
    before: int
    after: int
    won: str
    proposals: dict[str, int]
    values: dict[str, float]

    @property
    def largest(self) -> int:
        """The largest of the proposals. Raises :class:`NoData` when the status held none."""
        return known(max(self.proposals.values(), default=None), "proposal in the HPA's status at a step up")


class WinningMetric(Measure):
    """The steps up that an HPA took since the spike began, and the triggers that they followed."""

    steps = detail(tuple[ScaleUp, ...], "the steps up, in order")
    first_on_cpu = number("step", "first step up that the CPU trigger won")
    off_largest = number("steps", "steps up to another number than the largest proposal")
    most_by_lag = number("pods", "largest proposal of the lag trigger")


@measure
def winning_metric(record: Record) -> WinningMetric:
    """Measure the steps up.

    There is no data without a step up, without an HPA's log, and for a step whose proposals are in no status.
    """
    begun, spike, lines = record.trial.begun, record.zero, record.hpa_lines
    winners: dict[float, str] = {}
    for line in record.hpa_log.splitlines():
        if match := _METRIC.search(line):
            won = next((kind for start, kind in _KINDS.items() if match[1].startswith(start)), match[1])
            winners |= {one.t: won for one in hpa_log.parse(line, begun)}
    steps = []
    for logged in hpa_log.syncs(lines):
        before, after = (logged.outcome.replicas.get(f"{name}Replicas", 0) for name in ("current", "desired"))
        if logged.outcome.words != hpa_log.RESCALED or after <= before or logged.outcome.t < spike or not logged.proposal:
            continue
        # The status this sync wrote is the first that asks for what it decided.
        wrote = next((one for one in record.hpa_statuses if one.t >= logged.at and one.desired == after), None)
        values, proposals = _seen(wrote, before) if wrote else ({}, {})
        steps.append(ScaleUp(logged.outcome.t, before, after, winners.get(logged.proposal.t, ""), proposals, values))
    if not steps:
        raise NoData("the HPA never went up after the spike began")
    return WinningMetric(
        steps=tuple(steps),
        first_on_cpu=int(steps[0].won == CPU),
        off_largest=sum(step.after != step.largest for step in steps),
        most_by_lag=max(step.proposals[LAG] for step in steps) if all(LAG in step.proposals for step in steps) else None,
    )


def _seen(status: Status, replicas: int) -> tuple[dict[str, float], dict[str, int]]:
    """(values, proposals) by metric in an HPA's status, for ``replicas`` pods that are all ready."""
    spec = hpa.parse(status.object, "the record's HPA")
    pods = [hpa.Pod(str(number)) for number in range(replicas)]
    values: dict[str, float] = {}
    observed: list[Observed] = []
    for metric in spec.metrics:
        found = status.metric(metric.source.lower())
        if found is None:
            observed.append(None)
        elif metric.source == "External":
            average = known(found.average, "average of the external metric")
            values[LAG] = float(average)
            observed.append((hpa_spec.milli(average) * replicas,))
        else:
            percent = known(found.utilization, "utilization")
            values[CPU] = float(percent)
            observed.append({pod.name: hpa.Usage(10 * percent) for pod in pods})  # of the 1,000 milli-units that each requests
    asked = hpa.proposals(spec, replicas, observed, hpa.DEFAULTS.cpu_initialization_s + 1, pods=pods)
    names = [LAG if metric.source == "External" else CPU for metric in spec.metrics]
    return values, {name: count for name, count in zip(names, asked, strict=True) if count is not None}
