"""The pipeline behind the group: how fresh its dashboard is, how true, whether its table is the ledger's, and its bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from lab.errors import NoData
from lab.inputs.profile import Profile
from lab.judge.measure import Measure, measure, number, quantity
from lab.record.store import Record
from tests.scenarios.ride_hailing.measure import dashboard
from tests.scenarios.ride_hailing.measure.dashboard import EVERY_S, Accuracy, batches_of, events_of
from tests.scenarios.ride_hailing.programs.surge import DRIVER, KINDS, REQUEST, WINDOW_S, ZONES, Demand, Rides, multiplier

TRIGGER_S = 1.0  # least time between two micro-batches: the default of the drivers (programs/streaming.py)
FEWEST = 3  # sizes of micro-batches that tell what a row adds

THE_LEDGERS = "the table is the ledger's, as far as it has come"
# Sources of bounds.
ONCE = "delivery contract (docs/decisions/11, 18) and decision 16: each event in the table once"
BY_WATERMARK = "Spark's docs: dropDuplicatesWithinWatermark drops state by the watermark"


class Freshness(Measure):
    """How old the newest event of the table is at each moment of a span, and how old the oldest event that it lacks."""

    newest = number("s", "median age of the newest event in the table")
    median = number("s", "median age of the oldest event that the table lacks")
    p99 = number("s", "p99 of the age of the oldest event that the table lacks")
    worst = number("s", "largest age of the oldest event that the table lacks")


class Pipeline(Measure):
    """What the batches of the whole record came to. A row that is late is older than one of an earlier batch."""

    batches = number("batches", "micro-batches with rows")
    batch_s = number("s", "median length of a micro-batch")
    rows = number("events", "rows of the table at the end")
    late = number("events", "rows that came late, within the watermark")
    repeated = number("events", "rows that were dropped because the state had them")
    beyond = number("events", "rows that were dropped because they came later than the watermark")


class Batch(Measure):
    """What a micro-batch takes, by least squares over those of the traffic; beyond ``most`` none is ever done."""

    fixed_s = number("s", "what a micro-batch takes beside its rows")
    row_ms = number("ms", "what a row adds to its micro-batch")
    most = number("events/s", "events that micro-batches take in the long run")


class Kept(Measure):
    """The most that the pipeline kept at a batch of a span: what has to stay bounded as batches go by."""

    state_rows = number("rows", "most rows of the state")
    state_bytes = number("bytes", "most memory of the state")
    files = number("files", "most files of table, log, checkpoint and state")


@measure
def freshness(record: Record, phase: str) -> Freshness:
    """The ages at the moments of ``phase``. An event lacks from its time on, until a batch with it is available."""
    begin, end = dashboard.span_of(record, phase)
    events = dashboard.available(record).sort_values("at")
    at, there = events["at"].to_numpy(), events["available"].to_numpy()
    moments = np.arange(begin, end, EVERY_S)
    seen = [at[there <= t] for t in moments]
    if not all(map(len, seen)):
        raise NoData("the table was empty at a moment of the span")
    newest = [t - float(times[-1]) for t, times in zip(moments, seen, strict=True)]
    lacking = [t - float(at[(at <= t) & (there > t)].min(initial=t)) for t in moments]
    return Freshness(
        newest=float(np.median(newest)),
        median=float(np.median(lacking)),
        p99=float(np.percentile(lacking, 99)),
        worst=float(np.max(lacking)),
    )


@measure
def surge(record: Record, phase: str) -> Accuracy:
    """The dashboard's multipliers in ``phase`` beside those of the demand.

    At best are those of a dashboard that counts each event at its own time.
    """
    begin, end = dashboard.span_of(record, phase)
    moments = np.arange(begin, end, EVERY_S)
    demand = Demand(record.inputs.seed)
    true = np.array([[demand.multiplier(zone, t - record.profile_start) for zone in range(ZONES)] for t in moments])
    seen = dashboard.shown(batches_of(record), moments, ZONES)
    return Accuracy(table=100 * dashboard.share(seen, true), at_best=100 * dashboard.share(_undelayed(record, moments), true))


def _undelayed(record: Record, moments: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The multiplier of each zone at each moment on all events of the window before it, NaN for none: moments x zones."""
    rides, events = Rides(record.inputs.seed, record.inputs.profile), events_of(record).sort_values("at")
    at, seqs = events["at"].to_numpy(), events["seq"].to_numpy()
    zones, kinds = rides.zones[seqs], rides.kinds[seqs]
    found = np.full((len(moments), ZONES), np.nan)
    for row, t in enumerate(moments):
        first, last = np.searchsorted(at, [t - WINDOW_S, t], side="right")
        for zone in range(ZONES):
            there = kinds[first:last][zones[first:last] == zone]
            value = multiplier(*(int((there == KINDS.index(kind)).sum()) for kind in (REQUEST, DRIVER)))
            found[row, zone] = np.nan if value is None else value
    return found


@measure
def pipeline(record: Record) -> Pipeline:
    """The counts of the batches that the driver and the reader reported."""
    driver, reader = _driver(record), batches_of(record)
    return Pipeline(
        batches=len(driver),
        batch_s=float(np.median([one["batch_s"] for one in driver])),
        rows=reader[-1]["events"],
        late=reader[-1]["late"],
        repeated=sum(one["repeated"] for one in driver),
        beyond=sum(one["beyond_watermark"] for one in driver),
    )


