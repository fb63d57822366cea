"""Cold start: how long the pods of a scale-out take from created to at work, as the median pod sees it."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from lab.errors import NoData
from lab.record.store import Record


@dataclass(frozen=True)
class ColdStart:
    """Over the ``pods`` created since traffic left its baseline that came to a first receipt. Medians, s: ``start`` from
    created to subscribed, ``join`` from there to the first partition owned, ``total`` from created to the first receipt;
    ``slowest`` is the total of the last pod."""

    pods: int
    start: float
    join: float
    total: float
    slowest: float


def cold_start(record: Record) -> ColdStart:
    """Measure every new pod. Raises :class:`NoData` when none came to work."""
    zero = record.zero
    created = {name: pod.added for name, pod in record.pods.items() if pod.added is not None and pod.added > zero}
    events = record.group_events
    owning = events[(events["event"] == "assigned") & (events["owned"] > 0)]
    pods = pd.DataFrame(
        {
            "created": pd.Series(created, dtype=float),
            "subscribed": events[events["event"] == "subscribed"].groupby("pod")["t"].min(),
            "owning": owning.groupby("pod")["t"].min(),
            "receipt": record.receipts.groupby("pod")["end"].min(),
        }
    ).dropna()
    if pods.empty:
        raise NoData("no pod created after the baseline came to a receipt")
    total = pods["receipt"] - pods["created"]
    return ColdStart(
        pods=len(pods),
        start=float((pods["subscribed"] - pods["created"]).median()),
        join=float((pods["owning"] - pods["subscribed"]).median()),
        total=float(total.median()),
        slowest=float(total.max()),
    )
