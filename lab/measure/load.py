"""Load: what Locust's users made and saw, from the CSV files in the record."""

from __future__ import annotations

import io
from dataclasses import dataclass

import pandas as pd

from lab.errors import NoData
from lab.record.store import Record


@dataclass(frozen=True)
class Load:
    """Requests answered and failed, mean requests/s, and answer times in ms; ``users`` is the most there were at a time."""

    requests: int
    failures: int
    rate: float
    median_ms: float
    p99_ms: float
    users: int


def csv(record: Record, name: str) -> pd.DataFrame:
    """Locust's file ``name`` (stats, stats_history or failures). Raises :class:`NoData` when it was not said."""
    parts = [one.detail["text"] for one in record.reports("csv") if one.detail["name"] == name]
    if not parts:
        raise NoData(f"the record has no Locust {name}")
    return pd.read_csv(io.StringIO("".join(parts)))


def load(record: Record, name: str = "Aggregated") -> Load:
    """The row ``name`` of Locust's statistics, a request's path or all of them."""
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


def shares(record: Record) -> dict[str, float]:
    """Share of each request's name in all requests."""
    stats = csv(record, "stats")
    named = stats[stats["Name"] != "Aggregated"]
    total = float(named["Request Count"].sum())
    return {
        str(name): float(count) / total for name, count in named[["Name", "Request Count"]].itertuples(index=False, name=None)
    }
