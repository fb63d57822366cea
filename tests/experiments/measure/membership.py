"""Membership: how partitions are spread over pods, what a rolling restart costs, and standstills when a member goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from lab.errors import NoData
from lab.inputs.events import Restart
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.rebalance import GAP_S
from lab.measure.throughput import Throughput
from lab.record.reports import GIVEN, Report
from lab.record.store import Record

BEFORE_S, SECOND_S = 2.0, 1.0  # the rate before is a mean over less noise than one second has
AFTER_S = 5.0  # after the restart: the time that an objective gives a group to recover
_LEAVING, _JOINING = "draining", "subscribed"


class RollingRestart(Measure):
    """A rolling restart, from its event until 5 s after the last new pod was Ready, or the profile's end.

    ``restarted`` are the processes that started. ``seconds`` is until all new pods were Ready, ``settled_s`` until the last
    handover. A member's own restart is two handovers of its own: it gives up its partitions as it closes, and it is given
    its first when it has joined. ``rebalances`` are the runs of all other handovers, with no pause of more than a second:
    members that stay take part in them. ``moved`` counts a partition each time that a pod of another name takes it.
    ``depth_1s`` is the share (0 to 1) that the worst rolling second lacks of the mean rate of the 2 s before. That is no
    :class:`lab.measure.dip.Dip`: a group that is not saturated has no backlog to be judged by.
    ``standstill_s`` is the longest time in which no message of some partition was processed.
    """

    restarted = number("pods", "pods restarted")
    seconds = number("s", "time until every restarted pod was Ready", UNSCALED)
    settled_s = number("s", "time until the last handover of a rolling restart", UNSCALED)
    rebalances = number("rebalances", "rebalances of members that stayed, in a rolling restart")
    moved = number("partitions", "partitions that another pod took in a rolling restart")
    depth_1s = number("of the rate before", "dip of a rolling restart, in a rolling second")
    standstill_s = number("s", "longest standstill of a partition in a rolling restart", UNSCALED)


@measure
def rolling_restart(record: Record, phase: str) -> RollingRestart:
    """Measure the restart in ``phase``. There is no data without one, without receipts, and where nothing was done before."""
    row = _row(record, phase, Restart.name)
    start, end = row["t"], min(row["until"] + AFTER_S, _over(record))
    done = Throughput(record.receipts)
    before = done.rate(start - BEFORE_S, start)
    _, rates = done.rolling(start, end, SECOND_S)
    if not before > 0 or not len(rates):
        raise NoData(f"nothing was processed before the restart in phase {phase}, or the profile ended with it")
    handovers = [change for change in record.handovers if start <= change.t <= end]
    others = [change.t for change in handovers if not _own(record, change)]
    return RollingRestart(
        restarted=sum(start <= one.t <= end for one in record.reports("started")),
        seconds=row["until"] - start,
        settled_s=handovers[-1].t - start if handovers else None,
        rebalances=bool(others) + sum(later - earlier > GAP_S for earlier, later in pairwise(others)),
        moved=_moved(record.handovers, start, end),
        depth_1s=max(0.0, 1 - float(rates.min()) / before),
        standstill_s=_standstill(record, start, end),
    )


class Spread(Measure):
    """Partitions by pod at one moment, of the pods that own any."""

    fewest = number("partitions", "fewest partitions of a pod that owns any")
    most = number("partitions", "most partitions of a pod")


@measure
def spread(record: Record, phase: str) -> Spread:
    """Count the partitions of each pod as ``phase`` ends. There is no data when no pod owns any then."""
    _, end = record.span(phase)
    counts = [len(owned) for owned in record.owners(end).values() if owned]
    if not counts:
        raise NoData(f"no pod owns a partition at the end of phase {phase}")
    return Spread(fewest=min(counts), most=max(counts))


@quantity("s", "longest standstill of a partition after an event", UNSCALED)
def standstill(record: Record, phase: str) -> float:
    """The longest time, s, in which no message of some partition was processed, from the event of ``phase`` on.

    It ends with the next event, or the profile. A partition that still stands then counts up to there; one that never had a
    receipt does not count. There is no data without an event in that phase, or without receipts.
    """
    start = _row(record, phase)["t"]
    later = [row["t"] for row in record.trial.events if row["t"] > start]
    return _standstill(record, start, min([_over(record), *later]))


def _row(record: Record, phase: str, name: str | None = None) -> dict[str, Any]:
    """The first event of ``phase``, of this ``name`` if one is given."""
    for row in record.trial.events:
        if row["phase"] == phase and name in (None, row["event"]):
            return row
    raise NoData(f"no {name or 'event'} in phase {phase}")


def _over(record: Record) -> float:
    """When the profile was through: a group without traffic stands still for no fault of its own."""
    return record.profile_start + record.profile.duration


def _own(record: Record, change: Report) -> bool:
    """Whether ``change`` is of a member's own restart: it gives up as it leaves, or is given for the first time."""
    return any(start <= change.t <= end for start, end in _restarts(record, change.pod))


def _restarts(record: Record, pod: str) -> Iterator[tuple[float, float]]:
    """(leaving, first partitions after joining again) of each time that ``pod`` was away; inf where none came."""
    began: float | None = None
    joining = False
    for one in sorted(record.reports(_LEAVING, _JOINING, GIVEN), key=lambda report: report.t):
        if one.pod != pod:
            continue
        if one.event == _LEAVING:
            began, joining = one.t, False
        elif one.event == _JOINING:
            began, joining = one.t if began is None else began, True
        elif joining and began is not None and one.partitions:
            yield began, one.t
            began, joining = None, False
    if began is not None:
        yield began, float("inf")


def _moved(changes: Sequence[Report], start: float, end: float) -> int:
    owner: dict[int, str] = {}
    moved = 0
    for change in changes:
        for partition in change.partitions if change.event == GIVEN and change.t <= end else ():
            moved += change.t >= start and owner.get(partition, change.pod) != change.pod
            owner[partition] = change.pod
    return moved


def _standstill(record: Record, start: float, end: float) -> float:
    receipts = record.receipts
    if receipts.empty:
        raise NoData("no receipts")
    longest = 0.0
    for _, own in receipts.sort_values("start").groupby("partition"):
        ended = np.maximum.accumulate(own["end"].to_numpy(dtype=float))
        began = np.append(own["start"].to_numpy(dtype=float)[1:], end)
        longest = max(longest, float((np.minimum(began, end) - np.maximum(ended, start)).max()))
    return longest
