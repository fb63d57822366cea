"""Faults: what a trial's schedule of faults did to its messages, in Jepsen's words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from lab.errors import NoData
from lab.inputs.faults import CONSUMER, CUT, KILL, PODS, STOP, STORE, TERMINATE
from lab.inputs.inputs import PRODUCER
from lab.judge.aggregate import total
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.judge.quantity import Comparison
from lab.measure.commits import commits, commits_of
from lab.measure.delivery import Delivery, delivery
from lab.measure.kills import Loss, buried_again, explained
from lab.record.reports import GIVEN, TAKEN, Report, reports
from lab.record.store import Record
from lab.record.trial import Fault

BACK_S = 15.0  # by which a component that was struck works again: it starts in 3 s on a quiet machine
LOST = "lost"  # how a member reports that it was given up, and its partitions with it
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
    """Account for the messages; no data without a schedule, for copies whose commits nobody saw, and like :func:`delivery`."""
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


def end_of(one: Fault) -> float:
    """When a fault was over, epoch s; one that takes no time is over as it begins."""
    return one.t if one.until is None else one.until


def ready_again(record: Record, one: Fault) -> float | None:
    """When the pod that a fault struck was Ready again, epoch s; None where it was not seen to be anything else.

    A container that ends is started anew after 10 s, and after twice as long each time that it ends again, up to 300 s
    (https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#restart-policy).
    """
    if one.component in PODS:
        with suppress(NoData):
            seen = sorted(at for pod in record.pods_of(one.component).values() for at in pod.readiness if at[0] > one.t)
            down = next((at for at, ready in seen if not ready), math.inf)
            if down <= end_of(one) + BACK_S:
                return next((at for at, ready in seen if ready and at > down), record.end)
    return None


def losses(record: Record) -> Iterator[Loss]:
    """What each fault may have kept from being committed by a consumer, in order: nothing of before the pod's last fault."""
    given_up = [one for one in record.handovers if one.event in TAKEN]
    started = record.reports("started")
    since: dict[str, float] = {}
    for one in sorted(record.trial.faults, key=lambda fault: fault.t):
        for pod, until in _victims(record, one, given_up, started):
            yield Loss(pod, one.t, since.get(pod, -math.inf), until)
            since[pod] = until


def _victims(record: Record, one: Fault, given_up: Sequence[Report], started: Sequence[Report]) -> Iterator[tuple[str, float]]:
    """The consumers that a fault kept from committing, and until when each went on without."""
    if one.skipped:
        return
    if (one.component, one.fault) == (STORE, KILL):  # each ends at its next write, and starts anew
        left = {told.pod for told in record.reports("left") if told.t <= one.t}
        back = end_of(one) + BACK_S
        for pod in record.owners(one.t).keys() - left:
            yield pod, next((told.t for told in started if told.pod == pod and one.t < told.t < back), one.t)
    elif one.component == CONSUMER and one.pod is not None and one.fault in (KILL, STOP, CUT, TERMINATE):
        until = end_of(one)
        noticed = [told for told in given_up if told.pod == one.pod and told.t > one.t]
        if one.fault == STOP:
            until = next((told.t for told in noticed if told.event == LOST and until < told.t < until + BACK_S), until)
        if one.fault == CUT:  # its client gives up by itself, or learns of it afterwards
            until = next((told.t for told in noticed if told.event == LOST and told.t < until + BACK_S), until)
        yield one.pod, until


def fenced(record: Record, by_faults: Sequence[Loss]) -> Iterator[Loss]:
    """What each member had in flight whose partitions went without a commit, and that no fault of its own explains already.

    Either the group gave it up, or refused the commit with which it handed them over. Since its last assignment its commits
    were taken until another was given one of the partitions, or one was refused: when it was asked for, where the member
    reports that.
    """
    known = {(one.pod, one.until) for one in by_faults}
    refused = record.reports("commit_failed")
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
        yield Loss(gone.pod, min(first, _taken_over(record, gone, since)), since, gone.t)


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

    There is no data like :func:`commits_of`, and for a trial without a schedule.
    """
    injected(record)
    partitions = range(record.inputs.partitions_after or record.inputs.partitions)
    return max((one.fallen for one in commits_of(record, partitions).values()), default=0)


def invariants(records: Sequence[Any]) -> Iterator[tuple[Comparison, str]]:
    """What must hold of copies and commits in ``records``, the runs of trials with a schedule, each with its sentence."""
    unexplained = total(under_faults(one).unexplained for one in records)
    yield unexplained == 0, "each copy was in flight at a fault, or at a member that the group gave up or refused"
    yield total(map(went_back, records)) == 0, "no member goes back in a partition that it keeps"
    back = total(map(commits_went_back, records))
    yield back == 0, "no committed offset goes back: a member that was given up commits nothing"
