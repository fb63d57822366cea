"""Corruptions of a whole record, each drawn: of its tables, its times, its offsets, and how it ended. Pure.

The record says of each message what the profile scheduled, the producer tallied, the log holds, the receipts cover and the
group committed; of the lag its sum and its parts. That is what is corrupted. Handovers, watch events and the HPA's log say what
nothing else does: what is lost of them on the way is told where it is lost, by the listener's faults and ``watch_gaps``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

import pandas as pd

from lab.record.trial import Offsets, Trial
from lab.record.views import LAG, PARTITION_LAG

TABLES = {
    "events": "ledger/events/events.parquet",
    "receipts": "receipts.parquet",
    "group_events": "group_events.parquet",
    "samples": "samples.parquet",
}
PRODUCERS = ("profile", "phase", "produced")  # reports that something else in the record confirms
SWAPPED: dict[str, Sequence[list[str]]] = {  # the columns of two rows that change places
    "events": [["seq", "ts", "crc"]],
    "receipts": [["checksum"], ["first", "last", "count"], ["partition"], ["pod"], ["start", "end"]],
    "group_events": [["detail"], ["t"]],
    "samples": [["value"]],
}


@dataclass(frozen=True)
class Parts:
    """What of a record is corrupted."""

    events: pd.DataFrame
    receipts: pd.DataFrame
    group_events: pd.DataFrame
    samples: pd.DataFrame
    trial: Trial

    @property
    def scrapes(self) -> list[float]:
        """When the lag was sampled while the trial was driven, epoch s."""
        times = self.samples["t"][self.samples["metric"] == LAG].unique()
        return sorted(t for t in times if self.trial.times["driving"] <= t <= self.trial.times["ended"])


Corrupted = tuple[str, Parts, str]  # the part that is corrupted, all parts, and what was done in words


def _rows(parts: Parts, name: str, reports: Sequence[str] = PRODUCERS) -> tuple[Any, list[Any]]:
    """The table ``name``, and the index of its rows that may be corrupted."""
    table: Any = getattr(parts, name)
    if name == "group_events":
        return table, table.index[table["event"].isin(reports)].tolist()
    if name == "samples":
        times = parts.trial.times
        mine = table["metric"].isin([LAG, PARTITION_LAG]) & table["t"].between(times["driving"], times["ended"])
        return table, table.index[mine].tolist()
    return table, table.index.tolist()


def _some(parts: Parts, draw: Random) -> tuple[str, Any, list[Any]]:
    """A table, and one to three rows of it that follow one another."""
    name = draw.choice(list(TABLES))
    table, rows = _rows(parts, name)
    first = draw.randrange(len(rows))
    return name, table, rows[first : first + (1 if name == "group_events" else draw.randint(1, 3))]


def _changed(parts: Parts, name: str, table: Any) -> Parts:
    return replace(parts, **{name: table})


def _drop(parts: Parts, draw: Random) -> Corrupted:
    name, table, rows = _some(parts, draw)
    return (
        name,
        _changed(parts, name, table.drop(index=rows).reset_index(drop=True)),
        f"{len(rows)} rows left out at {rows[0]}",
    )


def _double(parts: Parts, draw: Random) -> Corrupted:
    name, table, rows = _some(parts, draw)
    twice = pd.concat([table, table.loc[rows]]).sort_index(kind="stable", ignore_index=True)
    return name, _changed(parts, name, twice), f"{len(rows)} rows twice at {rows[0]}"


def _swap(parts: Parts, draw: Random) -> Corrupted:
    name = draw.choice(list(TABLES))
    columns = draw.choice(SWAPPED[name])
    table, rows = _rows(parts, name, ["phase"])
    one = draw.choice(rows)
    differs = (table.loc[rows, columns] != table.loc[one, columns]).any(axis=1)
    others = differs.index[differs].tolist()
    if not others:
        return _swap(parts, draw)
    other, swapped = draw.choice(others), table.copy()
    for column in columns:
        swapped.at[one, column], swapped.at[other, column] = table.at[other, column], table.at[one, column]
    return name, _changed(parts, name, swapped), f"{', '.join(columns)} of rows {one} and {other}"


def _checksum(parts: Parts, draw: Random) -> Corrupted:
    name, column = draw.choice([("receipts", "checksum"), ("events", "crc")])
    table: Any = getattr(parts, name).copy()
    row, bit = draw.randrange(len(table)), 1 << draw.randrange(32)
    table.at[row, column] = int(table.at[row, column]) ^ bit
    return name, _changed(parts, name, table), f"a bit of {column} in row {row}"


def _clock(parts: Parts, draw: Random) -> Corrupted:
    """The wall clock is set while the trial runs. A process keeps its own time, so only Prometheus and new pods follow it."""
    at = draw.uniform(parts.trial.times["driving"], parts.trial.times["ended"])
    by = round(draw.choice([-1, 1]) * 10 ** draw.uniform(-3, 1.5), 3)
    samples = parts.samples.assign(t=parts.samples["t"] + by * (parts.samples["t"] >= at)).sort_values("t", kind="stable")
    began = parts.receipts.groupby("pod")["start"].transform("min")
    shift = by * (began >= at)
    receipts = parts.receipts.assign(start=parts.receipts["start"] + shift, end=parts.receipts["end"] + shift)
    moved = replace(parts.trial, clock_moved_s=by)
    whole = replace(parts, samples=samples.reset_index(drop=True), receipts=receipts, trial=moved)
    return "clock", whole, f"set by {by} s, {at - parts.trial.times['driving']:.1f} s after the start"


def _samples(parts: Parts, draw: Random) -> Corrupted:
    scrapes, samples = parts.scrapes, parts.samples
    count = draw.randint(1, 8)
    first = draw.randrange(len(scrapes))
    among = samples["t"].isin(scrapes[first : first + count])
    metric = draw.choice([LAG, PARTITION_LAG])
    mine = among & (samples["metric"] == metric)
    how = draw.choice(["gap", "no number", "gone", "wrong"])
    if how == "gap":
        changed = samples[~among]
    elif how == "gone":
        changed = samples[samples["metric"] != metric]
    else:
        wrong = float("nan") if how == "no number" else samples["value"] + draw.randint(1, 1000)
        changed = samples.assign(value=samples["value"].mask(mine, wrong))
    return "samples", replace(parts, samples=changed.reset_index(drop=True)), f"{how}: {metric} at {count} scrapes from {first}"


def _offsets(parts: Parts, draw: Random) -> Corrupted:
    offsets = dict(parts.trial.offsets)
    number, count = draw.choice(sorted(offsets)), draw.randint(1, 50)
    one, how = offsets.pop(number), draw.choice(["end", "committed", "both", "none", "gone"])
    end, committed = one.end, one.committed or 0
    by = draw.choice([-count, count])
    if how != "gone":
        offsets[number] = Offsets(
            end=end + by if how in ("end", "both") else end,
            committed=None if how == "none" else committed + by if how in ("committed", "both") else committed,
        )
    return "offsets", replace(parts, trial=replace(parts.trial, offsets=offsets)), f"{how} of partition {number} by {by}"


def _ended(parts: Parts, draw: Random) -> Corrupted:
    how = draw.choice(["running", "", "interrupted", "the cluster was gone", "deadline: not at rest", "no end", "no start"])
    times = dict(parts.trial.times)
    if how in ("no end", "no start"):
        del times["ended" if how == "no end" else "driving"]
        return "times", replace(parts, trial=replace(parts.trial, times=times)), how
    return "ended", replace(parts, trial=replace(parts.trial, ended=how)), f"ended {how!r}"


KINDS: dict[str, Callable[[Parts, Random], Corrupted]] = {
    "drop": _drop,
    "double": _double,
    "swap": _swap,
    "checksum": _checksum,
    "clock": _clock,
    "samples": _samples,
    "offsets": _offsets,
    "ended": _ended,
}
