"""Churn: how often the group rebalanced, how long that took, and what it moved."""

from __future__ import annotations

import math
from itertools import pairwise
from statistics import median

from lab.judge.measure import Measure, measure, number
from lab.record.reports import Handover
from lab.record.store import Record

GAP_S = 1.0  # members learn of a rebalance by a heartbeat, here of 500 ms; with a stock one of 3 or 5 s it counts as several


class Churn(Measure):
    """Rebalances after the baseline had settled: how many, their lengths, partitions handed over.

    A rebalance is a run of handovers none of which is more than a second after the one before, whichever member reports it.
    Its length is from its first handover to its last, so it leaves out what members waited before the first. It may take
    several rounds (:mod:`lab.measure.rounds`). Without any rebalance ``median_s`` and ``longest_s`` are missing.
    """

    rebalances = number("rebalances", "rebalances")
    median_s = number("s", "median length of a rebalance")
    longest_s = number("s", "longest rebalance")
    total_s = number("s", "time spent in rebalances")
    revoked = number("partitions", "partitions taken from a member")
    assigned = number("partitions", "partitions assigned to a member")
    commits_refused = number("commits", "commits that the group refused")


@measure
def churn(record: Record) -> Churn:
    """Count the rebalances since the trial was driven; no data when it never was."""
    driven = record.driven
    lengths = [end - start for start, end in rebalances(record, driven)]
    moved = {"assigned": 0, "revoked": 0, "lost": 0}
    for change in _within(record, driven):
        moved[change.event] += len(change.partitions)
    events = record.group_events
    return Churn(
        rebalances=len(lengths),
        median_s=median(lengths) if lengths else None,
        longest_s=max(lengths, default=None),
        total_s=sum(lengths),
        revoked=moved["revoked"] + moved["lost"],
        assigned=moved["assigned"],
        commits_refused=int(((events["event"] == "commit_failed") & (events["t"] >= driven)).sum()),
    )


def rebalances(record: Record, start: float = -math.inf, end: float = math.inf) -> list[tuple[float, float]]:
    """(first, last handover) of every rebalance among the handovers from ``start`` to ``end``, in epoch s."""
    times = [change.t for change in _within(record, start, end)]
    if not times:
        return []
    breaks = [(earlier, later) for earlier, later in pairwise(times) if later - earlier > GAP_S]
    return list(zip([times[0], *(later for _, later in breaks)], [*(earlier for earlier, _ in breaks), times[-1]], strict=True))


def _within(record: Record, start: float = -math.inf, end: float = math.inf) -> list[Handover]:
    return [change for change in record.handovers if start <= change.t <= end]
