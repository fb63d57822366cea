"""Cores: the CPU of the control plane while a trial was driven."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.judge.origin import UNSCALED
from lab.record.store import Record

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
FEWEST = 3  # readings: one takes some ten seconds


@quantity("cores", "mean CPU of the control plane while the trial was driven", UNSCALED)
def control_plane_cpu(record: Record) -> float:
    """CPU of etcd, API server, controller-manager and scheduler from the first to the last reading, over the time between.

    It is the cluster's: in a duet both sides cause it. No data where a process was not read.
    """
    seen = record.memory
    own = seen[seen["t"].between(record.driven, record.end) & seen["process"].isin(CONTROL_PLANE)]
    if absent := set(CONTROL_PLANE) - set(own["process"]):
        raise NoData(f"no reading of {', '.join(sorted(absent))}")
    total = own.groupby("t")["cpu_s"].sum()
    if len(total) < FEWEST:
        raise NoData(f"{len(total)} readings of {', '.join(CONTROL_PLANE)}, fewer than {FEWEST}")
    return float((total.iloc[-1] - total.iloc[0]) / (total.index[-1] - total.index[0]))
