"""Age: how old events are when they are processed; each event by its own receipt."""

from __future__ import annotations

import numpy as np

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.record.ages import Coverage
from lab.record.store import Record


@quantity("s", "greatest age that an event reached")
def oldest(record: Record) -> float:
    """The greatest age that an event reached, at its receipt or, without one, at the record's end; no data without a ledger."""
    events = record.waiting
    return float((np.minimum(events.done, record.end) - events.at).max())


@quantity("s", "age of the first event at its receipt")
def first(record: Record) -> float:
    """The age of the very first event when its receipt came; no data when it has none."""
    firsts = [
        (int(ns[place]), int(partition[place]), int(offset[place]))
        for partition, offset, ns in record.event_parts("partition", "offset", "ts")
        for place in [ns.argmin()]
    ]
    if not firsts:
        raise NoData("nothing was produced")
    ns, partition, offset = min(firsts, key=lambda one: one[0])
    done = float(Coverage.of(record.receipts).at(np.array([partition]), np.array([offset]))[0])
    if np.isinf(done):
        raise NoData("the first event was never processed")
    return done - ns / 1e9
