"""Reasons: whether the persistent-lag scaler's own metrics say why the HPA took pods."""

from __future__ import annotations

from math import ceil

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.record.store import Record

METRIC, LASTING = "lagscaler_metric", "lagscaler_lasting"


class Reasons(Measure):
    """The syncs of the HPA that took pods, and those of them that the scaler's metrics do not explain.

    The scrapes on either side of a sync explain it if one of them shows lag that has lasted, and one shows a metric that asks
    for as many replicas as the sync took at least: ceil(metric / lagThreshold). That is what an operator finds in Prometheus.
    """

    steps = number("steps", "steps up of the HPA")
    unexplained = number("steps", "steps up that the scaler's metrics do not explain")


@measure
def reasons(record: Record) -> Reasons:
    """Compare each step up since the profile's start with the scrapes around it; no data without metrics of the scaler."""
    metric, lasting = _scraped(record, METRIC), _scraped(record, LASTING)
    steps = [one for one in record.hpa_syncs if one.scaled_at is not None and one.desired > one.current]
    steps = [one for one in steps if one.at >= record.profile_start]
    explained = [
        _around(lasting, one.at) > 0 and ceil(_around(metric, one.at) / record.lag_threshold) >= one.desired for one in steps
    ]
    return Reasons(steps=len(steps), unexplained=explained.count(False))


def _scraped(record: Record, name: str) -> pd.DataFrame:
    """Time and value of each scrape of a metric, in order of time."""
    found = record.samples[record.samples["metric"] == name].sort_values("t")
    if found.empty:
        raise NoData(f"the record has no {name}: no trigger of the persistent-lag scaler was scraped")
    return found


def _around(scraped: pd.DataFrame, t: float) -> float:
    """The greater of the values of the last scrape up to ``t`` and of the first one after it."""
    after = int(scraped["t"].searchsorted(t, side="right"))
    return float(scraped["value"].iloc[max(0, after - 1) : after + 1].max())
