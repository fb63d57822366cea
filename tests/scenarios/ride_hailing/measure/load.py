"""Load: what Locust's users made and saw, from the CSV files in the record."""

from __future__ import annotations

import io
from collections.abc import Mapping

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.record.store import Record


class Load(Measure):
    """A row of Locust's statistics, which counts requests of one path, or all of them."""

    requests = number("requests", "requests")
    failures = number("requests", "requests that Locust counts as failed")
    rate = number("requests/s", "mean rate of requests")
    median_ms = number("ms", "median time to an answer")
    p99_ms = number("ms", "p99 of the time to an answer")
    users = number("users", "most users at a time")


def csv(record: Record, name: str) -> pd.DataFrame:
    """Locust's file ``name`` (stats, stats_history or failures). Raises :class:`NoData` when it was not said."""
    parts = [one.detail["text"] for one in record.reports("csv") if one.detail["name"] == name]
    if not parts:
        raise NoData(f"the record has no Locust {name}")
    return pd.read_csv(io.StringIO("".join(parts)))


@measure
def load(record: Record, name: str = "Aggregated") -> Load:
    """The row ``name`` of Locust's statistics, a request's path or all of them; no data when Locust reported none."""
    stats = csv(record, "stats")
    rows = stats[stats["Name"] == name]
    if rows.empty:
        raise NoData(f"Locust has no statistics of {name}")
    row, history = rows.iloc[0], csv(record, "stats_history")
    return Load(
        requests=int(row["Request Count"]),
        failures=int(row["Failure Count"]),
        rate=float(row["Requests/s"]),
        median_ms=float(row["50%"]),
        p99_ms=float(row["99%"]),
        users=int(history["User Count"].max()),
    )


@quantity("x", "events that came over those that the profile has")
def offered(record: Record, phase: str) -> float:
    """The events of ``phase`` of the profile over those that are due in it: users who wait for answers make fewer."""
    begin, end = record.span(phase)
    start = record.profile_start
    at = record.events("ts")["ts"].to_numpy() / 1e9
    came = int(((at >= begin) & (at < end)).sum())
    return came / (record.profile.due(end - start) - record.profile.due(begin - start))


def shares(record: Record) -> dict[str, float]:
    """The share of each path in all requests, 0 to 1. Raises :class:`NoData` when Locust reported no statistics."""
    stats = csv(record, "stats")
    named = stats[stats["Name"] != "Aggregated"].set_index("Name")["Request Count"]
    return {str(path): float(share) for path, share in (named / named.sum()).items()}


@quantity("%", "share of a path in all requests")
def share_of(record: Record, path: str) -> float:
    """The requests of ``path`` in 100 of all; no data when Locust reported no statistics."""
    return 100 * shares(record).get(path, 0.0)


@quantity("% points", "share of a path that is furthest off its weight")
def off_weight(record: Record, weights: Mapping[str, float]) -> float:
    """How far the share of any path is off its weight's in all ``weights``; no data when Locust reported no statistics."""
    found, whole = shares(record), sum(weights.values())
    return max(100 * abs(found.get(path, 0.0) - weight / whole) for path, weight in weights.items())
