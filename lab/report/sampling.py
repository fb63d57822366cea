"""Thins what a chart draws without changing what it shows. Pure: arrays and tables in, smaller tables out."""

from __future__ import annotations

import numpy as np
import pandas as pd

MOST_POINTS = 5000
BUCKETS = 1000


def thin(table: pd.DataFrame, value: str, *, most: int = MOST_POINTS, buckets: int = BUCKETS) -> pd.DataFrame:
    """At most ``4 * buckets`` rows of a series ``[t, value]`` longer than ``most``; a shorter one is returned sorted, whole.

    Each bucket of time keeps its first, lowest, highest and last sample, so neither a peak nor a dip is lost. A bucket
    without any number keeps one empty row: a gap stays a gap.
    """
    ordered = table.sort_values("t", kind="stable").reset_index(drop=True)
    if len(ordered) <= most:
        return ordered
    times = ordered["t"].to_numpy(dtype=float)
    edges = np.linspace(times[0], times[-1], buckets + 1)[1:-1]
    bucket = pd.Series(np.searchsorted(edges, times, side="right"))
    known = ordered[value].notna()
    by_bucket = ordered[value][known].groupby(bucket[known])
    rows = [
        *ordered.index[known].to_series().groupby(bucket[known]).agg(["first", "last"]).to_numpy().ravel(),
        *by_bucket.idxmin(),
        *by_bucket.idxmax(),
        *ordered.index[~known].to_series()[~bucket[~known].isin(set(bucket[known]))].groupby(bucket[~known]).first(),
    ]
    return ordered.loc[np.unique(np.asarray(rows, dtype=int))].reset_index(drop=True)


def steps(table: pd.DataFrame, value: str) -> pd.DataFrame:
    """The rows of a step series ``[t, value]`` where it changes, with the first and the last: lossless for a step line."""
    ordered = table.sort_values("t", kind="stable").reset_index(drop=True)
    changed = ordered[value].ne(ordered[value].shift())
    if len(ordered):
        changed.iloc[-1] = True
    return ordered[changed].reset_index(drop=True)


def at(times: np.ndarray, table: pd.DataFrame, value: str) -> list[float | None]:
    """The value of a series ``[t, value]`` in force at each of ``times`` (its last sample until then), or None before it."""
    ordered = table.dropna(subset=[value]).sort_values("t", kind="stable")
    found = np.searchsorted(ordered["t"].to_numpy(dtype=float), times, side="right") - 1
    values = ordered[value].to_numpy(dtype=float)
    return [None if index < 0 else float(values[index]) for index in found]


def rows_for(times: list[float], widths: list[float], most: int) -> list[int | None]:
    """A row for each label so that none overlaps its neighbour; None where ``most`` rows are not enough.

    ``times`` are the labels' middles in rising order, ``widths`` their widths, both in the axis' unit.
    """
    free = [-np.inf] * most
    placed: list[int | None] = []
    for middle, width in zip(times, widths, strict=True):
        row = next((n for n, end in enumerate(free) if middle - width / 2 >= end), None)
        if row is not None:
            free[row] = middle + width / 2
        placed.append(row)
    return placed
