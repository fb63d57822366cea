"""Cores: the CPU of the machine while a trial was driven, of the control plane, and of what runs the pods."""

from __future__ import annotations

from collections.abc import Collection

import pandas as pd

from lab.errors import NoData
from lab.judge.measure import quantity
from lab.judge.origin import UNSCALED
from lab.measure.validity import grown
from lab.record.store import Record

CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
# On kind: the kubelets, the container runtime, and each node's first process, which takes over its short-lived children. The
# lab's node is one process, and a second that pods are forked from.
RUNS_CONTAINERS = ("containerd", "containerd-shim-runc-v2", "init", "kube-proxy", "kubelet", "pause", "systemd-journald")
RUNS_PROCESSES = ("lab.kubelet", "zygote.py")
FEWEST = 3  # readings: one takes some ten seconds


@quantity("cores", "mean CPU of the control plane while the trial was driven", UNSCALED)
def control_plane_cpu(record: Record) -> float:
    """CPU of etcd, API server, controller-manager and scheduler from the first to the last reading, over the time between.

    It is the cluster's: in a duet both sides cause it. No data where a process was not read.
    """
    return _cpu_of(_readings(record), CONTROL_PLANE)


@quantity("cores", "mean CPU of what runs the pods while the trial was driven", UNSCALED)
def pod_runtime_cpu(record: Record) -> float:
    """CPU of RUNS_CONTAINERS on kind, or of RUNS_PROCESSES, from the first to the last reading, over the time between.

    The programs in the pods are not in it. Neither is a program that begins and ends between two readings, such as runc: it is
    in :func:`machine_cpu` alone. No data where a process was not read, as on an existing cluster.
    """
    seen = _readings(record)
    contained = seen["process"].isin(RUNS_CONTAINERS).any()
    return _cpu_of(seen, RUNS_CONTAINERS if contained else RUNS_PROCESSES)


@quantity("cores", "mean CPU of the machine while the trial was driven", UNSCALED)
def machine_cpu(record: Record) -> float:
    """How many cores were busy with anything at all, by the kernel's count. No data for fewer than two readings."""
    busy_s, lasted_s = grown(record, "busy_s", "t")
    return busy_s / lasted_s


def _readings(record: Record) -> pd.DataFrame:
    seen = record.memory
    return seen[seen["t"].between(record.driven, record.end)]


def _cpu_of(seen: pd.DataFrame, processes: Collection[str]) -> float:
    """The mean CPU of ``processes`` together, cores."""
    own = seen[seen["process"].isin(processes)]
    if absent := set(processes) - set(own["process"]):
        raise NoData(f"no reading of {', '.join(sorted(absent))}")
    total = own.groupby("t")["cpu_s"].sum()
    if len(total) < FEWEST:
        raise NoData(f"{len(total)} readings of {', '.join(processes)}, fewer than {FEWEST}")
    return float((total.iloc[-1] - total.iloc[0]) / (total.index[-1] - total.index[0]))
