"""Replicas over time, as the API server's watch of a Deployment saw them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import pandas as pd

from lab.record.tables import Watched

COLUMNS = ("desired", "current", "ready")


class Change(NamedTuple):
    """The desired number of replicas went from ``before`` to ``after`` at ``t`` (epoch s)."""

    t: float
    before: int
    after: int


def curve(seen: Iterable[Watched]) -> pd.DataFrame:
    """The replicas of the Deployment that was ``seen`` as columns t, desired, current, ready; one row at every change."""
    rows: list[tuple[float, int, int, int]] = []
    for t, _, _, item in seen:
        status = item.get("status", {})
        counts = int(item["spec"]["replicas"]), int(status.get("replicas", 0)), int(status.get("readyReplicas", 0))
        if not rows or rows[-1][1:] != counts:
            rows.append((t, *counts))
    return pd.DataFrame(rows, columns=["t", *COLUMNS])


def changes(curve: pd.DataFrame) -> list[Change]:
    """Every change of the desired replicas on ``curve``, in order."""
    found: list[Change] = []
    before = int(curve["desired"].iloc[0])
    for t, after in curve[["t", "desired"]].itertuples(index=False, name=None):
        if int(after) != before:
            found.append(Change(float(t), before, int(after)))
            before = int(after)
    return found
