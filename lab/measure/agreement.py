"""Agreement: whether the model decides every sync of a trial's HPA as the real controller did, on what that one saw.

Time, proposal and decision of each sync are the controller's own log lines. What it saw is in the HPA's status: the average
of the external metric over the replicas that existed, in thousandths rounded up. As a lag is a whole number of messages,
it follows from the average; another metric, such as what of a lag has lasted, is known to a thousandth for each replica. A
sync that did not change the status saw what the one before it saw. Where a status is lost, for another write overtook it or a
failed sync's followed, only what became of the proposal is checked.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

from lab.errors import NoData
from lab.judge.measure import Measure, detail, measure, number
from lab.measure import curves
from lab.model import hpa, hpa_log
from lab.model.hpa import Controller, HpaSpec
from lab.model.hpa_log import Logged
from lab.model.replay import Disagreement, Seen, Sync, may_exist, replay
from lab.record.store import Record
from lab.spec import hpa_quantity
from lab.spec.scale import Scale

_MESSAGES = re.compile(r"s\d+-kafka-")  # the names of metrics that KEDA's kafka trigger makes: whole messages
CROSSING_S = 2.0  # on a loaded machine a watch event arrives so much later than what it tells of was read


class Agreement(Measure):
    """The syncs of a trial's HPA as the model decides them; the words are those of :class:`lab.model.replay.Replay`."""

    syncs = number("syncs", "syncs replayed")
    computed = number("syncs", "syncs whose proposal was worked out too")
    rescaled = number("syncs", "syncs that rescaled")
    at_an_edge = number("syncs", "syncs that agree at an edge of the clock")
    agreement = number("%", "HPA decisions that the model takes too")
    disagreements = detail(tuple[Disagreement, ...], "the syncs that the model decides otherwise")


@measure
def agreement(record: Record) -> Agreement:
    """Replay the trial's syncs; no data for a trial without an HPA or from before its syncs were kept."""
    found = syncs(record)
    if not found:
        raise NoData("no sync of an HPA in the record")
    scale = Scale(**record.trial["inputs"]["scale"])
    again = replay(found, Controller(downscale_stabilization_s=scale.seconds(hpa.DEFAULTS.downscale_stabilization_s)))
    return Agreement(
        syncs=again.syncs,
        computed=again.computed,
        rescaled=again.rescaled,
        at_an_edge=again.at_an_edge,
        agreement=again.agreement,
        disagreements=again.disagreements,
    )


def syncs(record: Record) -> list[Sync]:
    """Every sync of the trial's HPA from its first to the end of the trial, in order."""
    text = curves.controller_log(record)
    end = float(record.trial["times"]["ended"])
    lines = list(hpa_log.parse(text, float(record.trial["begun"])))
    history = _History(record)
    return [history.sync(logged) for logged in hpa_log.syncs(lines) if logged.outcome.t < end]


class _History:
    """What the watches saw of the HPA and of the Deployment, by time."""

    def __init__(self, record: Record) -> None:
        self._hpas = [(t, item) for t, event, item in curves.objects(record, "HorizontalPodAutoscaler") if event != "DELETED"]
        self._times = [t for t, _ in self._hpas]
        self._specs: dict[str, HpaSpec] = {}
        self._existing = [
            (t, int(item.get("status", {}).get("replicas", 0)))
            for t, _, item in curves.objects(record, "Deployment", "consumer")
        ]

    def sync(self, logged: Logged) -> Sync:
        """The sync that these lines tell of."""
        at, outcome, proposal = logged.at, logged.outcome, logged.proposal
        desired = outcome.replicas["desiredReplicas"]
        spec = self._spec(at)
        # The status this sync wrote arrives before the next sync begins; where it wrote none, the last one still stands.
        last = bisect_right(self._times, logged.after) - 1
        status = self._hpas[last][1].get("status", {}) if last >= 0 else {}
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
        item = self._hpas[max(0, bisect_right(self._times, at) - 1)][1]
        key = str(item["metadata"].get("generation")) + str(item["spec"])
        if key not in self._specs:
            self._specs[key] = hpa.parse(item, "the record's HPA")
        return self._specs[key]


def _seen(spec: HpaSpec, status: Mapping[str, Any], counts: Iterable[int]) -> tuple[Seen, ...]:
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


def _totals(status: Mapping[str, Any], name: str, existing: int) -> list[tuple[int, ...] | None]:
    """The totals in thousandths that the metric's average over ``existing`` replicas can be of, None for one that failed.

    For messages one at most; for another metric the greatest and the least, between which there is no decision to speak of.
    """
    told = [one["external"] for one in status.get("currentMetrics") or () if one.get("type") == "External"]
    text = next((one["current"].get("averageValue") for one in told if one["metric"]["name"] == name), None)
    if text is None:
        return [None]
    average = hpa_quantity.milli(hpa_quantity.parse(text))
    most, below = average * existing, (average - 1) * existing
    if average == 0:
        return [(0,)]
    if not _MESSAGES.match(name):
        return [(most,), (below + 1,)] if existing > 1 else [(most,)]
    total = most // 1000 * 1000
    return [(total,)] if below < total else []
