"""Rounds: each JoinGroup barrier of a classic group, from what set it off until its members were given their assignment.

Every member of a cooperative group is given one at the end of each round, if only an empty one; so assignments come in
clusters, and a cluster is the end of a round. A round that revoked something is followed by another at once: what members see
of both, and what :mod:`lab.measure.churn` counts, is one rebalance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lab.judge.measure import quantity
from lab.record.store import Record

CLUSTER_S = 0.35  # members of one round are told within this time


@dataclass(frozen=True)
class Round:
    """One round: its length in s, whether it followed at once on one that revoked, and how many members joined in it."""

    seconds: float
    chained: bool
    joins: int


def rounds(record: Record) -> list[Round]:
    """The rounds since the trial was driven. Raises :class:`NoData` when it never was."""
    driven = record.driven
    events = record.group_events

    def times(name: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.sort(events[events["event"] == name]["t"].to_numpy(dtype=float))

    joined, left, revoked = times("subscribed"), times("left"), times("revoked")
    found: list[Round] = []
    before = driven
    for first, last in _clusters(times("assigned")):
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
    """How many rounds there were since the trial was driven; no data when it never was."""
    return len(rounds(record))


def _clusters(times: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[tuple[float, float]]:
    """(first, last) of each run of ``times`` that are no further apart than a cluster's."""
    if not len(times):
        return []
    cuts = np.flatnonzero(np.diff(times) > CLUSTER_S)
    return [(float(times[a]), float(times[b])) for a, b in zip([0, *(cuts + 1)], [*cuts, len(times) - 1], strict=True)]
