"""Tuning: the answers that lag, desired and current replicas on one graph give, as numbers.

The questions are those of a published text on KEDA: does lagThreshold fit, does the scale-down window work, does the cluster
start pods quickly enough.
"""

from __future__ import annotations

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number
from lab.judge.origin import UNSCALED
from lab.record.store import Record


class OneGraph(Measure):
    """Lag before the first scale-up, the time from the peak lag to the next scale-down, and what is missing of the replicas.

    ``uncreated_pod_s`` adds up the replicas that are desired and not current, over time; an HPA's current replicas are the pods
    that exist, Ready or not. ``unready_pod_s`` adds up those that are desired and not Ready.
    """

    first_rise_lag = number("messages", "lag when the desired replicas first rose")
    kept_s = number("s", "time from the peak lag to the next step down")
    uncreated_pod_s = number("pod-seconds", "replicas desired and not current, added up over time", UNSCALED)
    unready_pod_s = number("pod-seconds", "replicas desired and not Ready, added up over time", UNSCALED)


@measure
def one_graph(record: Record) -> OneGraph:
    """Read the graph. No data for a group that never rose; ``kept_s`` is missing where it did not go down after the peak."""
    ups = [change.t for change in record.scalings if change.after > change.before]
    if not ups:
        raise NoData("the desired replicas never rose")
    lag = record.lag
    before = lag[lag["t"] <= ups[0]]
    if before.empty:
        raise NoData("no sample of lag before the desired replicas first rose")
    peak = float(lag["t"].iloc[int(lag["lag"].argmax())])
    downs = [change.t for change in record.scalings if change.after < change.before and change.t >= peak]
    return OneGraph(
        first_rise_lag=float(before["lag"].iloc[-1]),
        kept_s=downs[0] - peak if downs else None,
        uncreated_pod_s=missing(record.replicas, "current", record.end),
        unready_pod_s=missing(record.replicas, "ready", record.end),
    )


def missing(curve: pd.DataFrame, column: str, end: float) -> float:
    """Pod-seconds until ``end`` (epoch s) in which ``column`` of a replica curve was below its desired replicas."""
    lasting = curve["t"].shift(-1).fillna(end) - curve["t"]
    return float(((curve["desired"] - curve[column]).clip(lower=0) * lasting).sum())
