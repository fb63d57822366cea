"""Cores: the CPU of the broker and of the control plane, and what a trial's consumers took of CPU and memory."""

from __future__ import annotations

from lab.errors import NoData
from lab.judge.measure import Measure, measure, number, quantity
from lab.judge.origin import UNSCALED
from lab.measure.throughput import Throughput
from lab.record.store import Record

BROKER = "kafka"
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
FEWEST = 3  # readings: one takes some ten seconds
CPU, RESIDENT = "process_cpu_seconds_total", "process_resident_memory_bytes"


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


class PodCost(Measure):
    """What the consumers that were at work took, from each one's first to its last sample while the trial was driven.

    ``start_cpu_s`` is what a pod that was created meanwhile had taken by its first sample: the least of its start. It is
    missing where none was created.
    """

    message_us = number("µs", "CPU of a message in its consumer, polls and scrapes included", UNSCALED)
    held_mb = number("MB", "most memory of a consumer", UNSCALED)
    start_cpu_s = number("s", "CPU of a consumer by its first sample, the most of those that started", UNSCALED)


@measure
def pod_cost(record: Record) -> PodCost:
    """Measure it. There is no data where no consumer with two samples of its CPU processed anything between them."""
    samples = record.samples
    mine = samples[samples["pod"].isin(list(record.pods)) & samples["t"].between(record.driven, record.end)].sort_values("t")
    taken, done, starts = 0.0, 0.0, [0.0]
    for pod, rows in mine[mine["metric"] == CPU].groupby("pod"):
        receipts = record.receipts[record.receipts["pod"] == pod]
        if (record.pods[str(pod)].added or 0) > record.driven:
            starts.append(float(rows["value"].iloc[0]))
        if len(rows) > 1 and not receipts.empty:
            taken += float(rows["value"].iloc[-1] - rows["value"].iloc[0])
            done += Throughput(receipts).between(float(rows["t"].iloc[0]), float(rows["t"].iloc[-1]))
    held = mine.loc[mine["metric"] == RESIDENT, "value"]
    if not done or held.empty:
        raise NoData("no samples of the CPU and memory of consumers at work")
    return PodCost(message_us=1e6 * taken / done, held_mb=float(held.max()) / 1e6, start_cpu_s=max(starts) or None)


@quantity("cores", "CPU of Kafka while the profile ran", UNSCALED)
def broker_cores(record: Record) -> float:
    """The mean number of cores that the brokers kept busy, from the first to the last reading within the profile.

    Readings are 10 s apart. In a duet they are of both groups together. There is no data for fewer than two readings, for a
    record of before CPU time was kept by process, and on an existing cluster.
    """
    seen = record.memory
    if "cpu_s" not in seen:
        raise NoData("the record has no CPU time by process")
    start = record.profile_start
    rows = seen[(seen["process"] == BROKER) & seen["t"].between(start, start + record.profile.duration)].sort_values("t")
    if len(rows) < 2:
        raise NoData(f"{len(rows)} readings of the broker's CPU time while the profile ran")
    first, last = rows.iloc[0], rows.iloc[-1]
    return float((last["cpu_s"] - first["cpu_s"]) / (last["t"] - first["t"]))
