"""Faults: what a trial's schedule of faults did to its messages, in Jepsen's words, and to what decides its replicas."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lab.errors import NoData
from lab.inputs.faults import BROKER, CONSUMER, CONTROLLERS, CUT, KILL, STOP, STORE, TERMINATE
from lab.inputs.inputs import PRODUCER
from lab.inputs.scaledobject import ScaledObject
from lab.inputs.triggers.kafka import Kafka
from lab.inputs.triggers.parsing import topic_places
from lab.judge.aggregate import largest, total
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Comparison
from lab.measure.commits import BACK_S, between_s, commits, commits_of, uncommitted_since
from lab.measure.delivery import Delivery, delivery
from lab.measure.kills import Loss, buried_again, explained
from lab.measure.rebalance import rebalance_spans
from lab.measure.scaling import policy_excess
from lab.model import hpa
from lab.model.hpa import Controller
from lab.model.hpa_log import RESCALED, replayed
from lab.record.ages import Floats, Lives
from lab.record.course import ENDED
from lab.record.reports import GIVEN, TAKEN, Report, reports
from lab.record.store import Record
from lab.record.tables import Watched
from lab.record.trial import Fault

SYNCS = 3  # of an HPA, from then on until it decides as the model does
LOST = "lost"  # how a member reports that it was given up, and its partitions with it
LOGGED_S = 1.0  # between a step in the HPA's log and the watch of it, either way
RECENT_S = 2.0  # a step to 0 is seen so late after the poll that it is decided by, and lag is scraped twice a second
SOURCE = "the schedule of faults (lab.inputs.faults)"


class UnderFaults(Measure):
    """What became of the messages of a trial with a schedule of faults. Words and counts are those of :class:`Delivery`.

    A further dead letter about a message is a copy, too.

    ``unexplained`` are copies of messages that no fault explains. A fault of a consumer explains one copy of each message that
    was in flight then: the pod had processed it and the group had not committed it, so another one did it later. Of a consumer
    that was stopped, or cut off from the broker, that goes on until it notices that its partitions are lost. A consumer dies of
    a store that is killed. One that is told to end and has its grace drains: nothing of it is in flight. ``given_up`` are the
    copies that are explained by a member that nobody struck, and that the group gave up all the same, or whose last commit it
    refused. ``oldest_s`` is the age of the oldest at its fault. ``omitted`` are injections that were planned, and found
    nothing to strike or never came. An acknowledged event that the log lacks is lost.
    """

    injected = number("faults", "faults injected")
    omitted = number("faults", "faults planned and not injected")
    lost = number("messages", "messages lost")
    unseen = number("messages", "messages never reached")
    unknown = number("events", "events of unknown or failed fate")
    copies = number("messages", "further copies of messages")
    given_up = number("messages", "copies of messages of members that were not struck and that the group gave up")
    unexplained = number("messages", "copies of messages that nothing explains")
    oldest_s = number("s", "age of the oldest message reprocessed because of a fault", UNSCALED)


@measure
def under_faults(record: Record) -> UnderFaults:
    """Account for the messages; no data for a trial without a schedule, and like :func:`delivery`."""
    struck, found, seen = injected(record), delivery(record), commits(record)
    by_faults = explained(record, own := list(losses(record)), seen)
    known = explained(record, every := [*own, *fenced(record, own)], seen)
    letters, all_letters = buried_again(record, own), buried_again(record, every)
    return UnderFaults(
        injected=len(struck),
        omitted=len(record.inputs.faults) - len(struck),
        lost=found.lost.number + _vanished(record, found),
        unseen=found.unseen.number,
        unknown=found.unknown_or_failed.number,
        copies=found.copies.number,
        given_up=known.copies + all_letters - by_faults.copies - letters,
        unexplained=found.copies.number - known.copies - all_letters,
        oldest_s=by_faults.oldest_s,
    )


def _vanished(record: Record, found: Delivery) -> float:
    """The acknowledged events that the log lacks. Without a hole at their place no ledger misses them."""
    if record.inputs.driver != PRODUCER:
        return 0  # it may send more than it has told
    return max(0, found.acked.number - (found.stored.number - record.reconciliation.resent))


def injected(record: Record) -> list[Fault]:
    """The faults of the schedule that struck. Raises :class:`NoData` for a trial without a schedule."""
    if not record.inputs.faults:
        raise NoData("the trial has no schedule of faults")
    return [one for one in record.trial.faults if one.injection is not None and not one.skipped]


def losses(record: Record) -> Iterator[Loss]:
    """What each fault may have kept from being committed by a consumer, in order.

    That is nothing of before the pod's last fault, nor of what it had committed by then as far as its commits tell.
    """
    given_up = [one for one in record.handovers if one.event in TAKEN]
    started = record.reports("started")
    since: dict[str, float] = {}
    for one in sorted(record.trial.faults, key=lambda fault: fault.t):
        for pod, until in _victims(record, one, given_up, started):
            yield Loss(pod, one.t, max(since.get(pod, -math.inf), uncommitted_since(record, pod, one.t)), until)
            since[pod] = until


def _victims(record: Record, one: Fault, given_up: Sequence[Report], started: Sequence[Report]) -> Iterator[tuple[str, float]]:
    """The consumers that a fault kept from committing, and until when each went on without."""
    if one.skipped:
        return
    if (one.component, one.fault) == (STORE, KILL):  # each ends at its next write, and starts anew
        left = {told.pod for told in record.reports("left") if told.t <= one.t}
        for pod in record.owners(one.t).keys() - left:
            yield pod, next((told.t for told in started if told.pod == pod and told.t > one.t), one.t)
    elif one.component == CONSUMER and one.pod is not None and one.fault in (KILL, STOP, CUT, TERMINATE):
        until = one.t if one.until is None else one.until
        noticed = [told for told in given_up if told.pod == one.pod and told.t > one.t]
        if one.fault == STOP:
            until = next((told.t for told in noticed if told.event == LOST and until < told.t < until + BACK_S), until)
        if one.fault == CUT:  # its client gives up by itself, or learns of it afterwards
            until = next((told.t for told in noticed if told.event == LOST and told.t < until + BACK_S), until)
        yield one.pod, until


def fenced(record: Record, by_faults: Sequence[Loss]) -> Iterator[Loss]:
    """What each member had in flight whose partitions went without a commit, and that no fault of its own explains already.

    Either the group gave it up, or refused the commit with which it handed them over. Its commits were taken until a
    rebalance began after its last assignment: the one in which another was given one of the partitions, or a commit was
    refused: when it was asked for, where the member reports that. It commits when an interval is over and it is through with
    what it took. Of two such times the one is that of a commit that was under way. While a broker is away none is answered.
    """
    each_s = between_s(record)
    known = {(one.pod, one.until) for one in by_faults}
    struck = (one for one in record.trial.faults if one.component == BROKER and not one.skipped)
    outages = [(one.t, (one.until or one.t) + BACK_S) for one in struck]  # it may coordinate the group
    refused, spans = record.reports("commit_failed"), rebalance_spans(record)
    for gone in record.handovers:
        if gone.event == GIVEN or (gone.pod, gone.t) in known:
            continue
        given = [one for one in record.handovers if one.event == GIVEN and one.pod == gone.pod and one.t < gone.t]
        told = [one.t for one in given if set(one.partitions) & set(gone.partitions)]  # an empty one commits nothing
        since = max(told, default=-math.inf)
        own = [one for one in refused if one.pod == gone.pod and since < one.t <= gone.t]
        if gone.event != LOST and not (own and _refused(record, gone)):
            continue
        first = min((one.t - one.seconds for one in own), default=gone.t)
        over = min(first, _taken_over(record, gone, since))
        begun = next((start for start, end in spans if start <= over <= end), over)
        away = [t for t, back in outages if back >= max(since, begun) - 2 * each_s]
        yield Loss(gone.pod, first, max(since, min([begun, *away])) - 2 * each_s, gone.t)


def _taken_over(record: Record, gone: Report, since: float) -> float:
    """When another was first given a partition of ``gone`` after that had been given it, at ``since``; else ``gone.t``."""
    given = (one for one in record.handovers if one.event == GIVEN and since < one.t)
    return next((one.t for one in given if set(one.partitions) & set(gone.partitions)), gone.t)


def _refused(record: Record, gone: Report) -> bool:
    """Whether a member handed partitions over right after the commit of one of them was refused."""
    events = record.group_events
    own = events[(events["pod"] == gone.pod) & (events["t"] < gone.t)].sort_values("t", kind="stable")
    last = reports(own.tail(1), ["commit_failed"])
    return any(set(one.partitions) & set(gone.partitions) for one in last)


@quantity("receipts", "receipts of a member that went back in a partition that it had kept")
def went_back(record: Record) -> int:
    """Receipts that do not come after the last one of their pod and partition, unless the pod was given that anew in between.

    In Jepsen's words these are non-monotonic polls. A copy that another member made is none. There is no data for a trial
    without a schedule.
    """
    injected(record)
    seen = record.receipts.sort_values(["pod", "partition", "start", "first"], kind="stable")
    before = seen[["pod", "partition", "start", "last"]].shift()
    back = (seen["pod"] == before["pod"]) & (seen["partition"] == before["partition"]) & (seen["first"] <= before["last"])
    columns = seen["pod"], seen["partition"], before["start"], seen["start"]
    given = [one for one in record.handovers if one.event == GIVEN]
    return sum(
        not any(one.pod == pod and part in one.partitions and since < one.t <= start for one in given)
        for pod, part, since, start in zip(*(column[back].tolist() for column in columns), strict=True)
    )


@quantity("messages", "messages by which a committed offset was seen to go back")
def commits_went_back(record: Record) -> int:
    """The most of any partition. A member that comes back commits nothing of what it lost: brokers fence it by its generation.

    It is a bound from below (:mod:`lab.measure.commits`), with no data like there, and for a trial without a schedule.
    """
    injected(record)
    return max((one.fallen for one in commits_of(record, range(record.inputs.partitions)).values()), default=0)


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
    for before, after in pairwise(there):
        one, other = (each.object.get("metadata", {}) for each in (before, after))
        if None in (one.get("generation"), other.get("generation")) or one.get("uid") != other.get("uid"):
            continue
        if (steps := other["generation"] - one["generation"]) > 1 and not _are_logged(record, before, after, steps):
            raise NoData("the watch did not see every change of the replicas")
    return 0


def _are_logged(record: Record, before: Watched, after: Watched, steps: int) -> bool:
    """Whether the HPA's log leads from ``before`` to ``after`` in so many ``steps``, all within bounds and none to 0."""
    try:
        lines = [
            line for line in record.hpa_lines if line.words == RESCALED and before.t - LOGGED_S < line.t < after.t + LOGGED_S
        ]
    except NoData:
        return False
    first, last = (one.object["spec"]["replicas"] for one in (before, after))
    bounds = range(max(1, record.policy.min_replicas), record.policy.max_replicas + 1)
    for begin in range(len(lines) - steps + 1):
        counts = [first, *(line.replicas["desiredReplicas"] for line in lines[begin : begin + steps])]
        found = [line.replicas["currentReplicas"] for line in lines[begin : begin + steps]]
        if found == counts[:-1] and counts[-1] == last and all(count in bounds for count in counts[1:]):
            return True
    return False