@measure
def kept(record: Record, phase: str | None = None) -> Kept:
    """Over the batches that were reported in ``phase`` of the profile, or over all; no data where there was none."""
    driver = _driver(record, phase)
    return Kept(
        state_rows=max(one["state_rows"] for one in driver),
        state_bytes=max(one["state_bytes"] for one in driver),
        files=max(sum(one["files"].values()) for one in driver),
    )


@quantity("events", "events by which the table differs from what was produced, up to where it has come")
def unequal(record: Record) -> int:
    """Events that lack and events that are too many, by partition and offset; those of other seqs are at least one.

    The table's rows are known by their count and by the sum of their seqs. Of a partition without a row all events lack.
    """
    last, events = batches_of(record)[-1], events_of(record)
    covered = events[events["offset"] < _ends(last, events).fillna(np.inf)]
    different = abs(len(covered) - last["events"])
    return int(different or (int(covered["seq"].sum()) != last["seqs"]))


@quantity("events", "events that were produced and that the table has not come to")
def ahead(record: Record) -> int:
    """The events behind the last row of their partition when the last batch was reported."""
    events = events_of(record)
    return int((events["offset"] >= _ends(batches_of(record)[-1], events).fillna(0)).sum())


def _ends(batch: Mapping[str, Any], events: pd.DataFrame) -> pd.Series[float]:
    """How far the table has come with ``batch`` in the partition of each of ``events``; NaN where it has no row of it."""
    return events["partition"].map({int(partition): float(end) for partition, end in batch["offsets"].items()})


@quantity("rows", "rows of the state over what the watermark lets it keep")
def over_watermark(record: Record, watermark_s: float) -> int:
    """The most rows that a batch's state has over the events that are not older than its watermark less the delay.

    A row is kept until the watermark has passed its time by the delay; so no state holds more than twice the delay of traffic.
    No data for a record that is shorter: whatever its state keeps, it has no row too many.
    """
    at, over = np.sort(events_of(record)["at"].to_numpy()), []
    for one in _driver(record):
        watermark = datetime.fromisoformat(one["watermark"]).timestamp()
        younger = len(at) - int(np.searchsorted(at, watermark - watermark_s, side="right"))
        if younger < len(at):
            over.append(int(one["state_rows"]) - younger)
    if not over:
        raise NoData("no watermark had passed an event by the delay: the state may keep all")
    return max(over)


def batch_length(rate: float, fixed_s: float, row_s: float, trigger_s: float = TRIGGER_S) -> float:
    """What a micro-batch takes in the long run at ``rate`` events/s, s. It has the rows that came since the last one began.

    Infinite where rows take longer than they take to come: then each batch is larger than the one before.
    """
    within = fixed_s + row_s * rate * trigger_s
    if within <= trigger_s:
        return within
    return fixed_s / (1 - row_s * rate) if row_s * rate < 1 else math.inf


def least_staleness(rate: float, fixed_s: float, row_s: float, waits_s: float = 0.0, trigger_s: float = TRIGGER_S) -> float:
    """The age that the oldest event gets until it is in the table, s, where the group keeps events for ``waits_s``.

    It waits in the group, then for the next batch, which begins a batch or a trigger after the last, and for that batch.
    """
    length = batch_length(rate, fixed_s, row_s, trigger_s)
    return waits_s + max(trigger_s, length) + length


def least_wait(traffic: Profile, capacity: float, react_s: float) -> float:
    """The age of the oldest event that waits when a policy's first new pod works, s; no policy that reacts can have less.

    Pods of ``capacity`` events/s together work on ``traffic`` until ``react_s`` after it first exceeds that. All of them share
    the work evenly, and nothing waits before: any real group is later. 0 where the traffic never exceeds the capacity.
    """
    over = next((step.at for step in traffic.steps if step.rate > capacity), None)
    if over is None:
        return 0.0
    reacted, oldest = over + react_s, traffic.due(over) + int(capacity * react_s)
    return reacted - float(traffic.times(oldest, oldest + 1)[0]) if oldest < traffic.due(reacted) else 0.0


@measure
def batch(record: Record) -> Batch:
    """Fit the batches that ended in the traffic. No data for fewer than three sizes, and where either part comes to 0."""
    begin, end = dashboard.span_of(record, None)
    driver = [one.detail for one in record.reports("batch") if begin <= one.t <= end]
    rows, took = (np.array([float(one[name]) for one in driver]) for name in ("input", "batch_s"))
    if (sizes := len(set(rows.tolist()))) < FEWEST:
        raise NoData(f"{sizes} sizes of micro-batches, fewer than {FEWEST}")
    row_s, fixed_s = map(float, np.polyfit(rows, took, 1))
    if min(row_s, fixed_s) <= 0:
        raise NoData(f"no micro-batch takes {fixed_s:.3g} s and {1000 * row_s:.3g} ms a row")
    return Batch(fixed_s=fixed_s, row_ms=1000 * row_s, most=1 / row_s)


@quantity("s", "least age at which the oldest event can be in the table")
def least(record: Record, rate: float, waits_s: float = 0.0) -> float:
    """:func:`least_staleness` at ``rate`` events/s, with the micro-batches of ``record``; no data as :func:`batch`."""
    found = batch(record)
    return least_staleness(rate, found.fixed_s.number, found.row_ms.number / 1000, waits_s)


def _driver(record: Record, phase: str | None = None) -> list[dict[str, Any]]:
    begin, end = record.span(phase) if phase else (-math.inf, math.inf)
    found = [one.detail for one in record.reports("batch") if begin <= one.t <= end]
    if not found:
        raise NoData(f"the driver reported no batch{f' in phase {phase}' if phase else ''}")
    return found
