"""Rebalances: their number, lengths and rounds, the partitions that they moved, and how long those waited for their new owner.

A round is one JoinGroup barrier of a classic group, from its cause until its members were given their assignment. Every member
of a cooperative group is given an assignment at the end of each round, even an empty one. So assignments come in clusters, and
a cluster is the end of a round. A round that revoked something is followed by another at once. To the members both are one
rebalance, and :func:`rebalances` counts them as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

import numpy as np

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.throughput import Array, Span
from lab.record.course import ENDED
from lab.record.reports import GIVEN, Report
from lab.record.store import Record

GAP_S = 1.0  # members learn of a rebalance by their heartbeat of 500 ms; with the default of 3 s one would count as several
CLUSTER_S = 0.35  # the members of one round are given their assignments within this time


class Rebalances(Measure):
    """Rebalances after the baseline had settled: their number, their lengths, and the partitions handed over.

    They are counted until the trial's end, as the group is taken down then.
    A rebalance is a run of handovers of any members, in which none comes more than a second after the one before. Its length
    is from its first handover to its last, so it leaves out the members' wait before the first. It may take several rounds.
    Without any rebalance ``median_s`` and ``longest_s`` are missing.
    """

    rebalances = number("rebalances", "rebalances")
    median_s = number("s", "median length of a rebalance", UNSCALED)
    longest_s = number("s", "longest rebalance", UNSCALED)
    total_s = number("s", "time spent in rebalances", UNSCALED)
    revoked = number("partitions", "partitions taken from a member")
    assigned = number("partitions", "partitions assigned to a member")
    commits_refused = number("commits", "commits that the group refused")


@measure
def rebalances(record: Record) -> Rebalances:
    """Count the rebalances from when the producer was applied to the trial's end. There is no data when it never was."""
    driven, over = record.driven, _over(record)
    lengths = [end - start for start, end in rebalance_spans(record, driven, over)]
    moved = {"assigned": 0, "revoked": 0, "lost": 0}
    for change in _within(record, driven, over):
        moved[change.event] += len(change.partitions)
    events = record.group_events
    return Rebalances(
        rebalances=len(lengths),
        median_s=median(lengths) if lengths else None,
        longest_s=max(lengths, default=None),
        total_s=sum(lengths),
        revoked=moved["revoked"] + moved["lost"],
        assigned=moved["assigned"],
        commits_refused=int(((events["event"] == "commit_failed") & events["t"].between(driven, over)).sum()),
    )


def rebalance_spans(record: Record, start: float = -math.inf, end: float = math.inf) -> list[Span]:
    """(first, last handover) of every rebalance among the handovers from ``start`` to ``end``, in epoch s."""
    return _runs(np.array([change.t for change in _within(record, start, end)]), GAP_S)


def _over(record: Record) -> float:
    """When the trial ended, epoch s: the group is taken down then. One that never ended has no such time."""
    return record.trial.times.get(ENDED, math.inf)


def _within(record: Record, start: float = -math.inf, end: float = math.inf) -> list[Report]:
    return [change for change in record.handovers if start <= change.t <= end]


@dataclass(frozen=True)
class Round:
    """One round: its length in s, whether it followed a round that revoked, and how many members joined in it."""

    seconds: float
    chained: bool
    joins: int


def rebalance_rounds(record: Record) -> list[Round]:
    """The rounds from when the producer was applied to the trial's end. Raises :class:`NoData` when it never was."""
    driven = record.driven
    events = record.group_events
    events = events[events["t"] <= _over(record)]

    def times(name: str) -> Array:
        return np.sort(events[events["event"] == name]["t"].to_numpy(dtype=float))

    joined, left, revoked = times("subscribed"), times("left"), times("revoked")
    found: list[Round] = []
    before = driven
    for first, last in _runs(times("assigned"), CLUSTER_S):
        if first < driven:
            continue
        chained = bool(((revoked > before - CLUSTER_S) & (revoked < before + CLUSTER_S)).any())
        causes = [t for t in (*joined, *left) if before < t < first]
        begun = before if chained else min(causes, default=None)
        if begun is not None:
            found.append(Round(first - begun, chained, int(((joined >= begun) & (joined < first)).sum())))
        before = last
    return found


@quantity("rounds", "rebalance rounds")
def round_count(record: Record) -> int:
    """The number of rounds from when the producer was applied to the trial's end. There is no data when it never was."""
    return len(rebalance_rounds(record))


