"""The dashboard: how old events are when its table has them, and how often its surge multipliers are the true ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.inputs.profile import BASELINE
from lab.judge.measure import Measure, measure, number, quantity
from lab.record.store import Record

EVERY_S = 0.25  # accuracy is looked at so often
LAST_S = 5.0  # a trial may end before the events of its last seconds are in the table: they are not judged
Truth = Callable[[int, float], float]


class Staleness(Measure):
    """How old events are when they come into the table, over the events due in a span; ``batch_s`` is the whole record's."""

    median = number("s", "median of the age at which events are in the table")
    p99 = number("s", "p99 of the age at which events are in the table")
    worst = number("s", "largest age at which events are in the table")
    left_out = number("events", "events that no batch of the table took")
    batch_s = number("s", "median length of a micro-batch")


class Accuracy(Measure):
    """The share of (zone, moment) in a span whose multiplier in the table is the true one at that moment."""

    table = number("%", "surge multipliers that are true")
    at_best = number("%", "surge multipliers that would be true in a table without delay, with the updates that were sent")


@measure
def staleness(record: Record, phase: str | None = None) -> Staleness:
    """The table's delay in ``phase`` of the profile, or since the baseline, but for the last LAST_S of the traffic.

    No data when the analytics job reported no batch.
    """
    batches = batches_of(record)
    begin, end = span_of(record, phase)
    end = min(end, span_of(record, None)[1] - LAST_S)
    events = available(record)
    judged = events[(events["at"] >= begin) & (events["at"] < end)]
    ages = (judged["available"] - judged["at"]).to_numpy()
    there = ages[np.isfinite(ages)]
    if not len(there):
        raise NoData("no event of the traffic came into the table")
    return Staleness(
        median=float(np.median(there)),
        p99=float(np.percentile(there, 99)),
        worst=float(there.max()),
        left_out=int(len(ages) - len(there)),
        batch_s=float(np.median([batch["batch_s"] for batch in batches])),
    )


@quantity("events", "events that batches took and the table does not sum up")
def uncounted(record: Record) -> int:
    """Events that a batch covers less those that the table then sums up, at the batch furthest from zero.

    An event that comes later than the watermark, or is of a kind that the table does not know, is covered and not counted. One
    that is counted twice makes the number negative. No data when no batch was reported, or none with its events.
    """
    batches = [batch for batch in batches_of(record) if "events" in batch]
    if not batches:
        raise NoData("the analytics job did not say how many events its table sums up")
    return max((sum(map(int, batch["offsets"].values())) - int(batch["events"]) for batch in batches), key=abs)


@measure
def accuracy(
    record: Record, zones: int, truth: Truth, updates: Callable[[int], int | None], phase: str | None = None
) -> Accuracy:
    """Compare with ``truth(zone, seconds since the profile's start)`` in ``phase`` of the profile, or since the baseline.

    ``updates(entity_id)`` is the zone that an event is an update of, None for another. No data when no batch was reported.
    """
    batches = batches_of(record)
    begin, end = span_of(record, phase)
    start = record.profile_start
    moments = np.arange(begin, end, EVERY_S)
    true = np.array([[truth(zone, t - start) for zone in range(zones)] for t in moments])
    seen = shown(batches, moments, zones)
    events = events_of(record, "entity_id")
    at_best = np.full(true.shape, np.nan)
    for entity_id, t in events.sort_values("at")[["entity_id", "at"]].itertuples(index=False, name=None):
        if (zone := updates(int(entity_id))) is not None:
            at_best[moments >= t, zone] = truth(zone, float(t) - start)
    return Accuracy(table=100 * share(seen, true), at_best=100 * share(at_best, true))


def shown(batches: Sequence[Mapping[str, Any]], moments: npt.NDArray[np.float64], zones: int) -> npt.NDArray[np.float64]:
    """The multiplier of each zone that the table shows at each of ``moments`` (epoch s): moments x zones, NaN for none."""
    seen = np.full((len(moments), zones), np.nan)
    for batch in batches:
        found = {int(name.rpartition("-")[2]): value for name, value in batch["zones"].items()}
        seen[moments >= batch["available"]] = [found.get(zone, np.nan) for zone in range(zones)]
    return seen


def share(table: npt.NDArray[np.float64], true: npt.NDArray[np.float64]) -> float:
    """The share of multipliers in ``table`` that are those in ``true``; one that is missing is not."""
    return float(np.isclose(table, true, atol=0.001).mean())


def batches_of(record: Record) -> list[dict[str, Any]]:
    """The reported batches of the table, in order of the time at which each was available. NoData is raised for none."""
    found = [one.detail for one in record.reports("table")]
    if not found:
        raise NoData("no batch of the table was reported")
    return sorted(found, key=lambda one: float(one["available"]))


def span_of(record: Record, phase: str | None) -> tuple[float, float]:
    """From when to when the profile was in ``phase``, or in any but its baseline. Raises :class:`NoData` where it never was."""
    if phase:
        return record.span(phase)
    phases = record.phases
    traffic = phases[phases["label"] != BASELINE]
    if traffic.empty:
        raise NoData("the profile has no phase but its baseline")
    return float(traffic["start"].iloc[0]), float(traffic["end"].iloc[-1])


def available(record: Record) -> pd.DataFrame:
    """The events as produced, with the time at which each came into the table: ``available``, epoch s, infinite for never."""
    events, batches = events_of(record), batches_of(record)
    times = np.array([*(float(batch["available"]) for batch in batches), np.inf])
    partition, offset = events["partition"].to_numpy(), events["offset"].to_numpy()
    found = np.empty(len(events))
    for one in np.unique(partition):
        # A driver that began anew reports less for a while: the first batch that had the event counts.
        ends = np.maximum.accumulate([int(batch["offsets"].get(str(one), 0)) for batch in batches])
        chosen = partition == one
        found[chosen] = times[np.searchsorted(ends, offset[chosen], side="right")]
    return events.assign(available=found)


def events_of(record: Record, *more: str) -> pd.DataFrame:
    """The events as produced: partition, offset, seq, columns ``more``, and ``at``, the time in epoch s. NoData for none."""
    events = record.events("partition", "offset", "seq", "ts", *more)
    if events.empty:
        raise NoData("nothing was produced")
    return events.assign(at=np.asarray(events["ts"], dtype=np.float64) / 1e9)
