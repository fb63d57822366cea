"""What no fault may make an autoscaler do: leave its bounds, scale to zero while there is lag, or decide wrongly for long."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lab.errors import NoData
from lab.inputs.faults import CONSUMER, CONTROLLERS, EXPORTER, KILL, LAG_SCALER
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.external import PersistentLag
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import Trigger, topic_places
from lab.inputs.triggers.prometheus import Prometheus
from lab.judge.aggregate import largest, total
from lab.judge.measure import quantity
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Comparison
from lab.measure.faults import BACK_S, end_of, injected, ready_again
from lab.measure.scaling import policy_excess
from lab.model import hpa
from lab.model.hpa import Controller
from lab.model.hpa_log import RESCALED, Line, replayed
from lab.record.ages import Floats, Lives
from lab.record.course import ENDED
from lab.record.store import Record
from lab.record.tables import Watched
from lab.record.trial import Fault

SYNCS = 3  # of an HPA, from then on until it decides as the model does
FEEDS = {LAG_SCALER: PersistentLag, EXPORTER: Prometheus}  # pods without which such a trigger has no value
LOGGED_S = 1.0  # between a step in the HPA's log and the watch of it, either way
RECENT_S = 2.0  # a step to 0 is seen so late after the poll that it is decided by, and lag is scraped twice a second


@quantity("steps", "steps to no replica while there was lag")
def stranded(record: Record) -> float:
    """Steps to no replica while more messages waited than a trigger takes for none, at each moment of the 2 s before.

    A message waits from its own time to its first receipt or dead letter, by the log and the receipts themselves. Nothing that
    is struck can hide it. Without a ledger or receipts lag is what was scraped in these 2 s, and so it is on the partitions of
    a trigger that counts only some. There is no data for a trial without a schedule, for such a step of which neither is
    known, and where the watch saw no such step, but not every change.
    """
    injected(record)
    steps = [change.t for change in record.scalings if not change.after]
    try:
        least: Sequence[float] = fewest_waiting(record.lives_of_events(), steps)
    except NoData:
        least = [_least_scraped(record, t) for t in steps]
    found = sum(_active(record, t, waiting) for t, waiting in zip(steps, least, strict=True))
    return found or _if_all_was_seen(record)


@quantity("pods", "replicas wanted outside of the policy's bounds")
def outside_bounds(record: Record) -> float:
    """Those of :func:`policy_excess`; no data where the watch saw none, but not every change."""
    return policy_excess(record).outside_bounds.number or _if_all_was_seen(record)


def _if_all_was_seen(record: Record) -> float:
    """0, or :class:`NoData` where a change of the consumer's replicas is not known: each makes a generation of its owner.

    The watch misses some while the API server is away. They are known where the HPA's log has them all, and each within bounds.
    Of an object that does not tell its generation nothing is said.
    """
    owner = record.watched(record.inputs.workload.pod_owner, CONSUMER)
    there = [one for one in owner if one.t <= record.trial.times.get(ENDED, math.inf)]
    changes = [(*pair, steps) for pair in pairwise(there) if (steps := _generations(*pair))]
    if missed := [change for change in changes if change[2] > 1]:
        lines = _rescaled(record)
        for change in changes:
            if change not in missed:
                _take(lines, *change)
        bounds = range(max(1, record.policy.min_replicas), record.policy.max_replicas + 1)
        for change in missed:
            counts = _take(lines, *change)
            if not counts or not all(count in bounds for count in counts):
                raise NoData("the watch did not see every change of the replicas")
    return 0


def _generations(before: Watched, after: Watched) -> int:
    """How often the owner was changed from the one to the other; 0 where that is not known, or it is another one."""
    one, other = (each.object.get("metadata", {}) for each in (before, after))
    if None in (one.get("generation"), other.get("generation")) or one.get("uid") != other.get("uid"):
        return 0
    return int(other["generation"] - one["generation"])


def _rescaled(record: Record) -> list[Line]:
    """The lines of the HPA's log that are changes of the replicas; none without a log."""
    try:
        return [line for line in record.hpa_lines if line.words == RESCALED]
    except NoData:
        return []


def _take(lines: list[Line], before: Watched, after: Watched, steps: int) -> list[int]:
    """Take from ``lines`` those that lead from ``before`` to ``after`` in so many ``steps``; no line stands for two changes.

    Returns the replicas after each step; none where no lines lead there.
    """
    first, last = (one.object["spec"]["replicas"] for one in (before, after))
    near = [place for place, line in enumerate(lines) if before.t - LOGGED_S < line.t < after.t + LOGGED_S]
    for begin in range(len(near) - steps + 1):
        places = near[begin : begin + steps]
        counts = [first, *(lines[place].replicas["desiredReplicas"] for place in places)]
        found = [lines[place].replicas["currentReplicas"] for place in places]
        if found == counts[:-1] and counts[-1] == last:
            del lines[places[0] : places[-1] + 1]
            return counts[1:]
    return []