@quantity("s", "time from the last fault to decisions that the model takes too", UNSCALED)
def back_s(record: Record) -> float:
    """From the end of the last fault to the HPA's first sync from which on the model decides each as the controller did.

    A controller that was started anew remembers nothing. There is no data for a trial without a schedule or without an HPA, and
    where the HPA's last sync is none that the model decides too.
    """
    ends = [(one.t if one.until is None else one.until, one) for one in injected(record)]
    over = max((t for t, _ in ends), default=record.driven)
    begun = max((t for t, one in ends if (one.component, one.fault) == (CONTROLLERS, KILL)), default=-math.inf)
    controller = Controller(downscale_stabilization_s=record.scale.seconds(hpa.DEFAULTS.downscale_stabilization_s))
    syncs = replayed([one for one in record.hpa_syncs if one.at > begun], controller)
    found = [(one.sync.at - over, one.agrees) for one in syncs if one.sync.at > over]
    back = 1 + max((place for place, (_, agrees) in enumerate(found) if not agrees), default=-1)
    if back == len(found):
        raise NoData("after the last fault the HPA decided nothing, or at last otherwise than the model")
    return found[back][0]


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
    """Whether a trigger on lag was active before ``t``, when so many messages were ``waiting``; without one, any are lag."""
    policy, topics = record.policy, record.inputs.workload.topics
    triggers = policy.triggers if isinstance(policy, ScaledObject) else ()
    on_lag = [(one, place) for one, place in zip(triggers, topic_places(triggers), strict=True) if isinstance(one, Kafka)]
    for one, place in on_lag:
        counted = one.partitions
        if topics > 1 and place is not None:
            each = record.inputs.partitions // topics
            counted = frozenset(place * each + number for number in counted or range(each) if number < each)
        if waiting > one.activation and (counted is None or _least_scraped(record, t, counted) > one.activation):
            return True
    return not on_lag and waiting > 0


def invariants(records: Sequence[Any]) -> Iterator[tuple[Comparison, str]]:
    """What must hold beside at-least-once in ``records``, the runs of trials with such a schedule, each with its sentence."""
    unexplained = total(under_faults(one).unexplained for one in records)
    yield unexplained == 0, "each copy was in flight at a fault, or at a member that the group gave up or refused"
    yield total(map(went_back, records)) == 0, "no member goes back in a partition that it keeps"
    if not any(run.inputs.brokers for runs in records for run in runs):
        back = total(map(commits_went_back, records))
        yield back == 0, "no committed offset goes back: a member that was given up commits nothing"
    outside = total(map(outside_bounds, records))
    yield outside == 0, "the replicas stay within the policy's bounds, whatever is struck"
    yield total(map(stranded, records)) == 0, "no group is scaled to zero while there is lag"
    if all(run.policy.hpa for runs in records for run in runs):
        yield (
            largest(map(late, records)) <= SYNCS,
            f"{BACK_S:g} s and {SYNCS} syncs after the last fault the HPA decides as the model does",
        )
