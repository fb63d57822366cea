"""Throughput over time from the record itself: messages consumed, by pod, and produced, in bins of 0.2 and 1 s."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa

from lab.record.ledger.fold import BIN_NS

PER_SECOND = (10**9 // BIN_NS, 1)  # bins; whole numbers, so that a bin's edge is exact in a double; each divides the first
GROUP = ""  # the pod of the group's total
RATES = pa.schema(
    {"bin_s": pa.float64(), "t": pa.float64(), "series": pa.string(), "pod": pa.string(), "messages": pa.float64()}
)


def rates(scheduled: pd.DataFrame, receipts: pd.DataFrame) -> pd.DataFrame:
    """Messages by bin in the columns of ``RATES``, sorted by bin_s, series, pod, t; none without messages. Pure.

    "consumed" spreads each receipt's count evenly over its start..end, by pod and, with pod "", for the group. "produced"
    counts events by when they were ``scheduled``. ``t`` is the bin's start, epoch s.
    """
    fine = scheduled.assign(pod=GROUP)
    parts: list[pd.DataFrame] = []
    for per_second in PER_SECOND:
        produced = fine.assign(bin=fine["bin"] // (PER_SECOND[0] // per_second))
        consumed = _consumed(receipts, per_second)
        both = {"produced": produced, "consumed": pd.concat([consumed, consumed.assign(pod=GROUP)])}
        for series, table in both.items():
            summed = table.groupby(["pod", "bin"], as_index=False)["messages"].sum()
            parts.append(summed.assign(series=series, bin_s=1 / per_second, t=summed["bin"] / per_second))
    whole = pd.concat(parts).sort_values(["bin_s", "series", "pod", "t"], ignore_index=True)
    columns: list[str] = RATES.names
    return whole.loc[whole["messages"] > 0, columns]


def _consumed(receipts: pd.DataFrame, per_second: int) -> pd.DataFrame:
    """The share of each receipt in each bin it lies in: pod, bin, messages."""
    start, end = (receipts[name].to_numpy() * per_second for name in ("start", "end"))
    first, last = np.floor(start).astype("int64"), np.floor(end).astype("int64")
    spans = last - first + 1
    of = np.repeat(np.arange(len(receipts)), spans)  # the receipt of each share
    bins = first[of] + np.arange(len(of)) - (spans.cumsum() - spans)[of]
    # The part done by a bin's edges; the outermost are 0 and 1 by definition, so that no rounding loses a message.
    start, lasts = start[of], np.where(end > start, end - start, 1)[of]
    before = np.where(bins == first[of], 0, (bins - start) / lasts)
    after = np.where(bins == last[of], 1, (bins + 1 - start) / lasts)
    shared = receipts[["pod", "count"]].iloc[of]
    return pd.DataFrame({"pod": shared["pod"], "bin": bins, "messages": shared["count"] * (after - before)})
