"""Age: how old events are when they are processed, event time to durable receipt; or the oldest that is still waiting."""

from __future__ import annotations

import numpy as np
import pandas as pd

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.record.store import Record


@quantity("s", "greatest age that an event reached")
def oldest(record: Record) -> float:
    """The greatest age that an event reached, at its receipt or, without one, at the record's end; no data without a ledger.

    The first event of a receipt is its oldest, for the offsets of a partition are in order of time.
    """
    events = ledger(record)
    receipts, end = record.receipts, record.end
    born = events.set_index(["partition", "offset"])["at"]
    ages = []
    if not receipts.empty:
        first = receipts.set_index(["partition", "first"]).index
        ages.append(float((receipts["end"].to_numpy() - born.reindex(first).to_numpy()).max()))
    done = receipts.groupby("partition")["last"].max()
    waiting = events[events["offset"] > events["partition"].map(done).fillna(-1)]
    if not waiting.empty:
        ages.append(end - float(waiting["at"].min()))
    return max(ages)


@quantity("s", "age of the first event at its receipt")
def first(record: Record) -> float:
    """The age of the very first event when its receipt came; no data when it has none."""
    events = ledger(record)
    one = events.loc[events["at"].idxmin()]
    receipts = record.receipts
    covering = receipts[
        (receipts["partition"] == one["partition"]) & (receipts["first"] <= one["offset"]) & (receipts["last"] >= one["offset"])
    ]
    if covering.empty:
        raise NoData("the first event was never processed")
    return float(covering["end"].min() - one["at"])


def ledger(record: Record) -> pd.DataFrame:
    """The events as produced, with ``at``, their time in epoch s. Raises :class:`NoData` when there is none."""
    folder = record.folder / "ledger" / "events"
    if not folder.exists():
        raise NoData(f"{record.folder.name} has no ledger")
    events = pd.read_parquet(folder)
    if events.empty:
        raise NoData("nothing was produced")
    return events.assign(at=np.asarray(events["ts"], dtype=np.float64) / 1e9)
