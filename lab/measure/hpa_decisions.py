"""HPA decisions: the metric that won, the recommendation that was followed, and the model's agreement with each.

Every sync of the controller is in its log, with its proposal and its decision (:attr:`Record.hpa_syncs`). An HPA works out a
proposal for each metric and takes the largest one (``computeReplicasForMetrics`` in
``pkg/controller/podautoscaler/horizontal.go``). Its log names the winning metric, and its status holds each metric's value.

``scaleUp.stabilizationWindowSeconds`` keeps the recommendations of so many seconds. A widespread explanation says that the
*highest* of them decides. ``stabilizeRecommendationWithBehaviors`` in ``horizontal.go`` of Kubernetes 1.36 takes the
*smallest*. The rules differ at a sync with a recommendation in the window that is no more than the current replicas. By the
first rule the HPA scales up at once, by the second it stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from lab.errors import NoData, known
from lab.inputs import hpa_spec
from lab.judge.measure import Measure, detail, measure, number, quantity
from lab.model import hpa, hpa_log
from lab.model.hpa import Controller, Observed
from lab.model.hpa_log import Disagreement, Sync, replay
from lab.record.hpas import Status
from lab.record.store import Record

STABILIZED = "ScaleUpStabilized"
CPU, LAG = "cpu", "lag"
_METRIC = re.compile(r'"Proposing desired replicas".*? metric="((?:[^"\\]|\\.)*)"')


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
    return Agreement(
        syncs=again.syncs,
        computed=again.computed,
        rescaled=again.rescaled,
        at_an_edge=again.at_an_edge,
        alternatives=again.alternatives,
        agreement=again.agreement,
        disagreements=again.disagreements,
    )


class UpWindow(Measure):
    """Syncs that propose more than the current replicas, by their outcome, and the window that was in force.

    The two rules differ at ``told_apart`` syncs. Of these ``stayed`` follow the smallest recommendation and ``raised`` the
    highest. At ``beyond`` steps up every recommendation of the window asked for more. Of these ``followed`` went no further
    than the smallest. ``said`` is the controller's own reason in the HPA's status.
    """

    window_s = number("s", "window up")
    asking = number("syncs", "syncs that asked for more replicas")
    told_apart = number("syncs", "syncs at which the highest recommendation would have scaled up")
    stayed = number("syncs", "syncs that stayed although the highest recommendation asked for more")
    raised = number("syncs", "syncs that scaled up although a recommendation in the window did not")
    beyond = number("syncs", "steps up where all of the window asked for more")
    followed = number("syncs", "steps up no further than the smallest recommendation of the window")
    share = number("%", "share of steps up within the smallest recommendation of the window")
    said = detail(str, "the controller's own reason in the HPA's status, empty if it never gave one")


@measure
def up_window(record: Record) -> UpWindow:
    """Sort the trial's syncs. There is no data without an HPA, and where its window up is 0."""
    found = record.hpa_syncs
    behavior = found[0].spec.behavior if found else None
    window = behavior.up.window_s if behavior else None
    if not window:
        raise NoData("no HPA with a window up")
    return count_syncs(found, window, _said(record))


def count_syncs(found: Sequence[Sync], window_s: int, said: str = "") -> UpWindow:
    """The counts of the syncs ``found``, in order of time. The edge of the window of ``window_s`` seconds is not in it."""
    recent: list[tuple[float, int]] = [(found[0].at, found[0].current)] if found else []  # as the controller begins
    asking = told_apart = stayed = raised = beyond = followed = 0
    for sync in found:
        if sync.proposed is None:
            continue
        within = [count for at, count in recent if at > sync.at - window_s]
        recent.append((sync.at, sync.proposed))
        if sync.proposed <= sync.current:
            continue
        asking += 1
        smallest = min([sync.proposed, *within])
        if smallest <= sync.current:
            told_apart += 1
            stayed += sync.desired == sync.current
            raised += sync.desired > sync.current
        elif sync.desired > sync.current:  # otherwise the policies held it: a period had its pods
            beyond += 1
            followed += sync.desired <= smallest
    return UpWindow(
        window_s=window_s,
        asking=asking,
        told_apart=told_apart,
        stayed=stayed,
        raised=raised,
        beyond=beyond,
        followed=followed,
        share=100 * followed / beyond if beyond else None,
        said=said,
    )


@quantity("steps", "steps up on a spike shorter than the window")
def steps_in_burst(record: Record) -> int:
    """Steps up from the phase "burst" to the phase "spike". There is no data when the producer did not come to both."""
    begun = {phase: at for at, phase in reversed(record.phases_begun)}
    if not {"burst", "spike"} <= begun.keys():
        raise NoData("the profile has no burst before a spike")
    ups = (change for change in record.scalings if change.after > change.before)
    return sum(begun["burst"] <= change.t < begun["spike"] for change in ups)


@quantity("x", "replicas after a period of the policies up, over those before")
def first_period_factor(record: Record) -> float:
    """Replicas after over replicas before the first period in which the metric asked for more than the policies up allowed.

    Times are the controller's own. There is no data when the policies never held back a metric.
    """
    found = record.hpa_syncs
    behavior = found[0].spec.behavior if found else None
    if behavior is None:
        raise NoData("no HPA with a behavior")
    return period_factor(found, max(policy.period_s for policy in behavior.up.policies))


def period_factor(found: Sequence[Sync], period_s: float) -> float:
    """:func:`first_stride` of syncs, with policies of ``period_s`` seconds. Raises :class:`NoData` when it has none."""
    quiet_since = float("-inf")  # a step within the period of another step begins no period
    for first in found:
        start = first.scaled_at or first.at
        if first.desired <= first.current:
            continue
        begins, quiet_since = start - quiet_since >= period_s, start
        within = [sync for sync in found if start <= (sync.scaled_at or sync.at) < start + period_s]
        reached = max(sync.desired for sync in within)
        if begins and any((sync.proposed or 0) > reached for sync in within):
            return reached / first.current
    raise NoData("the policies up were never in the way of a metric")


def _said(record: Record) -> str:
    conditions = (one for status in record.hpa_statuses for one in status.conditions)
    return next((one.message for one in conditions if one.reason == STABILIZED), "")


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
    steps = scale_ups(record)
    return WinningMetric(
        steps=tuple(steps),
        first_on_cpu=int(steps[0].won == CPU),
        off_largest=sum(step.after != step.largest for step in steps),
        most_by_lag=max(step.proposals[LAG] for step in steps) if all(LAG in step.proposals for step in steps) else None,
    )


def scale_ups(record: Record) -> list[ScaleUp]:
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
        values, proposals = _seen(wrote, before) if wrote else ({}, {})
        found.append(ScaleUp(logged.outcome.t, before, after, winners.get(logged.proposal.t, ""), proposals, values))
    if not found:
        raise NoData("the HPA never went up after the spike began")
    return found


def metric_kind(metric: str) -> str:
    """The kind of a metric in the controller's log: "cpu", "lag", or the log's own description of any other."""
    if metric.startswith("cpu resource"):
        return CPU
    return LAG if metric.startswith("external metric") else metric


def _winners(text: str, begun: float) -> list[tuple[hpa_log.Line, str]]:
    found = []
    for line in text.splitlines():
        if match := _METRIC.search(line):
            found += [(one, metric_kind(match[1])) for one in hpa_log.parse(line, begun)]
    return found


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