class GainedWait(Measure):
    """How long partitions wait that a member gains beside those it keeps: from its report until its first receipt of each.

    A member works off what it has fetched, and a partition that it gains comes after that. Counted are the gains since the
    producer was applied, by members that owned others at that moment: so none of a new member, and none of an eager group.
    A gain has work if the first sample of the partition's lag from then on shows some; all others are ``idle``. One that has no
    receipt until another member has the partition, its own gives it up, or the trial ends, is ``unserved``. It counts with the
    time until then, which is the least that it would have waited.
    """

    gained = number("partitions", "partitions with work that members at work gained")
    longest_s = number("s", "longest wait of a gained partition for its first receipt", UNSCALED)
    median_s = number("s", "median wait of a gained partition for its first receipt", UNSCALED)
    unserved = number("partitions", "gained partitions that had no receipt while they were owned")
    idle = number("partitions", "gained partitions without work")


@measure
def gained_wait(record: Record) -> GainedWait:
    """Measure every gain. There is no data where no member at work gained a partition that had work."""
    gains = _gains(record)
    worked = {place: np.sort(rows["end"].to_numpy()) for place, rows in record.receipts.groupby(["pod", "partition"])}
    lag = {number: (rows["t"].to_numpy(), rows["lag"].to_numpy()) for number, rows in record.partition_lag.groupby("partition")}
    waits, unserved = list[float](), 0
    for gain in gains:
        t, left = lag.get(gain.partition, (np.empty(0), np.empty(0)))
        sample = int(np.searchsorted(t, gain.t))
        if sample == len(t) or left[sample] <= 0:
            continue
        ends = worked.get((gain.pod, gain.partition), np.empty(0))
        first = int(np.searchsorted(ends, gain.t))
        served = first < len(ends) and ends[first] <= gain.until
        unserved += not served
        waits.append(float(ends[first] if served else gain.until) - gain.t)
    if not waits:
        raise NoData(f"no member at work gained a partition with work, of {len(gains)} that members at work gained")
    return GainedWait(
        gained=len(waits),
        longest_s=max(waits),
        median_s=median(waits),
        unserved=unserved,
        idle=len(gains) - len(waits),
    )


@dataclass
class _Gain:
    """``pod``, which kept others, was assigned ``partition`` at ``t``, and had it ``until`` then (epoch s)."""

    pod: str
    partition: int
    t: float
    until: float


def _gains(record: Record) -> list[_Gain]:
    """The gains of members that kept others, since the producer was applied."""
    driven, end = record.driven, record.end
    owned: dict[str, set[int]] = {}
    open_gains: dict[int, _Gain] = {}
    found: list[_Gain] = []
    for change in _within(record, end=end):
        mine = owned.setdefault(change.pod, set())
        kept, given = bool(mine), change.event == GIVEN
        for partition in change.partitions:
            last = open_gains.get(partition)
            if last and (given or last.pod == change.pod):
                open_gains.pop(partition).until = change.t
            if given and kept and change.t >= driven:
                open_gains[partition] = _Gain(change.pod, partition, change.t, end)
                found.append(open_gains[partition])
        owned[change.pod] = mine | set(change.partitions) if given else mine - set(change.partitions)
    return found


def _runs(times: Array, gap_s: float) -> list[Span]:
    """(first, last) of each run of ``times`` that are at most ``gap_s`` apart."""
    if not len(times):
        return []
    cuts = np.flatnonzero(np.diff(times) > gap_s)
    return [(float(times[a]), float(times[b])) for a, b in zip([0, *(cuts + 1)], [*cuts, len(times) - 1], strict=True)]


def moved_partitions(changes: Iterable[Report], start: float, end: float) -> int:
    """Partitions whose owner at ``end`` is not the one last assigned before ``start``.

    A partition of a pod that died silently stays that pod's until another pod is assigned it, as the group sees it.
    """
    before: dict[int, str] = {}
    now: dict[int, str | None] = {}
    for change in changes:
        if change.t > end:
            break
        for partition in change.partitions:
            if change.event == "assigned":
                now[partition] = change.pod
                if change.t < start:
                    before[partition] = change.pod
            elif now.get(partition) == change.pod:
                now[partition] = None
    return sum(now[partition] != pod for partition, pod in before.items())
