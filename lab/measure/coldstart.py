"""Cold start: how long the pods of a scale-out take from created to at work, as the median pod sees it."""

from __future__ import annotations

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.record.store import Record


class ColdStart(Measure):
    """Over the pods created since traffic left its baseline that came to a first receipt.

    ``start``, ``join`` and ``total`` are those of the median pod; ``slowest`` is the total of the last one.
    """

    pods = number("pods", "new pods that came to work")
    start = number("s", "time from created to subscribed")
    join = number("s", "time from subscribed to the first partition")
    total = number("s", "time from created to the first receipt")
    slowest = number("s", "time from created to the first receipt, slowest pod")


@measure
def cold_start(record: Record) -> ColdStart:
    """Measure every new pod; no data when none came to work."""
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