@quantity("s", "time from the last fault to decisions that the model takes too", UNSCALED)
def back_s(record: Record) -> float:
    """From the end of the last fault to the HPA's first sync from which on the model decides each as the controller did.

    A fault of a pod that a trigger's value comes from is over when that is Ready (:func:`lab.measure.faults.ready_again`).
    A controller that was started anew remembers nothing. It is not back while it decides nothing for a sync and the time that
    a component has to come back, unless the policy goes to zero, where none decides. There is no data for a trial without a
    schedule or without an HPA, and where the HPA's last sync is none that the model decides too, or long before the end.
    """
    ends = [(_over(record, one), one) for one in injected(record)]
    over = max((t for t, _ in ends), default=record.driven)
    begun = max((t for t, one in ends if (one.component, one.fault) == (CONTROLLERS, KILL)), default=-math.inf)
    controller = Controller(downscale_stabilization_s=record.scale.seconds(hpa.DEFAULTS.downscale_stabilization_s))
    syncs = replayed([one for one in record.hpa_syncs if one.at > begun], controller)
    found = [(one.sync.at - over, one.agrees) for one in syncs if one.sync.at > over]
    apart = [place for place, (_, agrees) in enumerate(found) if not agrees]
    if record.policy.min_replicas > 0:
        times = [*(at for at, _ in found), record.end - over]
        apart += [place for place, (one, other) in enumerate(pairwise(times)) if other - one > BACK_S + record.scale.hpa_sync_s]
    back = 1 + max(apart, default=-1)
    if back == len(found):
        raise NoData("after the last fault the HPA decided nothing, or at last otherwise than the model")
    return found[back][0]


def _triggers(record: Record) -> Sequence[Trigger]:
    return record.policy.triggers if isinstance(record.policy, ScaledObject) else ()


def _over(record: Record, one: Fault) -> float:
    feeds = FEEDS.get(one.component)
    ready = ready_again(record, one) if feeds and any(isinstance(each, feeds) for each in _triggers(record)) else None
    return end_of(one) if ready is None else max(end_of(one), ready)


@quantity("syncs", "syncs before decisions that the model takes too, once all had time to come back")
def late(record: Record) -> float:
    """The syncs of the HPA in :func:`back_s`, beyond the 15 s that a component has to come back; no data like that."""
    return max(0.0, back_s(record).number - BACK_S) / record.scale.hpa_sync_s


def fewest_waiting(lives: Iterable[Lives], times: Sequence[float]) -> list[int]:
    """The fewest messages that waited at any moment from RECENT_S before to each of ``times`` (epoch s). Pure."""
    held: list[list[Floats]] = [[np.empty((2, 0))] for _ in times]
    for at, done in lives:
        for t, own in zip(times, held, strict=True):
            own.append(np.stack((at, done))[:, (at <= t) & (done > t - RECENT_S)])
    found = []
    for t, own in zip(times, held, strict=True):
        at, done = np.sort(np.concatenate(own, axis=1))
        moments = np.append(done[done <= t], t - RECENT_S)  # they are fewest once some are done, or to begin with
        waiting = np.searchsorted(at, moments, side="right") - np.searchsorted(done, moments, side="right")
        found.append(int(waiting.min()))
    return found


def _least_scraped(record: Record, t: float, counted: Collection[int] | None = None) -> float:
    """The least lag that was scraped in the time before ``t``, of the partitions that are ``counted``; None for all."""
    if counted is None:
        seen, lacking = record.lag, "no ledger, and no sample of lag"
    else:
        lags, lacking = record.partition_lag, "no sample of the lag that a trigger counts"
        seen = lags[lags["partition"].isin(list(counted))].groupby("t")["lag"].sum().reset_index()
    recent = seen[seen["t"].between(t - RECENT_S, t)]
    if recent.empty:
        raise NoData(f"{lacking} in the {RECENT_S:g} s before a step to no replica")
    return float(recent["lag"].min())


def _active(record: Record, t: float, waiting: float) -> bool:
    """Whether a trigger on lag was active before ``t``, when so many messages were ``waiting``; without one, any are lag.

    There is no data for a trigger that is active from an age on.
    """
    topics, triggers = record.inputs.workload.topics, _triggers(record)
    kinds = (Kafka, PersistentLag)
    on_lag = [(one, place) for one, place in zip(triggers, topic_places(triggers), strict=True) if isinstance(one, kinds)]
    for one, place in on_lag:
        counted = one.partitions
        activation = one.activation if isinstance(one, Kafka) else one.settings.rule.activation
        if activation and isinstance(one, PersistentLag) and one.settings.rule.ages:
            raise NoData("a trigger is active from an age on, and not from a number of messages")
        if topics > 1 and place is not None:
            each = record.inputs.partitions // topics
            counted = frozenset(place * each + number for number in counted or range(each) if number < each)
        if waiting > activation and (counted is None or _least_scraped(record, t, counted) > activation):
            return True
    return not on_lag and waiting > 0


def invariants(records: Sequence[Any]) -> Iterator[tuple[Comparison, str]]:
    """What must hold of the replicas in ``records``, the runs of trials with a schedule of faults, each with its sentence."""
    outside = total(map(outside_bounds, records))
    yield outside == 0, "the replicas stay within the policy's bounds, whatever is struck"
    yield total(map(stranded, records)) == 0, "no group is scaled to zero while there is lag"
    if all(run.policy.hpa for runs in records for run in runs):
        yield (
            largest(map(late, records)) <= SYNCS,
            f"{BACK_S:g} s and {SYNCS} syncs after the last fault, or its scaler is Ready, the HPA decides as the model does",
        )
